package tiers

import (
	"bytes"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/render"
)

// expand makes the objects of a ResourceSet whose inputs are all in git and takes those up that
// Flux reads. Flux Operator's API documents the templates: Go's, with << and >> around what is
// computed, sprig's functions, toYaml, slugify, and inputs for one set of inputs after another.
func (l *loader) expand(s *state, o render.Object) {
	l.sets = append(l.sets, pendingSet{s: s, o: o})
}

// pendingSet is a ResourceSet that waits for input providers, which may come with another tier.
type pendingSet struct {
	s *state
	o render.Object
}

// expandSets expands the ResourceSets found since the last call. It reports whether there were any.
func (l *loader) expandSets() bool {
	sets := l.sets
	l.sets = nil
	for _, p := range sets {
		id := p.o.ID()
		if l.expanded[id] {
			continue
		}
		l.expanded[id] = true
		inputs, err := l.inputs(p.o)
		if err == nil {
			err = l.takeSet(p, inputs)
		}
		if err != nil {
			sev := Info
			if makesTiers(p.o) {
				sev = Warning
			}
			l.problem(Problem{Rule: "resourceset", Severity: sev, Tier: p.s.tier.Key, File: p.o.File, Line: p.o.Line,
				Message: id + ": what it generates is not known: " + oneLine(err)})
		}
	}
	return len(sets) > 0
}

// makesTiers reports whether a ResourceSet's templates mention Flux Kustomizations.
func makesTiers(o render.Object) bool {
	text, err := o.MarshalJSON()
	return err == nil && bytes.Contains(text, []byte(kustomizeGroup+"/"))
}

// takeSet renders a ResourceSet's templates with every set of inputs.
func (l *loader) takeSet(p pendingSet, inputs []map[string]any) error {
	spec := nested(p.o.Object, "spec")
	texts, err := templates(spec)
	if err != nil {
		return err
	}
	steps, _ := spec["steps"].([]any)
	for _, st := range steps {
		m, _ := st.(map[string]any)
		more, err := templates(m)
		if err != nil {
			return err
		}
		texts = append(texts, more...)
	}
	seen := map[string]bool{}
	for _, text := range texts {
		for _, in := range inputs {
			objects, err := execute(text, in)
			if err != nil {
				return err
			}
			for _, u := range objects {
				o := render.Object{Unstructured: u, File: p.o.File, Line: p.o.Line}
				key := o.GroupVersionKind().Group + "/" + o.ID()
				if seen[key] || o.GetAnnotations()[instanceGroup+"/reconcile"] == "disabled" {
					continue
				}
				seen[key] = true
				if o.GetNamespace() == "" && o.GroupVersionKind().Group == kustomizeGroup {
					o.SetNamespace(p.o.GetNamespace())
				}
				l.take(p.s, o)
			}
		}
	}
	return nil
}

func templates(spec map[string]any) ([]string, error) {
	var out []string
	resources, _ := spec["resources"].([]any)
	for _, r := range resources {
		text, err := yaml.Marshal(r)
		if err != nil {
			return nil, err
		}
		out = append(out, string(text))
	}
	if t, _ := spec["resourcesTemplate"].(string); t != "" {
		out = append(out, t)
	}
	return out, nil
}

// execute renders one template with one set of inputs.
func execute(text string, inputs map[string]any) ([]*unstructured.Unstructured, error) {
	t, err := template.New("resourceset").Delims("<<", ">>").Option("missingkey=error").
		Funcs(sprig.HermeticTxtFuncMap()).
		Funcs(template.FuncMap{
			"inputs":     func() any { return inputs },
			"slugify":    slugify,
			"toYaml":     func(v any) string { b, _ := yaml.Marshal(v); return string(b) },
			"mustToYaml": func(v any) (string, error) { b, err := yaml.Marshal(v); return string(b), err },
		}).Parse(text)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split("\n"+b.String(), "\n---") {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, &unstructured.Unstructured{Object: m})
		}
	}
	return out, nil
}

// slugify makes a name of a text: lower case, dashes for all but letters and digits, 63 characters at most.
func slugify(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '_' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	out := strings.Trim(b.String(), "-_")
	if len(out) > 63 {
		out = out[:63]
		if i := strings.LastIndexByte(out, '-'); i > 0 {
			out = out[:i]
		}
	}
	return out
}
