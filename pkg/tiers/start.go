package tiers

import (
	"context"
	"errors"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// start finds the entry path and the root tier.
func (l *loader) start(ctx context.Context) error {
	if err := l.mapSources(); err != nil {
		return err
	}
	entry, err := l.chooseEntry()
	if err != nil {
		return err
	}
	l.entry = entry.Path
	if e, err := l.tree.Stat(entry.Path); err != nil || !e.IsDir() {
		return &PathNotFoundError{Path: entry.Path, Revision: l.tree.Revision}
	}
	whole, err := render.NewSource(l.tree, ".", "")
	if err != nil {
		return err
	}
	// A first look without patches or variables, to find the Kustomization that points here.
	look := render.Options{AllowRemoteBases: l.opts.AllowRemoteBases}
	if !l.opts.Objects {
		look.Want = func(id render.Identity) bool {
			return l.wanted.want(id) || strings.HasPrefix(id.APIVersion, "source.toolkit.fluxcd.io/")
		}
	}
	var first *render.Result
	var failed error
	if err := unlessDone(ctx, func() { first, failed = whole.Build(ctx, bareKustomization(entry.Path), look) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if err := unreadableEntry(first); err != nil {
		return err
	}
	if err := l.findRoot(first.Objects, &entry); err != nil {
		return err
	}
	l.tiers[l.root.tier.Key] = l.root
	l.needs(l.root)
	if err := l.ownContent(whole, first.Objects, entry); err != nil {
		return err
	}
	if l.root.src == whole && buildsAsItIs(l.root) {
		l.root.look = first
	}
	return nil
}

// ownContent opens the source that the entry path itself is read from.
func (l *loader) ownContent(whole *render.Source, objects []render.Object, entry Entry) error {
	root := l.opts.Root
	if root == "" {
		root = entry.Root
	}
	src, ignore := whole, l.ownIgnore(objects)
	if (root != "" && root != ".") || ignore != "" {
		var err error
		if src, err = render.NewSource(l.tree, path.Clean(root), ignore); err != nil {
			return &PathNotFoundError{Path: root, Revision: l.tree.Revision}
		}
	}
	if _, mapped := l.contents[l.root.tier.Source]; !mapped {
		l.contents[l.root.tier.Source] = src
	}
	l.root.src = l.contents[l.root.tier.Source]
	return nil
}

// buildsAsItIs reports whether a Kustomization adds nothing to the kustomization file of its folder.
func buildsAsItIs(s *state) bool {
	spec, _ := s.raw.Object["spec"].(map[string]any)
	for _, field := range []string{"patches", "components", "images", "targetNamespace", "namePrefix",
		"nameSuffix", "buildMetadata", "patchesStrategicMerge", "patchesJson6902"} {
		if _, ok := spec[field]; ok {
			return false
		}
	}
	return true
}

// chooseEntry takes the path that was asked for, or the only one found.
func (l *loader) chooseEntry() (Entry, error) {
	if l.opts.Path != "" {
		return Entry{Path: path.Clean(strings.TrimPrefix(l.opts.Path, "/"))}, nil
	}
	found, err := FindEntries(l.tree)
	if err != nil {
		return Entry{}, err
	}
	switch len(found) {
	case 0:
		return Entry{}, &NoEntryError{Dir: l.tree.Dir}
	case 1:
		return found[0], nil
	}
	e := &AmbiguousEntryError{}
	for _, f := range found {
		e.Paths = append(e.Paths, f.Path)
	}
	return Entry{}, e
}

// unreadableEntry says why the entry path gives nothing at all.
func unreadableEntry(res *render.Result) error {
	if len(res.Objects) > 0 {
		return nil
	}
	for _, f := range res.Faults {
		var fe *render.FileError
		if errors.As(f, &fe) {
			return &ParseError{File: fe.File, Line: fe.Line, Err: errors.New(fe.Reason())}
		}
	}
	return nil
}

// findRoot sets the tier of the entry path: the Kustomization in it that points to it, or the one
// that its sync object stands for. It completes the entry with the artifact's root.
func (l *loader) findRoot(objects []render.Object, entry *Entry) error {
	best := 0
	for _, o := range objects {
		if o.GroupVersionKind().Group != kustomizeGroup || o.GetKind() != "Kustomization" {
			continue
		}
		p, _, _ := unstructured.NestedString(o.Object, "spec", "path")
		root, ok := rootFor(entry.Path, p)
		if !ok || !mayBeRoot(o, root) || (entry.Root != "" && entry.Root != root) ||
			(l.opts.Root != "" && path.Clean(l.opts.Root) != root) {
			continue
		}
		// What is wrong with it is reported once it is rendered.
		_, o.Unstructured = l.schema.check(o.Unstructured, true)
		s, err := newState(o)
		if score := l.likeSync(s, objects); err == nil && score > best {
			best, l.root, entry.Root = score, s, root
		}
	}
	if l.root != nil {
		return nil
	}
	return l.makeRoot(objects, entry)
}

// likeSync grades how much a Kustomization that fits the entry path looks like the one that applies
// it: another one may read the same path of another repository.
func (l *loader) likeSync(s *state, objects []render.Object) int {
	score := 1
	if path.Base(s.tier.File) == syncFile {
		score += 8
	}
	if s.tier.Name == s.tier.Kustomization.Spec.SourceRef.Name {
		score += 2
	}
	if s.tier.Name == "flux-system" {
		score += 2
	}
	for _, o := range objects {
		if u, _, _ := unstructured.NestedString(o.Object, "spec", "url"); u != "" && l.isRemote(u) &&
			sourceID(o.GetKind(), o.GetNamespace(), o.GetName()) == s.tier.Source {
			score += 16
		}
	}
	return score
}

// makeRoot makes up the root where git has none.
func (l *loader) makeRoot(objects []render.Object, entry *Entry) error {
	if entry.File == "" {
		found, err := FindEntries(l.tree)
		if err != nil {
			return err
		}
		for _, e := range found {
			if e.Path == entry.Path {
				*entry = e
			}
		}
	}
	guess := ""
	if entry.Source == "" {
		guess = guessSource(objects, sourceID("GitRepository", "flux-system", "flux-system"))
		entry.Root = l.guessRoot(objects, entry.Path, guess)
	}
	if l.opts.Root != "" {
		entry.Root = path.Clean(l.opts.Root)
	}
	sync := render.Patch(syncKustomization(*entry), entry.Patches)
	s, err := newState(render.Object{Unstructured: sync, File: entry.File, Line: entry.Line})
	if err != nil {
		return err
	}
	s.tier.Synthetic = true
	if guess != "" {
		s.tier.Source = guess
	}
	l.root = s
	return nil
}

// mayBeRoot reports whether a Kustomization that fits the entry path can be the one that applies it.
// A path that fits only below some folder is no proof, so it must look like a sync, whose source
// has the Kustomization's own name.
func mayBeRoot(o render.Object, root string) bool {
	ref := nested(o.Object, "spec", "sourceRef")
	return ref["kind"] != "ExternalArtifact" && (root == "." || ref["name"] == o.GetName())
}

// rootFor finds the artifact's root such that a spec.path names the entry path.
func rootFor(entry, specPath string) (string, bool) {
	rel := strings.TrimPrefix(path.Clean("/"+specPath), "/")
	switch {
	case rel == entry, rel == "" && entry == ".":
		return ".", true
	case rel == "":
		return "", false
	}
	return strings.CutSuffix(entry, "/"+rel)
}

// guessSource names the source that the entry path itself most likely comes from: the one that
// most Kustomizations in it use and that is not defined in it.
func guessSource(objects []render.Object, standard string) string {
	defined := map[string]bool{}
	uses := map[string]int{}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		if isSource(gvk.Group, gvk.Kind) {
			defined[sourceID(gvk.Kind, o.GetNamespace(), o.GetName())] = true
		}
		if gvk.Group == kustomizeGroup && gvk.Kind == "Kustomization" {
			if s, err := newState(o); err == nil && s.tier.Source != "" && s.tier.Kustomization.Spec.SourceRef.Kind != "ExternalArtifact" {
				uses[s.tier.Source]++
			}
		}
		if gvk.Kind == "ArtifactGenerator" {
			for _, id := range generatorSources(o) {
				uses[id]++
			}
		}
	}
	best := standard
	for id, n := range uses {
		if !defined[id] && (n > uses[best] || (n == uses[best] && id < best)) {
			best = id
		}
	}
	return best
}

// guessRoot finds the folder that the paths of the Kustomizations in the entry path are relative to:
// the topmost of those above the entry path in which most of them exist.
func (l *loader) guessRoot(objects []render.Object, entry, source string) string {
	var paths []string
	for _, o := range objects {
		if o.GroupVersionKind().Group != kustomizeGroup {
			continue
		}
		if s, err := newState(o); err == nil && s.tier.Source == source && s.tier.Kustomization.Spec.Path != "" {
			paths = append(paths, s.tier.Kustomization.Spec.Path)
		}
	}
	best, root := 0, "."
	for _, dir := range ancestors(path.Dir(entry)) {
		n := 0
		for _, p := range paths {
			if e, err := l.tree.Stat(path.Join(dir, path.Clean("/"+p))); err == nil && e.IsDir() {
				n++
			}
		}
		if n > best {
			best, root = n, dir
		}
	}
	return root
}

// ownIgnore returns spec.ignore of the source that the root reads, when the entry path defines it.
func (l *loader) ownIgnore(objects []render.Object) string {
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		if isSource(gvk.Group, gvk.Kind) && sourceID(gvk.Kind, o.GetNamespace(), o.GetName()) == l.root.tier.Source {
			ignore, _, _ := unstructured.NestedString(o.Object, "spec", "ignore")
			return ignore
		}
	}
	return ""
}

func bareKustomization(dir string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"path": "./" + dir}}}
}

// syncKustomization is the Kustomization that flux bootstrap or Flux Operator make of a sync; its
// spec is that of flux-operator's internal/builder templates, defaults left out.
func syncKustomization(e Entry) *unstructured.Unstructured {
	name, ns, kind := e.Name, e.Namespace, e.Source
	if name == "" {
		name = "flux-system"
	}
	if ns == "" {
		ns = "flux-system"
	}
	if kind == "" {
		kind = "GitRepository"
	}
	rel := e.Path
	if e.Root != "" && e.Root != "." {
		rel = strings.TrimPrefix(strings.TrimPrefix(rel, e.Root), "/")
	}
	rel = "./" + rel
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kustomizeGroup + "/v1",
		"kind":       "Kustomization",
		"metadata":   map[string]any{"name": name, "namespace": ns},
		"spec": map[string]any{
			"interval":  "10m0s",
			"path":      rel,
			"prune":     true,
			"sourceRef": map[string]any{"kind": kind, "name": name},
		},
	}}
}
