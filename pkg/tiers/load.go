package tiers

import (
	"context"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

// kustomizeGroup is the API group of Flux Kustomizations, whatever the version.
const kustomizeGroup = "kustomize.toolkit.fluxcd.io"

// Load reads the graph below one entry path of a tree. Discovery goes on to a fixed point: the entry
// is rendered, the Kustomizations in it are, and so on. The result depends on the tree and the
// options alone.
//
// Errors: *NoEntryError and *AmbiguousEntryError when opts.Path is empty, *PathNotFoundError,
// *ParseError when the entry path cannot be built at all, *SourceError for an entry of opts.Sources.
func Load(ctx context.Context, tree *repo.Tree, opts Options) (*Graph, error) {
	l, err := newLoader(tree, opts)
	if err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	if err := l.discover(ctx); err != nil {
		return nil, err
	}
	// A dependency that is no Kustomization may be a HelmRelease.
	for _, s := range l.tiers {
		for _, d := range s.tier.DependsOn {
			if l.tiers[d] == nil {
				l.wanted.add("HelmRelease", d.Name)
			}
		}
	}
	if _, err := l.fulfil(ctx); err != nil {
		return nil, err
	}
	return l.graph(), nil
}

func newLoader(tree *repo.Tree, opts Options) (*loader, error) {
	s, err := newSchema()
	if opts.Objects {
		go render.Prepare()
	}
	return &loader{
		tree: tree, opts: opts, schema: s,
		tiers:    map[Key]*state{},
		sources:  map[string]*source{},
		configs:  map[string]*config{},
		charts:   map[Key]render.Object{},
		leftOut:  map[Key]render.Object{},
		contents: map[string]*render.Source{},
		wanted:   wanted{names: map[needed]bool{}, releases: opts.HelmReleases},

		artifacts: map[string]*generated{},
		providers: map[Key]render.Object{},
		expanded:  map[string]bool{},
	}, err
}

// loader is the state of one Load.
type loader struct {
	tree   *repo.Tree
	opts   Options
	schema *schema

	entry   string
	root    *state
	tiers   map[Key]*state
	sources map[string]*source
	configs map[string]*config
	// leftOut are the Kustomizations that opt out of being applied.
	leftOut map[Key]render.Object
	// charts are the HelmReleases found, by namespace and name.
	charts   map[Key]render.Object
	problems []Problem
	// contents are the sources whose files are at hand.
	contents map[string]*render.Source
	wanted   wanted
	// artifacts are the ExternalArtifacts that generators in git make.
	artifacts map[string]*generated
	// providers are the ResourceSetInputProviders found, sets the ResourceSets not expanded yet.
	providers map[Key]render.Object
	sets      []pendingSet
	expanded  map[string]bool
}

// discover renders tiers in rounds until no new one appears. A tier whose inputs are not known yet
// waits as long as other tiers may still bring them.
func (l *loader) discover(ctx context.Context) error {
	for {
		ready, waiting := l.pending()
		if len(ready) == 0 {
			if l.expandSets() {
				continue
			}
			if more, err := l.fulfil(ctx); more || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			if len(waiting) == 0 {
				return nil
			}
			// Nothing more will come: go on with the topmost of those that wait.
			top := waiting[0].depth
			for _, s := range waiting {
				top = min(top, s.depth)
			}
			for _, s := range waiting {
				if s.depth == top {
					ready = append(ready, s)
				}
			}
		}
		if err := l.build(ctx, ready); err != nil {
			return err
		}
		for _, s := range ready {
			l.absorb(s)
		}
	}
}

// pending lists the tiers to render, sorted: those whose source and variables are known, and the others.
func (l *loader) pending() (ready, waiting []*state) {
	for _, s := range l.tiers {
		if s.built {
			continue
		}
		if s.src == nil {
			s.src = l.contentOf(s.tier.Source)
		}
		if s.src != nil && l.known(s) {
			ready = append(ready, s)
		} else {
			waiting = append(waiting, s)
		}
	}
	byKey := func(a, b *state) int { return compareKeys(a.tier.Key, b.tier.Key) }
	slices.SortFunc(ready, byKey)
	slices.SortFunc(waiting, byKey)
	return ready, waiting
}

// sorted lists the tiers found so far by namespace and name.
func (l *loader) sorted() []*state {
	out := make([]*state, 0, len(l.tiers))
	for _, s := range l.tiers {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *state) int { return compareKeys(a.tier.Key, b.tier.Key) })
	return out
}

// absorb takes up what a rendered tier holds.
func (l *loader) absorb(s *state) {
	t := s.tier
	if s.src == nil {
		t.Opaque = l.whyUnknown(t.Source)
		return
	}
	t.Dir = s.src.Tree().Origin(s.res.Dir)
	l.reportBuild(s)
	if s.err != nil {
		return
	}
	if l.opts.Objects {
		t.Objects = s.res.Objects
	}
	if t.Kustomization.Spec.KubeConfig != nil {
		// What it applies lands on another cluster.
		return
	}
	for _, o := range s.res.Objects {
		l.take(s, o)
	}
}

// take sorts one object of a tier in.
func (l *loader) take(s *state, o render.Object) {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Group == kustomizeGroup && gvk.Kind == "Kustomization":
		l.child(s, o)
	case gvk.Group == "source.extensions.fluxcd.io" && gvk.Kind == "ArtifactGenerator":
		l.addGenerator(s, o)
	case isSource(gvk.Group, gvk.Kind):
		l.addSource(s, o)
	case gvk.Group == instanceGroup && gvk.Kind == "ResourceSet":
		l.expand(s, o)
	case gvk.Group == instanceGroup && gvk.Kind == "ResourceSetInputProvider":
		l.providers[Key{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
	case gvk.Group == "" && (gvk.Kind == "ConfigMap" || gvk.Kind == "Secret"):
		l.addConfig(s, o)
	case gvk.Group == "helm.toolkit.fluxcd.io" && gvk.Kind == "HelmRelease":
		l.addRelease(s, o)
	}
}

// child takes up a Kustomization that a tier applies.
func (l *loader) child(parent *state, o render.Object) {
	k := Key{Namespace: o.GetNamespace(), Name: o.GetName()}
	if k == parent.tier.Key {
		// The root applies itself. Its rendered form is the one that stays on the cluster.
		if parent.tier.Parent == nil {
			parent.tier.File, parent.tier.Line = o.File, o.Line
			l.checked(o, parent)
		}
		return
	}
	if flux.Skipped(o.Unstructured, nil) {
		l.leftOut[k] = o
		return
	}
	if old, ok := l.tiers[k]; ok {
		if p := old.tier.Parent; p == nil || *p != parent.tier.Key {
			l.duplicate(old, parent, o)
		}
		return
	}
	s, err := newState(l.checked(o, parent))
	if err != nil {
		l.invalid(o, oneLine(err))
	}
	p := parent.tier.Key
	s.tier.Parent = &p
	s.depth = parent.depth + 1
	l.tiers[k] = s
	l.needs(s)
}

// checked reports what an API server would refuse in a Kustomization that parent applies, and
// returns what of it can be understood. A server that refuses one object fails the parent's pass.
func (l *loader) checked(o render.Object, parent *state) render.Object {
	faults, clean := l.schema.check(o.Unstructured, parent.tier.Kustomization.Spec.PostBuild != nil)
	for _, f := range faults {
		l.invalid(o, f)
	}
	o.Unstructured = clean
	return o
}

func (l *loader) invalid(o render.Object, reason string) {
	l.problem(Problem{Rule: "invalid", Severity: Error, Tier: Key{Namespace: o.GetNamespace(), Name: o.GetName()},
		File: o.File, Line: o.Line, Message: o.ID() + ": " + reason})
}

// newState reads a rendered Kustomization. It always returns a state; the error says what of the
// object could not be understood.
func newState(o render.Object) (*state, error) {
	ks := &kustomizev1.Kustomization{}
	err := k8sruntime.DefaultUnstructuredConverter.FromUnstructured(o.Object, ks)
	ks.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
	t := &Tier{
		Key:           Key{Namespace: o.GetNamespace(), Name: o.GetName()},
		Kustomization: ks,
		File:          o.File,
		Line:          o.Line,
	}
	fillTier(t)
	return &state{tier: t, raw: o.Unstructured}, err
}

// fillTier derives what follows from the Kustomization alone.
func fillTier(t *Tier) {
	spec := &t.Kustomization.Spec
	t.Gate = spec.Wait || len(spec.HealthChecks) > 0
	t.Suspend = spec.Suspend
	ns := spec.SourceRef.Namespace
	if ns == "" {
		ns = t.Namespace
	}
	if spec.SourceRef.Kind != "" || spec.SourceRef.Name != "" {
		t.Source = spec.SourceRef.Kind + "/" + ns + "/" + spec.SourceRef.Name
	}
	for _, d := range spec.DependsOn {
		k := Key{Namespace: d.Namespace, Name: d.Name}
		if k.Namespace == "" {
			k.Namespace = t.Namespace
		}
		t.DependsOn = append(t.DependsOn, k)
	}
}

// graph puts the result together.
func (l *loader) graph() *Graph {
	g := &Graph{Revision: l.tree.Revision, Entry: l.entry}
	for _, s := range l.tiers {
		g.Tiers = append(g.Tiers, s.tier)
	}
	for _, k := range slices.SortedFunc(maps.Keys(l.leftOut), compareKeys) {
		g.LeftOut = append(g.LeftOut, l.leftOut[k])
	}
	g.Edges = l.edges(g.Tiers)
	sortGraph(g)
	l.check(g)
	g.Problems = l.problems
	sortProblems(g.Problems)
	g.Problems = slices.Compact(g.Problems)
	return g
}

// edges lists the constraints between the tiers found.
func (l *loader) edges(tiers []*Tier) []Edge {
	var out []Edge
	byKey := index(tiers)
	for _, t := range tiers {
		if t.Parent != nil && byKey[*t.Parent] != nil {
			out = append(out, Edge{From: t.Key, To: *t.Parent, Kind: Parent, File: t.File, Line: t.Line})
		}
		for _, d := range t.DependsOn {
			if byKey[d] != nil {
				out = append(out, Edge{From: t.Key, To: d, Kind: DependsOn, File: t.File, Line: t.Line})
			}
		}
		if src := l.sources[t.Source]; src != nil && !l.related(t.Key, src.tier) && byKey[src.tier] != nil {
			out = append(out, Edge{From: t.Key, To: src.tier, Kind: Source, File: src.obj.File, Line: src.obj.Line})
		}
	}
	return out
}

// related reports whether one tier is the other or an ancestor of it. A source that an ancestor
// applies adds nothing to the parent edge; one that a descendant applies came by bootstrap first.
func (l *loader) related(a, b Key) bool {
	return l.above(a, b) || l.above(b, a)
}

func (l *loader) above(k, ancestor Key) bool {
	for seen := map[Key]bool{}; !seen[k]; {
		if k == ancestor {
			return true
		}
		seen[k] = true
		s := l.tiers[k]
		if s == nil || s.tier.Parent == nil {
			return false
		}
		k = *s.tier.Parent
	}
	return false
}
