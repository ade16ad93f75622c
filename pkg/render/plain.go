package render

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Identity is what a manifest says an object is, before anything transforms it.
type Identity struct {
	APIVersion, Kind, Namespace, Name string
}

// parsed is a manifest as kustomize reads it: lists taken apart, anchors resolved. It is parsed
// once, however many builds use it, and never changed.
type parsed struct {
	once  sync.Once
	nodes []*kyaml.RNode
	ids   []Identity
	err   error
}

func (s *Source) parse(file string) *parsed {
	v, ok := s.manifests.Load(file)
	if !ok {
		v, _ = s.manifests.LoadOrStore(file, &parsed{})
	}
	p := v.(*parsed)
	p.once.Do(func() {
		data, err := s.tree.ReadFile(file)
		if err != nil {
			p.err = err
			return
		}
		p.nodes, p.err = nodesOf(s.factory, data)
		for _, n := range p.nodes {
			p.ids = append(p.ids, identity(n))
			if key := repeatedKey(n.YNode()); key != "" && p.err == nil {
				p.err = fmt.Errorf("mapping key %q is given twice", key)
			}
		}
	})
	return p
}

// nodesOf parses as the controller's build does. Kustomize panics on some input.
func nodesOf(f *resource.Factory, data []byte) (nodes []*kyaml.RNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r}
		}
	}()
	return f.RNodesFromBytes(data)
}

func newFactory() *resource.Factory { return provider.NewDefaultDepProvider().GetResourceFactory() }

func identity(n *kyaml.RNode) Identity {
	id := Identity{APIVersion: n.GetApiVersion(), Kind: n.GetKind()}
	if meta := n.Field("metadata"); meta != nil {
		id.Name, id.Namespace = scalar(meta.Value, "name"), scalar(meta.Value, "namespace")
	}
	return id
}

// repeatedKey returns a key that a mapping holds twice. Kustomize reads such a manifest and fails
// when it writes the result.
func repeatedKey(n *kyaml.Node) string {
	if n == nil {
		return ""
	}
	step := 1
	if n.Kind == kyaml.MappingNode {
		step = 2
		for i := 0; i < len(n.Content); i += 2 {
			for j := 0; j < i; j += 2 {
				if a, b := n.Content[i], n.Content[j]; a.Kind == kyaml.ScalarNode && a.Value == b.Value && a.Tag == b.Tag && a.Kind == b.Kind {
					return a.Value
				}
			}
		}
	}
	for i := step - 1; i < len(n.Content); i += step {
		if c := n.Content[i]; len(c.Content) > 0 {
			if key := repeatedKey(c); key != "" {
				return key
			}
		}
	}
	return ""
}

func scalar(n *kyaml.RNode, field string) string {
	if f := n.Field(field); f != nil && f.Value != nil {
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
		if !onlyResources(k.kus) || b.src.kustomizationFiles(k.dir) > 1 {
			return nil, false
		}
	}
	files, ok := b.expand(b.res.Dir, kus, []string{b.res.Dir})
	if !ok {
		return nil, false
	}
	type name struct{ apiVersion, kind, name string }
	seen := map[name][]string{}
	var out []Object
	for _, file := range files {
		p := b.src.parse(file)
		if p.err != nil {
			return nil, false
		}
		where := ""
		for i, id := range p.ids {
			k := name{id.APIVersion, id.Kind, id.Name}
			// The same name twice may be a conflict, which depends on the kind's scope.
			if others := seen[k]; slices.Contains(others, id.Namespace) || (len(others) > 0 && (id.Namespace == "" || slices.Contains(others, ""))) {
				return nil, false
			}
			seen[k] = append(seen[k], id.Namespace)
			if id.Name == "" || id.Kind == "" || id.APIVersion == "" {
				return nil, false
			}
			if b.opts.Want != nil && !b.opts.Want(id) {
				b.res.Partial = true
				continue
			}
			o, ok := object(p.nodes[i])
			if !ok {
				return nil, false
			}
			if local, set := o.GetAnnotations()[konfig.IgnoredByKustomizeAnnotation]; set && local != "false" {
				continue
			}
			if o.GroupVersionKind().Group == "kustomize.config.k8s.io" {
				continue
			}
			if where == "" {
				where = b.src.tree.Origin(file)
			}
			out = append(out, Object{Unstructured: o, File: where})
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

// object decodes a node as the round trip over JSON would: integers are int64, whole floats too.
func object(n *kyaml.RNode) (*unstructured.Unstructured, bool) {
	var m map[string]any
	if err := n.YNode().Decode(&m); err != nil {
		return nil, false
	}
	v, ok := jsonValue(m)
	if !ok {
		return nil, false
	}
	return &unstructured.Unstructured{Object: v.(map[string]any)}, true
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
			if !ok {
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
