package tiers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kustomizationSchema is .spec.versions[v1].schema.openAPIV3Schema of kustomize-controller 1.9.6,
// config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml (Apache-2.0), without its
// descriptions and its status.
//
//go:embed schema/kustomization.json
var kustomizationSchema []byte

// schema checks Flux Kustomizations as an API server checks them against their CRD.
type schema struct {
	root     apiextensionsv1.JSONSchemaProps
	patterns map[string]*regexp.Regexp
}

func newSchema() (*schema, error) {
	s := &schema{patterns: map[string]*regexp.Regexp{}}
	if err := json.Unmarshal(kustomizationSchema, &s.root); err != nil {
		return nil, fmt.Errorf("reading the schema of Kustomizations: %w", err)
	}
	return s, nil
}

// check lists why an API server would refuse a Kustomization, or why its controller could do nothing
// with it. The second result is the object without the fields whose value cannot be decoded; it is
// the object itself when there are none. A value that holds a variable is not judged if variables
// are still open.
func (s *schema) check(u *unstructured.Unstructured, open bool) ([]string, *unstructured.Unstructured) {
	c := checker{schema: s, open: open}
	switch version := u.GroupVersionKind().Version; version {
	case "v1":
	case "v1beta1", "v1beta2":
		// Earlier releases of Flux served these, with fields that v1 lacks.
		c.loose = true
	default:
		c.say("apiVersion: %s is no version of Kustomizations: Flux serves %s/v1", u.GetAPIVersion(), kustomizeGroup)
		c.loose = true
	}
	if !c.variable(u.GetName()) {
		for _, msg := range validation.NameIsDNSSubdomain(u.GetName(), false) {
			c.say("metadata.name: %q: %s", u.GetName(), msg)
		}
	}
	clean := u.DeepCopy()
	c.object(clean.Object, &s.root, "")
	switch spec := clean.Object["spec"].(type) {
	case nil:
		c.say("spec: is missing; the API server takes that, but the controller finds no source in it")
	case map[string]any:
		c.names(spec)
		c.kubeConfig(spec)
	}
	if !c.cut {
		clean = u
	}
	return c.faults, clean
}

// checker is one check.
type checker struct {
	*schema
	open, loose bool
	faults      []string
	// cut says that a value was taken out of the object.
	cut bool
}

func (c *checker) say(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) variable(v any) bool {
	text, ok := v.(string)
	return c.open && ok && strings.Contains(text, "$")
}

// object checks the fields of a mapping and takes out those that do not fit.
func (c *checker) object(m map[string]any, p *apiextensionsv1.JSONSchemaProps, at string) {
	for _, name := range p.Required {
		if m[name] == nil {
			c.say("%s: Required value", join(at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		field, known := p.Properties[name]
		switch {
		case known:
		case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
			field = *p.AdditionalProperties.Schema
		default:
			if at != "" && !c.loose {
				c.say("%s: field not declared in schema", join(at, name))
			}
			continue
		}
		if !c.value(m[name], &field, join(at, name)) {
			delete(m, name)
			c.cut = true
		}
	}
}

// value checks one value. It reports whether it can be decoded. Null is no value.
func (c *checker) value(v any, p *apiextensionsv1.JSONSchemaProps, at string) bool {
	if v == nil {
		return true
	}
	if got := typeOf(v); p.Type != "" && got != p.Type && (p.Type != "number" || got != "integer") {
		if c.variable(v) {
			return false
		}
		c.say("%s: Invalid value: %q: must be of type %s", at, got, p.Type)
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(v, p, at)
	case []any:
		if p.Items != nil && p.Items.Schema != nil {
			return c.list(v, p.Items.Schema, at)
		}
	case string:
		return c.text(v, p, at)
	}
	return true
}

// list checks the elements of a list. One that cannot be decoded takes the whole list with it.
func (c *checker) list(v []any, p *apiextensionsv1.JSONSchemaProps, at string) bool {
	ok := true
	for i, e := range v {
		ok = c.value(e, p, fmt.Sprintf("%s[%d]", at, i)) && ok
	}
	return ok
}

// text checks a string. One that does not match its pattern cannot be decoded: the schema has
// patterns for durations only.
func (c *checker) text(v string, p *apiextensionsv1.JSONSchemaProps, at string) bool {
	if c.variable(v) {
		return p.Pattern == ""
	}
	if len(p.Enum) > 0 {
		var allowed []string
		for _, e := range p.Enum {
			var one string
			if json.Unmarshal(e.Raw, &one) == nil {
				allowed = append(allowed, one)
			}
		}
		if !slices.Contains(allowed, v) {
			c.say("%s: Unsupported value: %q: supported values: %s", at, v, strings.Join(allowed, ", "))
		}
	}
	n := int64(len([]rune(v)))
	if p.MinLength != nil && n < *p.MinLength {
		c.say("%s: Invalid value: %q: should be at least %d chars long", at, v, *p.MinLength)
	}
	if p.MaxLength != nil && n > *p.MaxLength {
		c.say("%s: Invalid value: it has %d chars, may not be more than %d", at, n, *p.MaxLength)
	}
	if p.Pattern != "" && !c.matches(p.Pattern, v) {
		c.say("%s: Invalid value: %q: should match %s", at, v, p.Pattern)
		return false
	}
	return true
}

func (c *checker) matches(pattern, v string) bool {
	re := c.patterns[pattern]
	if re == nil {
		var err error
		if re, err = regexp.Compile(pattern); err != nil {
			return true
		}
		c.patterns[pattern] = re
	}
	return re.MatchString(v)
}

// names finds the references that the schema lets pass but that can name nothing.
func (c *checker) names(spec map[string]any) {
	if name, ok := nested(spec, "sourceRef")["name"].(string); ok && name == "" {
		c.say("spec.sourceRef.name: is empty, which no source is called")
	}
	deps, _ := spec["dependsOn"].([]any)
	for i, d := range deps {
		if m, _ := d.(map[string]any); m["name"] == "" {
			c.say("spec.dependsOn[%d].name: is empty, which no Kustomization is called", i)
		}
	}
}

// kubeConfig is the schema's rule that exactly one of the two references is given.
func (c *checker) kubeConfig(spec map[string]any) {
	k, ok := spec["kubeConfig"].(map[string]any)
	if ok && !c.loose && (k["configMapRef"] != nil) == (k["secretRef"] != nil) {
		c.say("spec.kubeConfig: exactly one of configMapRef or secretRef must be specified")
	}
}

// typeOf names a value's JSON type.
func typeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, int:
		return "integer"
	}
	return "number"
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
