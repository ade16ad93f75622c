package render

import (
	"math"
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Identity is what a manifest says an object is, before anything transforms it.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

func newFactory() *resource.Factory { return provider.NewDefaultDepProvider().GetResourceFactory() }

// identity is empty for a document that is no mapping, which kyaml's accessors do not survive.
func identity(n *kyaml.RNode) Identity {
	if kyaml.IsMissingOrNull(n) || n.YNode().Kind != kyaml.MappingNode {
		return Identity{}
	}
	id := Identity{APIVersion: n.GetApiVersion(), Kind: n.GetKind()}
	if meta := n.Field("metadata"); meta != nil {
		id.Name, id.Namespace = scalar(meta.Value, "name"), scalar(meta.Value, "namespace")
	}
	return id
}

func scalar(n *kyaml.RNode, field string) string {
	if f := n.Field(field); f != nil && !kyaml.IsMissingOrNull(f.Value) {
		return f.Value.YNode().Value
	}
	return ""
}

// onlyResources reports whether a kustomization file does nothing but list resources.
func onlyResources(k *kustypes.Kustomization) bool {
	if (k.Kind != "" && k.Kind != kustypes.KustomizationKind) ||
		(k.APIVersion != "" && k.APIVersion != kustypes.KustomizationVersion) {
		return false
	}
	rest := *k
	rest.TypeMeta, rest.MetaData = kustypes.TypeMeta{}, nil
	rest.Resources, rest.Bases, rest.BuildMetadata = nil, nil, nil
	return reflect.DeepEqual(rest, kustypes.Kustomization{})
}

// plain builds a folder whose kustomization files only list resources: the objects are then the
// files' documents in order. It returns false where kustomize itself must look, be it to do its
// work or to say what is wrong; a test compares its results with the controller's.
func (b *builder) plain(kus *kustypes.Kustomization) ([]Object, bool) {
	if len(b.keep) > 0 || b.c.openapi || len(b.c.faults) > 0 {
		return nil, false
	}
	for _, k := range b.c.kustomizations {
		if !onlyResources(k.kus) || len(b.src.kustomizationFiles(k.dir)) > 1 {
			return nil, false
		}
	}
	files, ok := b.expand(b.res.Dir, kus, []string{b.res.Dir})
	if !ok {
		return nil, false
	}
	seen := names{}
	var out []Object
	for _, file := range files {
		m := b.src.manifestAt(file)
		if m.err != nil || m.reserved {
			return nil, false
		}
		more, ok := b.objectsOf(file, m, seen)
		if !ok {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, true
}

// names tells whether objects may clash: the same version, kind and name may, unless both
// namespaces are given and differ, and the kind is none of those that have no namespace.
type names map[Identity][]string

func (n names) clash(id Identity) bool {
	ns := id.Namespace
	if group, version := resid.ParseGroupVersion(id.APIVersion); resid.NewGvk(group, version, id.Kind).IsClusterScoped() {
		ns = ""
	}
	id.Namespace = ""
	others := n[id]
	n[id] = append(others, ns)
	return slices.Contains(others, ns) || (len(others) > 0 && (ns == "" || slices.Contains(others, "")))
}

// objectsOf decodes the wanted objects of one file.
func (b *builder) objectsOf(file string, m *manifestFile, seen names) ([]Object, bool) {
	wanted := func(id Identity) bool { return b.opts.Want == nil || b.opts.Want(id) }
	nodes := make([]*kyaml.RNode, 0, len(m.docs))
	ids := make([]Identity, 0, len(m.docs))
	if m.simple || !slices.ContainsFunc(m.docs, func(d document) bool { return wanted(d.Identity) }) {
		for _, d := range m.docs {
			nodes, ids = append(nodes, kyaml.NewRNode(d.node)), append(ids, d.Identity)
		}
	} else {
		full, err := b.src.resources(file)
		if err != nil {
			return nil, false
		}
		for _, n := range full {
			nodes, ids = append(nodes, n), append(ids, identity(n))
		}
	}
	var out []Object
	from := b.src.tree.Origin(file)
	for i, id := range ids {
		if id.Name == "" || id.Kind == "" || id.APIVersion == "" || seen.clash(id) {
			return nil, false
		}
		if !wanted(id) {
			b.res.Partial = true
			continue
		}
		o, ok := object(nodes[i])
		if !ok {
			return nil, false
		}
		if local, set := o.GetAnnotations()[konfig.IgnoredByKustomizeAnnotation]; set && local != "false" {
			continue
		}
		if o.GroupVersionKind().Group != "kustomize.config.k8s.io" {
			out = append(out, Object{Unstructured: o, File: from})
		}
	}
	return out, true
}

// expand lists the files of a folder in the order kustomize reads them.
func (b *builder) expand(dir string, kus *kustypes.Kustomization, above []string) ([]string, bool) {
	var out []string
	for _, ref := range slices.Concat(kus.Resources, kus.Bases) {
		name := path.Join(dir, ref)
		if b.src.isFile(name) {
			out = append(out, name)
			continue
		}
		k := b.src.kustomization(name)
		real := b.real(name)
		if k == nil || k.err != nil || slices.ContainsFunc(above, func(a string) bool { return holds(real, b.real(a)) }) {
			return nil, false
		}
		more, ok := b.expand(name, k.kus, append(slices.Clone(above), name))
		if !ok {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, true
}

// holds reports whether folder is dir or lies below it, which kustomize takes for a cycle.
func holds(dir, folder string) bool {
	return dir == "." || dir == folder || (len(folder) > len(dir) && folder[:len(dir)+1] == dir+"/")
}

func (b *builder) real(name string) string {
	if r, err := b.src.tree.Resolve(name); err == nil {
		return r
	}
	return name
}

// object decodes a node as the round trip over text and JSON would: integers are int64, whole floats
// too. The text matters for folded scalars only, which kustomize's writer does not always keep.
func object(n *kyaml.RNode) (*unstructured.Unstructured, bool) {
	u := &unstructured.Unstructured{}
	if folded(n.YNode()) {
		data, err := n.MarshalJSON()
		if err != nil || u.UnmarshalJSON(data) != nil {
			return nil, false
		}
	} else {
		if err := n.YNode().Decode(&u.Object); err != nil {
			return nil, false
		}
		if _, ok := jsonValue(u.Object); !ok {
			return nil, false
		}
	}
	return u, tidy(u.Object, n)
}

func folded(n *kyaml.Node) bool {
	return n.Style&kyaml.FoldedStyle != 0 || slices.ContainsFunc(n.Content, folded)
}

// tidy does to the annotations of n's object what kustomize does when it takes its own ones away at
// the end of a build (RemoveBuildAnnotations in its api/resource/resource.go): none are left out, and
// all values become text. It returns false where that is not so simple.
func tidy(object map[string]any, n *kyaml.RNode) bool {
	meta, _ := object["metadata"].(map[string]any)
	given, ok := meta["annotations"]
	if !ok {
		return true
	}
	values, ok := given.(map[string]any)
	if given != nil && !ok {
		return false
	}
	if len(values) == 0 {
		delete(meta, "annotations")
		return true
	}
	var texts map[string]string
	for k, v := range values {
		switch v.(type) {
		case string:
		case bool, int64, float64:
			if texts == nil {
				texts = n.GetAnnotations()
			}
			values[k] = texts[k]
		default:
			return false
		}
	}
	return true
}

// jsonValue converts what the YAML parser makes into what the JSON parser of apimachinery makes, in place.
func jsonValue(v any) (any, bool) {
	switch v := v.(type) {
	case nil, bool, string, int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		for i := range v {
			e, ok := jsonValue(v[i])
			if !ok || e == nil {
				// Kustomize refuses an empty item.
				return nil, false
			}
			v[i] = e
		}
		return v, true
	case map[string]any:
		for k := range v {
			e, ok := jsonValue(v[k])
			if !ok {
				return nil, false
			}
			v[k] = e
		}
		return v, true
	}
	return nil, false
}
