package crds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// CatalogueError is one thing that is wrong with a catalogue file.
type CatalogueError struct {
	File    string
	Line    int // 0 when unknown
	Message string
}

func (e *CatalogueError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("reading %s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("reading %s:%d: %s", e.File, e.Line, e.Message)
}

type catalogueFile struct {
	Version   int         `yaml:"version"`
	Operators []*Operator `yaml:"operators"`
	Charts    []*Chart    `yaml:"charts"`
	Platforms []*Platform `yaml:"platforms"`
}

func parseCatalogue(source Source) (*Catalogue, error) {
	var file catalogueFile
	decoder := yaml.NewDecoder(bytes.NewReader(source.Data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, decodeErrors(source.Name, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(source.Data, &root); err != nil {
		return nil, decodeErrors(source.Name, err)
	}
	v := &validator{file: source.Name, names: map[string]int{}}
	if file.Version != 1 {
		v.report(1, "version must be 1, not %d", file.Version)
	}
	for i, o := range file.Operators {
		o.Place = Place{File: source.Name, Line: entryLine(&root, "operators", i)}
		v.operator(o)
	}
	for i, c := range file.Charts {
		c.Place = Place{File: source.Name, Line: entryLine(&root, "charts", i)}
		v.chart(c)
	}
	for i, p := range file.Platforms {
		p.Place = Place{File: source.Name, Line: entryLine(&root, "platforms", i)}
		v.platform(p)
	}
	if len(v.errs) > 0 {
		return nil, errors.Join(v.errs...)
	}
	return &Catalogue{Operators: file.Operators, Charts: file.Charts, Platforms: file.Platforms}, nil
}

// decodeErrors takes the lines out of the YAML library's messages.
func decodeErrors(file string, err error) error {
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		messages = typed.Errors
	}
	var errs []error
	for _, message := range messages {
		e := &CatalogueError{File: file, Message: message}
		if m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(message); m != nil {
			_, _ = fmt.Sscan(m[1], &e.Line) // digits only
			e.Message = strings.ReplaceAll(m[2], "in type crds.", "in ")
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// entryLine is the line of an entry of one of the top-level lists.
func entryLine(root *yaml.Node, list string, index int) int {
	if len(root.Content) == 0 {
		return 0
	}
	top := root.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value == list && index < len(top[i+1].Content) {
			return top[i+1].Content[index].Line
		}
	}
	return 0
}

type validator struct {
	file  string
	names map[string]int
	errs  []error
}

func (v *validator) report(line int, format string, args ...any) {
	v.errs = append(v.errs, &CatalogueError{File: v.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) name(list, name string, line int) {
	if name == "" {
		v.report(line, "an entry of %s has no name", list)
		return
	}
	if first, ok := v.names[list+"/"+name]; ok {
		v.report(line, "%s %q is there twice, first in line %d", list, name, first)
	}
	v.names[list+"/"+name] = line
}

func (v *validator) operator(o *Operator) {
	v.name("operators", o.Name, o.Line)
	if o.Trigger == nil && o.Startup.empty() {
		v.report(o.Line, "operator %q has neither trigger nor startup", o.Name)
	}
	if o.Trigger != nil {
		v.trigger(o)
	}
	switch o.Existing {
	case Adopts, Refuses, ExistingUnknown:
	default:
		v.report(o.Line, "operator %q: existing is %q, not one of adopts, refuses, unknown", o.Name, o.Existing)
	}
	if len(o.Labelled) > 0 && o.Existing != Refuses {
		v.report(o.Line, "operator %q: adoptsLabelled makes sense only with existing: refuses", o.Name)
	}
	v.evidence("operator", o.Name, o.Line, o.Evidence)
	v.creations("operator", o.Name, o.Line, o.Creates, o.Trigger != nil)
}

func (v *validator) trigger(o *Operator) {
	t := o.Trigger
	if t.Kind == "" {
		v.report(o.Line, "operator %q: trigger has no kind", o.Name)
	}
	v.where("operator", o.Name, o.Line, t.Where)
}

func (v *validator) where(what, name string, line int, w *Where) {
	if w == nil {
		return
	}
	if w.Path == "" {
		v.report(line, "%s %q: where has no path", what, name)
	}
	pattern, err := regexp.Compile(w.Matches)
	if err != nil {
		v.report(line, "%s %q: where: %v", what, name, err)
		pattern = regexp.MustCompile("$^")
	}
	w.pattern = pattern
}

func (v *validator) chart(c *Chart) {
	v.name("charts", c.Name, c.Line)
	if len(c.Charts) == 0 {
		v.report(c.Line, "chart %q names no chart", c.Name)
	}
	if len(c.Groups) == 0 {
		v.report(c.Line, "chart %q has no groups", c.Name)
	}
	for _, g := range c.Groups {
		v.group("chart", c.Name, c.Line, g)
	}
	if len(c.EnabledBy) > 0 && c.Default == nil {
		v.report(c.Line, "chart %q: enabledBy needs a default", c.Name)
	}
	v.evidence("chart", c.Name, c.Line, c.Evidence)
}

func (v *validator) platform(p *Platform) {
	v.name("platforms", p.Name, p.Line)
	v.evidence("platform", p.Name, p.Line, p.Evidence)
	v.creations("platform", p.Name, p.Line, p.Creates, false)
}

func (v *validator) evidence(what, name string, line int, e Reference) {
	if u, err := url.Parse(e.Link); err != nil || u.Scheme != "https" || u.Host == "" {
		v.report(line, "%s %q: the evidence's link %q is not an https address", what, name, e.Link)
	}
	if !slices.Contains([]Grade{Verified, Partial, Reported}, e.Grade) {
		v.report(line, "%s %q: the evidence's grade is %q, not one of verified, partial, reported", what, name, e.Grade)
	}
}

func (v *validator) creations(what, name string, line int, creations []Creation, fromTrigger bool) {
	if len(creations) == 0 {
		v.report(line, "%s %q creates nothing", what, name)
	}
	for _, c := range creations {
		if c.Group == "" && c.GroupFrom == "" {
			v.report(line, "%s %q: creates has an entry without group", what, name)
		}
		if c.Group != "" {
			v.group(what, name, line, c.Group)
		}
		v.where(what, name, line, c.When)
		if (c.GroupFrom != "" || c.When != nil) && !fromTrigger {
			v.report(line, "%s %q: groupFrom and when need a trigger to read from", what, name)
		}
		if len(c.Kinds) == 0 {
			v.report(line, "%s %q: group %q has no kinds", what, name, c.Group)
		}
		for _, k := range c.Kinds {
			v.kind(what, name, line, k, fromTrigger)
		}
	}
}

func (v *validator) group(what, name string, line int, group string) {
	if errs := validation.IsDNS1123Subdomain(strings.TrimPrefix(group, "*.")); len(errs) > 0 || !strings.Contains(group, ".") {
		v.report(line, "%s %q: %q is not the name of an API group", what, name, group)
	}
}

func (v *validator) kind(what, name string, line int, k CreationKind, fromTrigger bool) {
	if (k.Kind == "") == (k.KindFrom == "") {
		v.report(line, "%s %q: a kind needs either kind or kindFrom", what, name)
	}
	if (k.KindFrom != "" || k.PluralFrom != "") && !fromTrigger {
		v.report(line, "%s %q: kindFrom and pluralFrom need a trigger to read from", what, name)
	}
	if k.Scope != "" && k.Scope != "Namespaced" && k.Scope != "Cluster" {
		v.report(line, "%s %q: scope of %s is %q, not Namespaced or Cluster", what, name, k.Kind, k.Scope)
	}
}

func (r *Runner) empty() bool {
	return r == nil || len(r.Charts)+len(r.Workloads)+len(r.Images) == 0
}
