package crds

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// release is an object that installs a Helm chart: Flux's HelmRelease or k3s's HelmChart.
type release struct {
	chart string // the chart's name
	// skipFolder says that the crds folder is not installed (spec.install.crds: Skip).
	skipFolder bool
	suspended  bool
	values     map[string]any
	// opaque says that some of the values are not in git, or only encrypted.
	opaque bool
	// secret says that values come from Secrets.
	secret bool
}

// objectKey finds an object that another refers to.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// objectIndex holds every object of a graph by its identity.
type objectIndex map[objectKey]render.Object

func indexObjects(graph *tiers.Graph) objectIndex {
	index := objectIndex{}
	for _, t := range graph.Tiers {
		for _, o := range t.Objects {
			index[keyOf(o)] = o
		}
	}
	return index
}

func keyOf(o render.Object) objectKey {
	return objectKey{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// releaseOf reads a release; ok is false for any other object.
func releaseOf(o render.Object, index objectIndex) (r release, ok bool) {
	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}:
		return helmRelease(o, index), true
	case schema.GroupKind{Group: "helm.cattle.io", Kind: "HelmChart"}:
		return cattleChart(o), true
	}
	return release{}, false
}

func helmRelease(o render.Object, index objectIndex) release {
	r := release{chart: chartName(text(o, "spec", "chart", "spec", "chart"))}
	if ref := text(o, "spec", "chartRef", "name"); ref != "" {
		r.chart = referencedChart(o, index)
	}
	// Flux installs the folder unless told to skip it (install.crds in helm-controller's API).
	r.skipFolder = text(o, "spec", "install", "crds") == "Skip"
	r.suspended, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
	r.values, r.opaque = releaseValues(o, index)
	r.secret = readsSecrets(o)
	return r
}

// referencedChart finds the name behind spec.chartRef: the last part of an OCIRepository's URL, or
// the chart that a HelmChart names. It is empty when the object is not in git.
func referencedChart(o render.Object, index objectIndex) string {
	namespace := text(o, "spec", "chartRef", "namespace")
	if namespace == "" {
		namespace = o.GetNamespace()
	}
	kind := text(o, "spec", "chartRef", "kind")
	target, ok := index[objectKey{schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: kind}, namespace, text(o, "spec", "chartRef", "name")}]
	if !ok {
		return ""
	}
	if kind == "OCIRepository" {
		return chartName(text(target, "spec", "url"))
	}
	return chartName(text(target, "spec", "chart"))
}

// chartName takes the name from what a release calls its chart: a name, a path in a repository, or
// an address.
func chartName(chart string) string {
	if chart == "" {
		return ""
	}
	return path.Base(strings.TrimSuffix(path.Clean(chart), ".tgz"))
}

func cattleChart(o render.Object) release {
	r := release{chart: chartName(text(o, "spec", "chart"))}
	var values map[string]any
	if yaml.Unmarshal([]byte(text(o, "spec", "valuesContent")), &values) == nil {
		r.values = values
	}
	return r
}

// releaseValues merges a release's values as helm-controller does: valuesFrom in order, then
// spec.values. opaque says that something could not be read.
func releaseValues(o render.Object, index objectIndex) (values map[string]any, opaque bool) {
	values = map[string]any{}
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "valuesFrom")
	for _, entry := range refs {
		ref, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		more, ok := valuesFrom(o.GetNamespace(), ref, index)
		if !ok {
			opaque = true
			continue
		}
		mergeValues(values, more)
	}
	inline, _, _ := unstructured.NestedMap(o.Object, "spec", "values")
	mergeValues(values, inline)
	return values, opaque
}

func readsSecrets(o render.Object) bool {
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "valuesFrom")
	return slices.ContainsFunc(refs, func(entry any) bool {
		ref, ok := entry.(map[string]any)
		return ok && ref["kind"] == "Secret"
	})
}

func valuesFrom(namespace string, ref map[string]any, index objectIndex) (map[string]any, bool) {
	field := func(name string) string { s, _ := ref[name].(string); return s }
	source, ok := index[objectKey{schema.GroupKind{Kind: field("kind")}, namespace, field("name")}]
	if !ok || source.Encrypted() {
		return nil, false
	}
	key := field("valuesKey")
	if key == "" {
		key = "values.yaml"
	}
	content := text(source, "data", key)
	if source.GetKind() == "Secret" {
		decoded, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return nil, false
		}
		content = string(decoded)
		if plain := text(source, "stringData", key); plain != "" {
			content = plain
		}
	}
	if target := field("targetPath"); target != "" {
		var value any
		if yaml.Unmarshal([]byte(content), &value) != nil {
			return nil, false
		}
		return nest(strings.Split(target, "."), value), true
	}
	var values map[string]any
	return values, yaml.Unmarshal([]byte(content), &values) == nil
}

func nest(path []string, value any) map[string]any {
	if len(path) == 1 {
		return map[string]any{path[0]: value}
	}
	return map[string]any{path[0]: nest(path[1:], value)}
}

func mergeValues(into, from map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		child, isMap := from[key].(map[string]any)
		if existing, ok := into[key].(map[string]any); ok && isMap {
			mergeValues(existing, child)
			continue
		}
		if isMap {
			fresh := map[string]any{}
			mergeValues(fresh, child)
			into[key] = fresh
			continue
		}
		into[key] = from[key]
	}
}

// installsCRDs reports whether a release of a known chart brings its CRDs, and if not, why.
func (c *Chart) installsCRDs(r release) (bool, string) {
	if c.Folder && r.skipFolder {
		return false, "spec.install.crds is Skip"
	}
	if len(c.EnabledBy) == 0 {
		return true, ""
	}
	set := false
	for _, name := range c.EnabledBy {
		value, found, err := unstructured.NestedFieldNoCopy(r.values, strings.Split(name, ".")...)
		if err != nil || !found {
			continue
		}
		if value == true || value == "true" {
			return true, ""
		}
		set = true
	}
	if !set && (*c.Default || r.opaque) {
		return true, ""
	}
	return false, "the value " + strings.Join(c.EnabledBy, " or ") + " is not true"
}

// text reads a string field of an object, "" when it is absent or of another type.
func text(o render.Object, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}

// textAt is text by a dotted path.
func textAt(o render.Object, path string) string {
	if path == "" {
		return ""
	}
	return text(o, strings.Split(path, ".")...)
}
