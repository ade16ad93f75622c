package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kustypes "sigs.k8s.io/kustomize/api/types"
)

// Options change how a Kustomization is built. The zero value builds what git alone determines.
type Options struct {
	// Lookup answers spec.postBuild.substituteFrom; nil knows nothing.
	Lookup Lookup
	// Vars are variables for Kustomizations that use substituteFrom, over what Lookup says.
	Vars map[string]string
	// AllowRemoteBases lets kustomize fetch URLs, by git and over HTTP. It is off by default, and a
	// remote base is then a fault.
	AllowRemoteBases bool
	// Want limits the result to what matters to the caller: an object is left out if its manifest's
	// identity is not wanted, and where kustomize has to be run for the others it is left in. A folder
	// in whose manifests nothing is wanted is not built at all. nil wants everything.
	Want func(Identity) bool
	// Kustomize has kustomize build even what needs none of it; for comparison.
	Kustomize bool
}

// Unknown is a variable that no input defines and that the manifest gives no default.
type Unknown struct {
	Name string
	// Object is the first object that uses it, File and Line where that is written.
	Object, File string
	Line         int
}

// Result is a built Kustomization.
type Result struct {
	// Dir is the repository-relative folder that was built.
	Dir string
	// Objects are in the order kustomize gives them.
	Objects []Object
	// Unknown are the variables left as ${NAME}, sorted by name. Where Missing is empty the
	// controller fails the build over them.
	Unknown []Unknown
	// Missing are the required inputs of the substitution that the Lookup does not know.
	Missing []Reference
	// Faults say why the controller's build would fail; Objects is then what can be built without
	// the parts at fault, in the best case all but one file.
	Faults []error
	// Linked are the files that the build reads through a symbolic link, which source-controller
	// leaves out of an artifact made from git: the controller would not find them.
	Linked []string
	// Partial says that objects were left out because they are not wanted.
	Partial bool
	// Raw says that kustomize refused the whole and Objects are the documents as files write them.
	Raw bool
}

// Build renders one Flux Kustomization of any API version from this source. The order of the steps
// is that of reconcile, generate, build and apply in kustomize-controller's
// internal/controller/kustomization_controller.go. Owner labels are left out.
//
// Objects is filled as far as it can be, even when Faults say that the controller would fail. The
// error is for what leaves nothing to show: a *PathError, or that ctx is done.
func (s *Source) Build(ctx context.Context, ks *unstructured.Unstructured, opts Options) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	specPath, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	res := &Result{Dir: s.Resolve(specPath)}
	if !s.isDir(res.Dir) {
		return res, &PathError{Dir: res.Dir}
	}
	o, err := overlayOf(ks)
	if err != nil {
		res.Faults = append(res.Faults, fmt.Errorf("reading the spec: %w", err))
	}
	b := &builder{src: s, opts: opts, res: res, edited: map[string]*kustypes.Kustomization{}}
	res.Objects = b.run(o)
	b.finish(ks)
	return res, nil
}

// Finish does to the result of a build what ks adds to it afterwards: variables and common metadata. It
// changes res. Build of a Kustomization with nothing but a path, and then Finish, is Build of ks where
// the rest of its spec does not change what is built.
func (s *Source) Finish(res *Result, ks *unstructured.Unstructured, opts Options) {
	(&builder{src: s, opts: opts, res: res}).finish(ks)
}

func (b *builder) finish(ks *unstructured.Unstructured) {
	if err := b.postBuild(ks, b.res.Objects); err != nil {
		b.fault(err)
	}
	setCommonMetadata(ks, b.res.Objects)
	b.locate(b.res.Objects)
}

// builder is the state of one build.
type builder struct {
	src  *Source
	opts Options
	res  *Result
	// edited are the kustomization files that references were left out of, by folder.
	edited map[string]*kustypes.Kustomization
	keep   []string
	c      *closure
}

// run builds the folder, at worst without the parts at fault, or reads its files as they are written
// if kustomize refuses whatever is left out.
func (b *builder) run(o overlay) []Object {
	kus, file, keep, err := b.src.manifest(b.res.Dir, o)
	if err != nil {
		b.fault(err)
		if kus == nil {
			b.c = &closure{files: b.src.beside(b.res.Dir)}
			return b.raw()
		}
	}
	b.keep = keep
	closed := *kus
	if !slices.Contains(keep, kustypes.OriginAnnotations) {
		closed.BuildMetadata = keep
	}
	b.c = b.src.closure(b.res.Dir, file, &closed, b.opts.AllowRemoteBases)
	b.res.Linked = b.c.linked
	each(len(b.c.resources), func(i int) bool { return b.src.manifestAt(b.c.resources[i]) != nil })
	if !b.opts.Kustomize {
		if objects, ok := b.plain(kus); ok {
			return objects
		}
	}
	if b.skip() {
		b.res.Partial = true
		return nil
	}
	b.several()
	for _, f := range b.c.faults {
		b.fault(f.err)
		kus = b.leaveOut(kus, f)
	}
	if !b.opts.Kustomize {
		if objects, ok := b.direct(kus); ok {
			return objects
		}
	}
	objects, err := b.kustomize(kus, file)
	if err == nil {
		return objects
	}
	broken := b.broken()
	for _, f := range broken {
		b.fault(f.err)
		kus = b.leaveOut(kus, f)
	}
	if len(broken) > 0 {
		objects, err = b.kustomize(kus, file)
	}
	if err == nil {
		return objects
	}
	if len(b.res.Faults) == 0 {
		// Otherwise what kustomize misses is most likely what was left out.
		b.fault(b.explain(err))
	}
	return b.raw()
}

// skip reports whether nothing in the build's files is wanted, and nothing in them is wrong as far
// as reading them tells.
func (b *builder) skip() bool {
	if b.opts.Want == nil || len(b.c.faults) > 0 ||
		slices.ContainsFunc(b.c.kustomizations, func(k kustDir) bool { return len(b.src.kustomizationFiles(k.dir)) > 1 }) {
		return false
	}
	for _, name := range b.c.generated {
		if b.opts.Want(name) {
			return false
		}
	}
	for _, file := range b.c.resources {
		m := b.src.manifestAt(file)
		if m.err != nil || slices.ContainsFunc(m.docs, func(d document) bool { return b.opts.Want(d.Identity) }) {
			return false
		}
	}
	return true
}

func (b *builder) fault(err error) { b.res.Faults = append(b.res.Faults, err) }

// leaveOut takes a reference out of the kustomization file that holds it.
func (b *builder) leaveOut(top *kustypes.Kustomization, f fault) *kustypes.Kustomization {
	if f.dir == b.res.Dir {
		top = without(top, f.ref)
		b.edited[f.dir] = top
		return top
	}
	kus := without(b.asEdited(kustDir{f.dir, b.src.kustomization(f.dir).kus}), f.ref)
	// Never empty, which kustomize would refuse.
	kus.BuildMetadata = []string{kustypes.OriginAnnotations}
	b.edited[f.dir] = kus
	return top
}

// asEdited is a kustomization file without the references that were left out of it.
func (b *builder) asEdited(k kustDir) *kustypes.Kustomization {
	if edited, ok := b.edited[k.dir]; ok {
		return edited
	}
	return k.kus
}

// postBuild substitutes variables in every object that does not opt out.
func (b *builder) postBuild(ks *unstructured.Unstructured, objects []Object) error {
	raw, ok, err := unstructured.NestedMap(ks.Object, "spec", "postBuild")
	if !ok || err != nil {
		return err
	}
	var p postBuild
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &p); err != nil {
		return fmt.Errorf("reading spec.postBuild: %w", err)
	}
	vars := p.variables(ks.GetNamespace(), b.opts.Lookup, b.opts.Vars)
	b.res.Missing = vars.missing
	if !vars.active() {
		return nil
	}
	if err := vars.invalid(); err != nil {
		return err
	}
	var errs []error
	for i := range objects {
		if err := b.substitute(&objects[i], vars); err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortFunc(b.res.Unknown, func(a, b Unknown) int {
		if a.Name != b.Name {
			return cmpString(a.Name, b.Name)
		}
		return cmpString(a.Object, b.Object)
	})
	b.res.Unknown = slices.CompactFunc(b.res.Unknown, func(a, b Unknown) bool { return a.Name == b.Name })
	return errors.Join(errs...)
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (b *builder) substitute(o *Object, vars variables) error {
	if o.GetLabels()[substituteKey] == "disabled" || o.GetAnnotations()[substituteKey] == "disabled" {
		return nil
	}
	if !substitutable(o.Object) {
		return nil
	}
	id := o.ID()
	data, unknown, err := vars.substitute(o.Object)
	for _, name := range unknown {
		b.res.Unknown = append(b.res.Unknown, Unknown{Name: name, Object: id, File: o.File})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if data == nil {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	o.Unstructured = u
	return nil
}

// setCommonMetadata adds spec.commonMetadata, which the controller does after substitution.
func setCommonMetadata(ks *unstructured.Unstructured, objects []Object) {
	labels, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(ks.Object, "spec", "commonMetadata", "annotations")
	for _, o := range objects {
		if len(labels) > 0 {
			o.SetLabels(merge(o.GetLabels(), labels))
		}
		if len(annotations) > 0 {
			o.SetAnnotations(merge(o.GetAnnotations(), annotations))
		}
	}
}

func merge(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	for k, v := range from {
		into[k] = v
	}
	return into
}
