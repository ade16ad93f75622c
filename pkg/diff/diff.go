package diff

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Diff is what changes from one graph to another.
type Diff struct {
	// From and To name what was compared: revisions, or entry paths.
	From, To string
	// Added and Removed are the tiers of one graph only, in the order of their graph.
	Added, Removed []tiers.Key
	// Changed are the tiers of both whose settings differ, sorted.
	Changed []Change
	// AddedEdges and RemovedEdges are edges of one graph only, sorted; edges of added and removed
	// tiers are among them.
	AddedEdges, RemovedEdges []tiers.Edge
	// Reordered are pairs of tiers whose order is the other way round, or no longer given, sorted.
	Reordered []Reorder
	// Moves are the objects that another tier applies than before, sorted by outcome (worst first),
	// then by tiers and object.
	Moves []Move
	// Losses are objects that no tier applies any more, sorted by tier and object.
	Losses []Loss
	// Gone are the tiers that leave git, and what becomes of all they own.
	Gone []Gone
	// Preconditions must hold on the target before the change is merged.
	Preconditions []Precondition
	// Unknown lists tiers whose objects are not known in one of the graphs, sorted.
	Unknown []tiers.Key
}

// SameGraph reports whether tiers, their settings and edges are equal.
func (d *Diff) SameGraph() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.AddedEdges)+len(d.RemovedEdges) == 0
}

// Change is one setting of a tier that differs.
type Change struct {
	Tier          tiers.Key
	Field         string // as in the manifest: spec.wait
	Before, After string
}

// Reorder is a pair of tiers whose order changes.
type Reorder struct {
	First, Then tiers.Key // the order before
	// Reversed says that Then now comes before First; otherwise nothing orders them any more.
	Reversed bool
}

// ID identifies an object on a cluster, as Flux's inventory does: without its version.
type ID struct {
	schema.GroupKind
	Namespace, Name string
}

// String returns Kind/namespace/name.
func (i ID) String() string {
	if i.Namespace != "" {
		return i.Kind + "/" + i.Namespace + "/" + i.Name
	}
	return i.Kind + "/" + i.Name
}

func idOf(o render.Object) ID {
	return ID{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// Compare compares the graph before a change with the one after it, as a cluster that runs the first
// and is given the second would live through it.
func Compare(before, after *tiers.Graph) *Diff {
	c := newComparison(before, after)
	d := &Diff{From: cmp.Or(before.Revision, before.Entry), To: cmp.Or(after.Revision, after.Entry)}
	c.tiers(d)
	c.edges(d)
	c.order(d)
	d.Moves, d.Losses = c.moves()
	d.Gone = c.gone(d)
	d.Preconditions = preconditions(d.Moves, c.after)
	d.Unknown = c.unknown()
	return d
}

// CompareEntries compares two entry paths of one repository: two clusters that ought to have the
// same graph. Objects do not move between clusters, so there are no moves; settings that must
// differ (the roots' own paths) are left out.
func CompareEntries(a, b *tiers.Graph) *Diff {
	c := newComparison(a, b)
	d := &Diff{From: a.Entry, To: b.Entry}
	c.tiers(d)
	c.edges(d)
	c.order(d)
	d.Changed = slices.DeleteFunc(d.Changed, func(ch Change) bool {
		return c.before.tier(ch.Tier).Parent == nil && (ch.Field == "spec.path" || ch.Field == "spec.sourceRef")
	})
	d.Unknown = c.unknown()
	return d
}

// side is one of the two graphs, indexed.
type side struct {
	*tiers.Graph
	index  map[tiers.Key]*tiers.Tier
	before *tiers.Before
	// owners lists the tiers that apply an object; objects is the manifest of each.
	owners map[ID][]owner
}

type owner struct {
	tier   *tiers.Tier
	object render.Object
}

func newSide(g *tiers.Graph) *side {
	s := &side{Graph: g, index: make(map[tiers.Key]*tiers.Tier, len(g.Tiers)), before: tiers.NewBefore(g), owners: map[ID][]owner{}}
	for _, t := range g.Tiers {
		s.index[t.Key] = t
		for _, o := range t.Objects {
			id := idOf(o)
			s.owners[id] = append(s.owners[id], owner{t, o})
		}
	}
	return s
}

func (s *side) tier(k tiers.Key) *tiers.Tier { return s.index[k] }

type comparison struct{ before, after *side }

func newComparison(before, after *tiers.Graph) *comparison {
	return &comparison{newSide(before), newSide(after)}
}

func (c *comparison) tiers(d *Diff) {
	for _, t := range c.after.Tiers {
		if c.before.tier(t.Key) == nil {
			d.Added = append(d.Added, t.Key)
		}
	}
	for _, t := range c.before.Tiers {
		other := c.after.tier(t.Key)
		if other == nil {
			d.Removed = append(d.Removed, t.Key)
			continue
		}
		d.Changed = append(d.Changed, settings(t, other)...)
	}
	slices.SortStableFunc(d.Changed, func(a, b Change) int {
		return cmp.Or(compareKeys(a.Tier, b.Tier), cmp.Compare(a.Field, b.Field))
	})
}

func (c *comparison) edges(d *Diff) {
	type edge struct {
		from, to tiers.Key
		kind     tiers.EdgeKind
	}
	set := func(s *side) map[edge]bool {
		out := map[edge]bool{}
		for _, e := range s.Edges {
			out[edge{e.From, e.To, e.Kind}] = true
		}
		return out
	}
	only := func(s *side, other map[edge]bool) []tiers.Edge {
		var out []tiers.Edge
		for _, e := range s.Edges {
			if !other[edge{e.From, e.To, e.Kind}] {
				out = append(out, e)
			}
		}
		return out
	}
	d.AddedEdges = only(c.after, set(c.before))
	d.RemovedEdges = only(c.before, set(c.after))
}

// order finds pairs of tiers, in both graphs, whose order changes. To keep to what matters it asks
// only about pairs that were or are one edge apart.
func (c *comparison) order(d *Diff) {
	seen := map[[2]tiers.Key]bool{}
	for _, e := range c.before.Edges {
		first, then := e.To, e.From
		if c.after.tier(first) == nil || c.after.tier(then) == nil || seen[[2]tiers.Key{first, then}] {
			continue
		}
		seen[[2]tiers.Key{first, then}] = true
		switch {
		case c.after.before.Of(then).Applied(first):
		case c.after.before.Of(first).Applied(then):
			d.Reordered = append(d.Reordered, Reorder{first, then, true})
		default:
			d.Reordered = append(d.Reordered, Reorder{first, then, false})
		}
	}
	slices.SortFunc(d.Reordered, func(a, b Reorder) int {
		return cmp.Or(compareKeys(a.First, b.First), compareKeys(a.Then, b.Then))
	})
}

func (c *comparison) unknown() []tiers.Key {
	var out []tiers.Key
	for _, s := range []*side{c.before, c.after} {
		for _, t := range s.Tiers {
			if t.Opaque != "" && !slices.Contains(out, t.Key) {
				out = append(out, t.Key)
			}
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

func compareKeys(a, b tiers.Key) int { return strings.Compare(a.String(), b.String()) }
