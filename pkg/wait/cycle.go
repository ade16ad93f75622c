package wait

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// findCycles finds the tiers that wait for each other and turns every such knot into one cause of
// all its members: the waits inside it are taken out, so that what is left has no circles.
func (w *walk) findCycles() {
	var ids []string
	for _, knot := range w.knots() {
		members := map[tiers.Key]bool{}
		for _, key := range knot {
			members[key] = true
		}
		path, vias := w.circle(knot[0], members)
		d := cycleDiagnosis(path, vias)
		for _, key := range knot {
			w.waits[key] = slices.DeleteFunc(w.waits[key], func(wait wait) bool { return members[wait.to] })
			w.add(key, d)
		}
		ids = append(ids, d.Key())
	}
	w.blameCycles(ids)
}

// blameCycles explains tiers that are Ready at an old revision while the tiers of their source
// contain a dependsOn circle: kustomize-controller sorts all tiers of a source before it enqueues
// any of them for a new revision, and a circle makes it enqueue none (requestsForRevisionChangeOf
// in its internal/controller/kustomization_indexers.go).
func (w *walk) blameCycles(ids []string) {
	for _, id := range ids {
		d := w.found[id]
		if !w.dependencyCycle(d.Path) {
			continue
		}
		source := w.tiers[w.index[d.Tier]].Source
		for _, t := range w.tiers {
			if t.Source != source || !w.leftBehind(t.Key) {
				continue
			}
			w.causes[t.Key] = []string{id}
		}
	}
}

// dependencyCycle reports whether a circle is made of dependsOn alone.
func (w *walk) dependencyCycle(path []tiers.Key) bool {
	for i := range len(path) - 1 {
		k := w.snapshot.Kustomizations[path[i]]
		if k == nil || !slices.ContainsFunc(w.rules.Dependencies(w.ctx, k, w.snapshot), isKey(path[i+1])) {
			return false
		}
	}
	return true
}

// leftBehind reports whether a tier only waits for Flux to notice a new revision.
func (w *walk) leftBehind(key tiers.Key) bool {
	ids := w.causes[key]
	return len(ids) == 1 && len(w.waits[key]) == 0 && w.found[ids[0]].Cause == AwaitingRetry && w.statuses[key].State == Reconciling
}

// knots returns the strongly connected components that hold a circle, by Tarjan's algorithm, each
// in the graph's order.
func (w *walk) knots() [][]tiers.Key {
	search := &tarjan{walk: w, number: map[tiers.Key]int{}, low: map[tiers.Key]int{}, on: map[tiers.Key]bool{}}
	for _, t := range w.tiers {
		if search.number[t.Key] == 0 {
			search.visit(t.Key)
		}
	}
	for _, knot := range search.knots {
		slices.SortFunc(knot, func(a, b tiers.Key) int { return w.index[a] - w.index[b] })
	}
	slices.SortFunc(search.knots, func(a, b []tiers.Key) int { return w.index[a[0]] - w.index[b[0]] })
	return search.knots
}

type tarjan struct {
	*walk
	number, low map[tiers.Key]int
	on          map[tiers.Key]bool
	stack       []tiers.Key
	knots       [][]tiers.Key
}

func (s *tarjan) visit(key tiers.Key) {
	s.number[key] = len(s.number) + 1
	s.low[key] = s.number[key]
	s.stack, s.on[key] = append(s.stack, key), true
	self := false
	for _, wait := range s.waits[key] {
		self = self || wait.to == key
		switch {
		case s.number[wait.to] == 0:
			s.visit(wait.to)
			s.low[key] = min(s.low[key], s.low[wait.to])
		case s.on[wait.to]:
			s.low[key] = min(s.low[key], s.number[wait.to])
		}
	}
	if s.low[key] != s.number[key] {
		return
	}
	start := slices.Index(s.stack, key)
	knot := slices.Clone(s.stack[start:])
	for _, member := range knot {
		s.on[member] = false
	}
	s.stack = s.stack[:start]
	if len(knot) > 1 || self {
		s.knots = append(s.knots, knot)
	}
}

// circle returns a shortest way from start back to itself inside a knot, start at both ends, and
// why each tier on it waits for the next.
func (w *walk) circle(start tiers.Key, members map[tiers.Key]bool) ([]tiers.Key, []via) {
	type step struct {
		from tiers.Key
		via  via
	}
	came := map[tiers.Key]step{}
	for queue := []tiers.Key{start}; len(queue) > 0; queue = queue[1:] {
		for _, wait := range w.waits[queue[0]] {
			if !members[wait.to] {
				continue
			}
			if _, seen := came[wait.to]; seen {
				continue
			}
			came[wait.to] = step{queue[0], wait.via}
			queue = append(queue, wait.to)
		}
	}
	path, vias := []tiers.Key{start}, []via{}
	for at := start; ; {
		s := came[at]
		path, vias = append(path, s.from), append(vias, s.via)
		if at = s.from; at == start {
			break
		}
	}
	slices.Reverse(path)
	slices.Reverse(vias)
	return path, vias
}

func cycleDiagnosis(path []tiers.Key, vias []via) Diagnosis {
	var steps []string
	for i, v := range vias {
		from, to := path[i].Name, path[i+1].Name
		switch v {
		case viaDependency:
			steps = append(steps, fmt.Sprintf("%s depends on %s", from, to))
		case viaHealth:
			steps = append(steps, fmt.Sprintf("%s waits for its child %s to be healthy", from, to))
		case viaParent:
			steps = append(steps, fmt.Sprintf("%s is applied by %s", from, to))
		}
	}
	d := Diagnosis{
		Cause: Cycle, Path: path, Object: "Kustomization/" + path[0].String(),
		Summary: strings.Join(steps, ", "),
		Hint:    "take one of these edges out in git",
	}
	if slices.Contains(vias, viaHealth) {
		d.Hint = "take wait: true off the parent, or the dependency out of the child, in git"
	}
	return d
}
