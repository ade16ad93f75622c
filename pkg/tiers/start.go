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
	first, err := whole.Build(ctx, bareKustomization(entry.Path), render.Options{
		AllowRemoteBases: l.opts.AllowRemoteBases,
		Want:             func(id render.Identity) bool { return strings.Contains(id.APIVersion, "toolkit.fluxcd.io/") },
	})
	if err != nil {
		return err
	}
	if err := unreadableEntry(first); err != nil {
		return err
	}
	l.root = l.findRoot(first.Objects, entry)
	l.tiers[l.root.tier.Key] = l.root
	l.needs(l.root)
	root := l.opts.Root
	if root == "" {
		root = entry.Root
	}
	src := whole
	if root != "" && root != "." {
		if src, err = render.NewSource(l.tree, root, ""); err != nil {
			return &PathNotFoundError{Path: root, Revision: l.tree.Revision}
		}
	}
	if ignore := l.ownIgnore(first.Objects); ignore != "" {
		if src, err = render.NewSource(l.tree, src.Dir(), ignore); err != nil {
			return err
		}
	}
	if _, mapped := l.contents[l.root.tier.Source]; !mapped {
		l.contents[l.root.tier.Source] = src
	}
	l.root.src = l.contents[l.root.tier.Source]
	return nil
}

// chooseEntry takes the path that was asked for, with what its sync object says, or the only one found.
func (l *loader) chooseEntry() (Entry, error) {
	want := ""
	if l.opts.Path != "" {
		want = path.Clean(strings.TrimPrefix(l.opts.Path, "/"))
	}
	found, err := FindEntries(l.tree)
	if err != nil {
		return Entry{}, err
	}
	if want != "" {
		for _, e := range found {
			if e.Path == want {
				return e, nil
			}
		}
		return Entry{Path: want}, nil
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
			return &ParseError{File: fe.File, Line: fe.Line, Err: fe.Err}
		}
	}
	return nil
}

// findRoot returns the tier of the entry path: the Kustomization in it that points to it, or the
// one that its sync object stands for.
func (l *loader) findRoot(objects []render.Object, entry Entry) *state {
	for _, o := range objects {
		if o.GroupVersionKind().Group != kustomizeGroup || o.GetKind() != "Kustomization" {
			continue
		}
		p, _, _ := unstructured.NestedString(o.Object, "spec", "path")
		if path.Join("/", entry.Root, path.Clean("/"+p)) == path.Join("/", entry.Path) {
			if s, err := newState(o); err == nil {
				return s
			}
		}
	}
	s, _ := newState(render.Object{Unstructured: syncKustomization(entry), File: entry.File, Line: entry.Line})
	s.tier.Synthetic = true
	if entry.Source == "" {
		s.tier.Source = guessSource(objects, s.tier.Source)
	}
	return s
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
			if s, err := newState(o); err == nil && s.tier.Source != "" {
				uses[s.tier.Source]++
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
	rel := "./" + strings.TrimPrefix(strings.TrimPrefix(e.Path, e.Root), "/")
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
