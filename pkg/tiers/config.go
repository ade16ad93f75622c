package tiers

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// config is a ConfigMap or Secret in git that substituteFrom may name.
type config struct {
	obj  render.Object
	tier Key
	data map[string]string
}

func configID(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// addConfig remembers the values of a ConfigMap or Secret. The first tier in order that applies
// one has the say. The values of an encrypted Secret stay visible as ${KEY}.
func (l *loader) addConfig(s *state, o render.Object) {
	id := configID(o.GetKind(), o.GetNamespace(), o.GetName())
	if _, ok := l.configs[id]; ok {
		return
	}
	c := &config{obj: o, tier: s.tier.Key, data: map[string]string{}}
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(o.Object, field)
		for k, v := range values {
			text, _ := v.(string)
			switch {
			case o.Encrypted():
				text = "${" + k + "}"
			case o.GetKind() == "Secret" && field == "data":
				raw, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					continue
				}
				text = string(raw)
			}
			c.data[k] = text
		}
	}
	l.configs[id] = c
}

// lookup answers substituteFrom from git, then from the caller.
func (l *loader) lookup(kind, namespace, name string) (map[string]string, bool) {
	if c, ok := l.configs[configID(kind, namespace, name)]; ok {
		return c.data, true
	}
	if l.opts.Lookup != nil {
		return l.opts.Lookup(kind, namespace, name)
	}
	return nil, false
}

// known reports whether every input of a tier's substitution has been found.
func (l *loader) known(s *state) bool {
	pb := s.tier.Kustomization.Spec.PostBuild
	if pb == nil {
		return true
	}
	for _, ref := range pb.SubstituteFrom {
		if _, ok := l.lookup(ref.Kind, s.tier.Namespace, ref.Name); !ok {
			return false
		}
	}
	return true
}

// reportVariables says which variables of a tier stay unknown, and why.
func (l *loader) reportVariables(s *state) {
	t := s.tier
	id := "Kustomization/" + keyString(t.Key)
	var missing []string
	for _, ref := range s.res.Missing {
		missing = append(missing, ref.String())
	}
	slices.Sort(missing)
	if len(missing) > 0 && len(l.opts.Vars) == 0 {
		l.problem(Problem{Rule: "unknown-input", Severity: Info, Tier: t.Key, File: t.File, Line: t.Line,
			Message: id + " takes variables from " + strings.Join(missing, ", ") + ", not in git"})
	}
	if len(missing) > 0 {
		l.reportUncertain(s, missing)
		return
	}
	for _, u := range s.res.Unknown {
		p := Problem{Rule: "unknown-variable", Tier: t.Key, File: u.File, Line: u.Line, Severity: Error,
			Message: "${" + u.Name + "} in " + u.Object + ": nothing that " + id + " substitutes from defines it, and it has no default"}
		if p.File == "" {
			p.File, p.Line = t.File, t.Line
		}
		l.problem(p)
	}
}

// reportUncertain lists the variables of a tier that what git does not show has to define: one problem,
// and no fault as far as anybody can tell.
func (l *loader) reportUncertain(s *state, missing []string) {
	var names []string
	for _, u := range s.res.Unknown {
		if name := "${" + u.Name + "}"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	first := s.res.Unknown[0]
	p := Problem{Rule: "unknown-variable", Severity: Info, Tier: s.tier.Key, File: first.File, Line: first.Line,
		Message: strings.Join(missing, " or ") + ", not in git, has to define " + strings.Join(names, ", ")}
	if p.File == "" {
		p.File, p.Line = s.tier.File, s.tier.Line
	}
	l.problem(p)
}
