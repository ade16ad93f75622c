package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ParseConfig reads a configuration. Unknown and repeated fields, unknown rules, an acceptance without
// a reason or an expiry, values of another form and a second document are errors of type *ConfigError,
// all of them joined, in the order of their lines. A field without a value is taken to be absent.
func ParseConfig(path string, data []byte) (*Config, error) {
	c := &Config{Path: path}
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	p := &configParser{path: path}
	p.document(doc.Content[0], c)
	switch err := dec.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	default:
		p.fail(&more, "a second document begins here, and only one is read: put all into the first")
	}
	slices.SortStableFunc(p.errs, func(a, b *ConfigError) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(p.errs))
	for i, e := range p.errs {
		errs[i] = e
	}
	return c, errors.Join(errs...)
}

type configParser struct {
	path string
	errs []*ConfigError
}

func (p *configParser) fail(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, &ConfigError{Path: p.path, Line: n.Line, Message: fmt.Sprintf(format, args...)})
}

// fields calls one function a key of a mapping, and reports the keys it has no function for and those
// that occur twice. It tells whether there was a mapping.
func (p *configParser) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s is not a mapping", what)
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f, ok := known[key.Value]
		switch {
		case !ok:
			p.fail(key, "%s has no field %q, only %s", what, key.Value, words(slices.Sorted(maps.Keys(known))))
		case seen[key.Value]:
			p.fail(key, "%s has the field %q twice", what, key.Value)
		case !isNull(value):
			f(value)
		}
		seen[key.Value] = true
	}
	return true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (p *configParser) document(n *yaml.Node, c *Config) {
	if isNull(n) {
		return
	}
	p.fields(n, "the document", map[string]func(*yaml.Node){
		"beforeFlux": func(v *yaml.Node) { p.before(v, &c.Before) },
		"accept":     func(v *yaml.Node) { c.Accept = p.acceptances(v) },
	})
}

func (p *configParser) before(n *yaml.Node, b *Before) {
	p.fields(n, "beforeFlux", map[string]func(*yaml.Node){
		"platform": func(v *yaml.Node) { b.Platform = Entry{p.text(v, "platform"), v.Line} },
		"groups":   func(v *yaml.Node) { b.Groups = p.entries(v, "groups") },
		"kinds":    func(v *yaml.Node) { b.Kinds = p.checked(v, "kinds", "group/Kind", 2) },
		"crds":     func(v *yaml.Node) { b.CRDs = p.entries(v, "crds") },
		"helmfile": func(v *yaml.Node) { b.Helmfile = p.entries(v, "helmfile") },
		"objects":  func(v *yaml.Node) { b.Objects = p.checked(v, "objects", "Kind/namespace/name or Kind/name", 2, 3) },
	})
}

func (p *configParser) text(n *yaml.Node, field string) string {
	if n.Kind != yaml.ScalarNode {
		p.fail(n, "%s is not a string", field)
	}
	return n.Value
}

func (p *configParser) entries(n *yaml.Node, field string) []Entry {
	if n.Kind == yaml.ScalarNode {
		return []Entry{{n.Value, n.Line}}
	}
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "%s is not a list", field)
		return nil
	}
	var out []Entry
	for _, v := range n.Content {
		if v.Kind != yaml.ScalarNode || v.Value == "" {
			p.fail(v, "an entry of %s is not a string", field)
			continue
		}
		out = append(out, Entry{v.Value, v.Line})
	}
	return out
}

// checked is entries for values that are made of one of these numbers of parts.
func (p *configParser) checked(n *yaml.Node, field, form string, parts ...int) []Entry {
	out := p.entries(n, field)
	for _, e := range out {
		if list := strings.Split(e.Value, "/"); !slices.Contains(parts, len(list)) || slices.Contains(list, "") {
			p.fail(&yaml.Node{Line: e.Line}, "%q in %s is not of the form %s", e.Value, field, form)
		}
	}
	return out
}

func (p *configParser) acceptances(n *yaml.Node) []Acceptance {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "accept is not a list")
		return nil
	}
	var out []Acceptance
	for _, v := range n.Content {
		if a, ok := p.acceptance(v); ok {
			out = append(out, a)
		}
	}
	return out
}

func (p *configParser) acceptance(n *yaml.Node) (Acceptance, bool) {
	a := Acceptance{Line: n.Line}
	text := func(to *string, field string) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = p.text(v, field) }
	}
	before := len(p.errs)
	ok := p.fields(n, "an entry of accept", map[string]func(*yaml.Node){
		"rule": text(&a.Rule, "rule"), "tier": text(&a.Tier, "tier"), "object": text(&a.Object, "object"), "reason": text(&a.Reason, "reason"),
		"expires": func(v *yaml.Node) {
			day, err := time.Parse(time.DateOnly, v.Value)
			if err != nil {
				p.fail(v, "expires %q is not a date like 2027-06-30", v.Value)
			}
			a.Expires = day
		},
	})
	if len(p.errs) > before {
		return a, ok // what is missing is most likely what was said to be wrong
	}
	switch {
	case a.Rule == "":
		p.fail(n, "an entry of accept needs a rule")
	case !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == a.Rule }):
		p.fail(n, "there is no rule %q", a.Rule)
	case a.Reason == "":
		p.fail(n, "accepting %s needs a reason", a.Rule)
	case a.Expires.IsZero():
		p.fail(n, "accepting %s needs a date on which it expires", a.Rule)
	}
	return a, ok
}
