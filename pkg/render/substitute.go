package render

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	generator "github.com/fluxcd/pkg/kustomize"
	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// Lookup answers what a ConfigMap or Secret named by spec.postBuild.substituteFrom holds. It
// returns false if git does not know.
type Lookup func(kind, namespace, name string) (map[string]string, bool)

// Reference names a ConfigMap or Secret that a Kustomization takes variables from.
type Reference struct {
	Kind, Namespace, Name string
	Optional              bool
}

func (r Reference) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// postBuild is spec.postBuild.
type postBuild struct {
	SubstituteStrategy string                          `json:"substituteStrategy,omitempty"`
	Substitute         map[string]string               `json:"substitute,omitempty"`
	SubstituteFrom     []generator.SubstituteReference `json:"substituteFrom,omitempty"`
}

// variables is what the inputs of a substitution come to.
type variables struct {
	values map[string]string
	always bool
	// missing are required inputs that Lookup does not know: a variable that is not in values may
	// be in one of them.
	missing []Reference
}

var validName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// variables merges the inputs as LoadVariables and SubstituteVariables of fluxcd/pkg/kustomize
// kustomize_varsub.go do: later references win over earlier ones, in-line values over references.
// extra wins over references too, because it is how a caller says what git cannot know.
func (p *postBuild) variables(namespace string, lookup Lookup, extra map[string]string) variables {
	v := variables{values: map[string]string{}, always: p.SubstituteStrategy == "Always"}
	for _, ref := range p.SubstituteFrom {
		var data map[string]string
		var ok bool
		if lookup != nil {
			data, ok = lookup(ref.Kind, namespace, ref.Name)
		}
		if !ok && !ref.Optional {
			v.missing = append(v.missing, Reference{Kind: ref.Kind, Namespace: namespace, Name: ref.Name})
		}
		for k, val := range data {
			v.values[k] = strings.ReplaceAll(val, "\n", "")
		}
	}
	if len(p.SubstituteFrom) > 0 {
		for k, val := range extra {
			v.values[k] = val
		}
	}
	for k, val := range p.Substitute {
		v.values[k] = strings.ReplaceAll(val, "\n", "")
	}
	return v
}

// active reports whether the controller substitutes at all.
func (v variables) active() bool { return len(v.values) > 0 || v.always || len(v.missing) > 0 }

func (v variables) invalid() error {
	var bad []string
	for k := range v.values {
		if !validName.MatchString(k) {
			bad = append(bad, k)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	sort.Strings(bad)
	return fmt.Errorf("'%s' var name is invalid, must match '%s'", bad[0], validName)
}

// substitute replaces the variables of one object and returns its JSON; nil if that changes nothing.
// Variables that are not known stay as they are written and are returned, sorted.
func (v variables) substitute(object map[string]any) ([]byte, []string, error) {
	text, err := textOf(object)
	if err != nil {
		return nil, nil, err
	}
	escaped, unknown := v.escape(string(text))
	out, err := evaluate(escaped, func(name string) (string, bool) {
		val, ok := v.values[name]
		return val, ok
	})
	if err != nil {
		return nil, unknown, fmt.Errorf("envsubst error: variable substitution failed: %w", err)
	}
	if out == string(text) {
		return nil, unknown, nil
	}
	j, err := yaml.YAMLToJSON([]byte(out))
	if err != nil {
		return nil, unknown, fmt.Errorf("envsubst error: YAMLToJSON: %w", err)
	}
	return j, unknown, nil
}

// textOf is the YAML that variables are replaced in. SubstituteVariables of fluxcd/pkg/kustomize
// kustomize_varsub.go makes it of the object's JSON, which it parses as YAML first. The result is that
// of the same library without this detour, but for what the parser takes otherwise.
func textOf(object map[string]any) ([]byte, error) {
	if parsesAsItIs(object) {
		return yamlv2.Marshal(object)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(data)
}

// parsesAsItIs reports whether a value is the same once it is written as JSON and read as YAML: floats
// may become integers, and some characters are line breaks or forbidden.
func parsesAsItIs(v any) bool {
	switch v := v.(type) {
	case string:
		return !strings.ContainsFunc(v, func(r rune) bool {
			return r >= 0x7f && r < 0xa0 || r == '\ufeff' || r >= 0xfffd && r <= 0xffff
		})
	case map[string]any:
		for k, e := range v {
			if !parsesAsItIs(k) || !parsesAsItIs(e) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !parsesAsItIs(e) })
	case float64:
		return false
	}
	return true
}

// evaluate is envsubst.Eval, which copies its whole input once for every $$ in it. It is therefore
// given a piece at a time; the whole, where a piece cuts an expression in two.
func evaluate(text string, mapping func(string) (string, bool)) (string, error) {
	var out strings.Builder
	out.Grow(len(text))
	for rest := text; rest != ""; {
		var part string
		part, rest = cut(rest)
		done, err := envsubst.Eval(part, mapping)
		if err != nil {
			return envsubst.Eval(text, mapping)
		}
		out.WriteString(done)
	}
	return out.String(), nil
}

// cut takes a piece off a text, at most pieceSize long if there is white space to end it at.
func cut(text string) (piece, rest string) {
	if len(text) <= pieceSize {
		return text, ""
	}
	i := strings.LastIndexByte(text[:pieceSize], '\n')
	if i < 0 {
		i = strings.LastIndexByte(text[:pieceSize], ' ')
	}
	if i < 0 {
		return text, ""
	}
	return text[:i+1], text[i+1:]
}

const pieceSize = 4096

// substitutable reports whether any string below v holds what envsubst does not leave as it is.
func substitutable(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "${") || strings.Contains(v, "$$")
	case map[string]any:
		for k, e := range v {
			if substitutable(k) || substitutable(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, substitutable)
	}
	return false
}

// bare matches ${NAME} and ${NAME followed by any operator; dollars before it decide whether it
// is escaped already.
var bare = regexp.MustCompile(`\$+\{([_[:alpha:]][_[:alpha:][:digit:]]*)(:?[-+=?]|[^\s])`)

// escape writes $${NAME} for every ${NAME} that has no value and no default, which envsubst turns
// back into ${NAME}.
func (v variables) escape(text string) (string, []string) {
	var unknown []string
	out := bare.ReplaceAllStringFunc(text, func(m string) string {
		sub := bare.FindStringSubmatch(m)
		name, op := sub[1], strings.TrimPrefix(sub[2], ":")
		dollars := strings.Count(m, "$")
		_, known := v.values[name]
		if known || dollars%2 == 0 || (op != "" && strings.Contains("-+=?", op)) {
			return m
		}
		if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		return "$" + m
	})
	sort.Strings(unknown)
	return out, unknown
}
