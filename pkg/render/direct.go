package render

import (
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/filters/namespace"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// direct builds with kustomize's own patches and filters, but without what its target does around
// them and what takes most of its time: it merges its configuration for every folder, parses a patch
// for every build and compares each object with all others after each step.
//
// It knows resources, components, generators, patches, the namespace, labels, annotations, images,
// replicas, replacements, configurations of name references, and transformers that set annotations or labels. It returns false for all else, for
// whatever is wrong, and where what is renamed has other names than a hash gives: then kustomize builds,
// and says what it has to say. Tests hold its results to kustomize's. The order of the steps is that of
// accumulateTarget in kustomize's api/internal/target/kusttarget.go.
func (b *builder) direct(kus *kustypes.Kustomization) (out []Object, ok bool) {
	if len(b.keep) > 0 || b.c.openapi || b.opts.AllowRemoteBases {
		return nil, false
	}
	for _, k := range b.c.kustomizations {
		if file := b.src.kustomization(k.dir); file != nil && file.reserved {
			return nil, false
		}
		now := b.asEdited(k)
		if !directly(now) || len(b.src.kustomizationFiles(k.dir)) > 1 ||
			slices.ContainsFunc(now.Configurations, func(c string) bool { return !b.src.namesOnly(path.Join(k.dir, c)) }) {
			return nil, false
		}
	}
	loadSchema()
	schema.RLock()
	defer schema.RUnlock()
	defer func() {
		// Kustomize's filters panic on some invalid objects, as kustomize itself does.
		if recover() != nil {
			out, ok = nil, false
		}
	}()
	bare := *kus
	bare.BuildMetadata = nil
	d := &assembly{b}
	parts, ok := d.target(nil, b.res.Dir, &bare, []string{b.res.Dir})
	if !ok || !refer(parts) || !d.rename(parts) {
		return nil, false
	}
	objects := make([]*unstructured.Unstructured, len(parts))
	ok = each(len(parts), func(i int) bool {
		o, ok := parts[i].object()
		objects[i] = o
		return ok && o.GetName() != "" && o.GetKind() != "" && o.GetAPIVersion() != ""
	})
	if !ok {
		return nil, false
	}
	for i, o := range objects {
		if local, set := o.GetAnnotations()[konfig.IgnoredByKustomizeAnnotation]; set && local != "false" {
			continue
		}
		if o.GroupVersionKind().Group != "kustomize.config.k8s.io" {
			out = append(out, Object{Unstructured: o, File: parts[i].file})
		}
	}
	return out, true
}

// directly reports whether a kustomization file uses only what direct knows.
func directly(k *kustypes.Kustomization) bool {
	rest := *k
	for _, kind := range []struct{ kind, version string }{{kustypes.KustomizationKind, kustypes.KustomizationVersion}, {kustypes.ComponentKind, kustypes.ComponentVersion}} {
		if k.Kind == kind.kind && (k.APIVersion == kind.version || k.APIVersion == "") {
			rest.TypeMeta = kustypes.TypeMeta{}
		}
	}
	if k.Kind == "" && k.APIVersion == kustypes.KustomizationVersion {
		rest.TypeMeta = kustypes.TypeMeta{}
	}
	rest.MetaData, rest.BuildMetadata = nil, nil
	rest.Resources, rest.Bases, rest.Components, rest.Namespace = nil, nil, nil, ""
	rest.Patches, rest.PatchesStrategicMerge = nil, nil
	rest.ConfigMapGenerator, rest.SecretGenerator, rest.GeneratorOptions = nil, nil, nil
	rest.Labels, rest.CommonLabels, rest.CommonAnnotations, rest.Images, rest.Replicas = nil, nil, nil, nil, nil
	rest.Configurations, rest.Replacements, rest.Transformers = nil, nil, nil
	return reflect.DeepEqual(rest, kustypes.Kustomization{})
}

// part is one object while it is being built.
type part struct {
	res  *resource.Resource
	file string
	// before are the identities that it had, the first one first.
	before []resid.ResId
}

// object is the finished object.
func (p *part) object() (*unstructured.Unstructured, bool) {
	p.res.RemoveBuildAnnotations()
	return object(&p.res.RNode)
}

func (p *part) remember() { p.before = append(p.before, p.res.CurId()) }

// ever reports whether one of the identities matches that the object has or had.
func (p *part) ever(match func(resid.ResId) bool) bool {
	return match(p.res.CurId()) || slices.ContainsFunc(p.before, match)
}

func (p *part) original() resid.ResId {
	if len(p.before) > 0 {
		return p.before[0]
	}
	return p.res.CurId()
}

// assembly is the state of one build.
type assembly struct{ *builder }

// target builds a folder on top of the parts that are there, which a component changes with its own.
func (d *assembly) target(parts []*part, dir string, kus *kustypes.Kustomization, above []string) ([]*part, bool) {
	for _, ref := range slices.Concat(kus.Resources, kus.Bases) {
		name := path.Join(dir, ref)
		var more []*part
		var ok bool
		if d.src.isFile(name) {
			more, ok = d.file(name)
		} else {
			more, ok = d.folder(nil, name, kustypes.KustomizationKind, above)
		}
		if !ok {
			return nil, false
		}
		parts = append(parts, more...)
	}
	parts, ok := d.generate(parts, dir, kus)
	if !ok || !distinct(parts) {
		return nil, false
	}
	for _, ref := range kus.Components {
		if parts, ok = d.folder(parts, path.Join(dir, ref), kustypes.ComponentKind, above); !ok {
			return nil, false
		}
	}
	for _, p := range kus.PatchesStrategicMerge {
		if parts, ok = d.patchByName(parts, dir, string(p)); !ok {
			return nil, false
		}
	}
	for _, p := range kus.Patches {
		if parts, ok = d.patch(parts, dir, p); !ok {
			return nil, false
		}
	}
	ok = d.setNamespace(parts, kus.Namespace) && d.transform(parts, kus) && d.replace(parts, dir, kus.Replacements) &&
		d.configured(parts, dir, kus.Transformers) && distinct(parts)
	return parts, ok
}

// folder builds a folder of the given kind.
func (d *assembly) folder(parts []*part, dir, kind string, above []string) ([]*part, bool) {
	k := d.src.kustomization(dir)
	if k == nil || k.err != nil {
		return nil, false
	}
	kus, real := d.asEdited(kustDir{dir, k.kus}), d.real(dir)
	if (kus.Kind == kustypes.ComponentKind) != (kind == kustypes.ComponentKind) || slices.ContainsFunc(above, func(a string) bool { return holds(real, d.real(a)) }) {
		return nil, false
	}
	return d.target(parts, dir, kus, append(slices.Clone(above), dir))
}

// file reads the objects of a file.
func (d *assembly) file(name string) ([]*part, bool) {
	m := d.src.manifestAt(name)
	if m.err != nil || m.reserved {
		return nil, false
	}
	var nodes []*kyaml.RNode
	if m.simple {
		for _, doc := range m.docs {
			nodes = append(nodes, kyaml.NewRNode(doc.node))
		}
	} else {
		var err error
		if nodes, err = d.src.resources(name); err != nil {
			return nil, false
		}
	}
	from := d.src.tree.Origin(name)
	out := make([]*part, 0, len(nodes))
	for _, n := range nodes {
		if id := identity(n); id.Name == "" || id.Kind == "" || id.APIVersion == "" {
			return nil, false
		}
		out = append(out, &part{res: &resource.Resource{RNode: *n.Copy()}, file: from})
	}
	return out, true
}

// distinct reports whether no two objects have one identity.
func distinct(parts []*part) bool {
	seen := make(map[resid.ResId]bool, len(parts))
	for _, p := range parts {
		id := p.res.CurId()
		id.Namespace = id.EffectiveNamespace()
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// setNamespace is kustomize's NamespaceTransformer.
func (d *assembly) setNamespace(parts []*part, ns string) bool {
	if ns == "" {
		return true
	}
	// As in kustomize's api/internal/konfig/builtinpluginconsts/namespace.go.
	filter := namespace.Filter{Namespace: ns, FsSlice: kustypes.FsSlice{
		{Path: kustypes.MetadataNamePath, Gvk: resid.Gvk{Kind: "Namespace"}, CreateIfNotPresent: true},
		{Path: "spec/service/namespace", Gvk: resid.Gvk{Group: "apiregistration.k8s.io", Kind: "APIService"}, CreateIfNotPresent: true},
		{Path: "spec/conversion/webhook/clientConfig/service/namespace", Gvk: resid.Gvk{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}},
	}}
	return each(len(parts), func(i int) bool {
		parts[i].remember()
		return parts[i].res.ApplyFilter(filter) == nil
	})
}

// metadataOnly reports whether labels go nowhere but into the metadata.
func metadataOnly(all []kustypes.Label) bool {
	return !slices.ContainsFunc(all, func(l kustypes.Label) bool {
		return l.IncludeSelectors || l.IncludeTemplates || len(l.FieldSpecs) > 0
	})
}

// setLabels is kustomize's LabelTransformer for such labels.
func setLabels(parts []*part, all []kustypes.Label) bool {
	for _, l := range all {
		filter := labels.Filter{Labels: l.Pairs, FsSlice: kustypes.FsSlice{{Path: "metadata/labels", CreateIfNotPresent: true}}}
		if len(l.Pairs) > 0 && !each(len(parts), func(i int) bool { return parts[i].res.ApplyFilter(filter) == nil }) {
			return false
		}
	}
	return true
}
