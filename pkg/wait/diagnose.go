package wait

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Diagnose finds the first real causes for which tiers are not ready, each once, with the tiers it
// holds up. It follows what a tier waits for - dependencies, the parent that has to apply it, the
// children that a waiting parent waits for - to where that ends: in a tier with a trouble of its own,
// in something outside the tiers, or in a circle.
//
// Real failures come before tiers that are merely busy, those that hold up more tiers before others,
// ties in the graph's order. Diagnose is pure: evidence may be zero, and says more when [Gather] has
// filled it for the causes that were found without it. ctx only interrupts the evaluation of a readyExpr.
func Diagnose(ctx context.Context, graph *tiers.Graph, snapshot flux.Snapshot, evidence Evidence, now time.Time) []Diagnosis {
	w := newWalk(ctx, graph, snapshot, evidence, now)
	w.lookAtAll()
	w.findCycles()
	return w.collect()
}

// A wait is one thing a tier waits for: another tier, for a reason.
type wait struct {
	to  tiers.Key
	via via
}

// via says why a tier waits for another.
type via string

const (
	viaDependency via = "dependsOn"
	viaParent     via = "parent" // to has to apply it
	viaHealth     via = "health" // its health check waits for to, its child
)

// walk is the state of one diagnosis.
type walk struct {
	ctx      context.Context // only interrupts a readyExpr
	snapshot flux.Snapshot
	evidence Evidence
	now      time.Time
	entry    string
	rules    flux.Rules
	reader   *reader // nil until a failure has to be read

	tiers    []*tiers.Tier // the graph's, then those outside it that they depend on
	inGraph  int
	index    map[tiers.Key]int
	statuses map[tiers.Key]TierStatus
	children map[tiers.Key][]tiers.Key
	retrying map[tiers.Key]bool

	waits  map[tiers.Key][]wait
	causes map[tiers.Key][]string // tier → keys of its own causes
	found  map[string]*Diagnosis
	shown  map[string][]tiers.Key // key → tiers that show the cause themselves
}

func newWalk(ctx context.Context, graph *tiers.Graph, snapshot flux.Snapshot, evidence Evidence, now time.Time) *walk {
	w := &walk{
		ctx: ctx, snapshot: snapshot, evidence: evidence, now: now, entry: graph.Entry,
		tiers: slices.Clone(graph.Tiers), inGraph: len(graph.Tiers),
		index: map[tiers.Key]int{}, statuses: map[tiers.Key]TierStatus{}, children: map[tiers.Key][]tiers.Key{},
		retrying: map[tiers.Key]bool{}, waits: map[tiers.Key][]wait{}, causes: map[tiers.Key][]string{},
		found: map[string]*Diagnosis{}, shown: map[string][]tiers.Key{},
	}
	w.rules.AdditiveCELDependencyCheck = evidence.Controllers[kustomizeController].Flags.Gate(flux.GateAdditiveCELDependencyCheck)
	for i, t := range w.tiers {
		w.index[t.Key] = i
		w.statuses[t.Key] = tierStatus(t, snapshot, now)
		if t.Parent != nil {
			w.children[*t.Parent] = append(w.children[*t.Parent], t.Key)
		}
	}
	return w
}

// lookAtAll looks at each tier; the list grows when one depends on a Kustomization outside the graph.
func (w *walk) lookAtAll() {
	for i := 0; i < len(w.tiers); i++ {
		w.look(w.tiers[i])
	}
}

// look finds what one tier waits for and what is wrong with it itself.
func (w *walk) look(t *tiers.Tier) {
	s := w.statuses[t.Key]
	k := w.snapshot.Kustomizations[t.Key]
	switch s.State {
	case Ready:
	case Missing:
		w.lookAtMissing(t)
	case Suspended:
		w.add(t.Key, suspendedDiagnosis(t.Key, k))
	case Failed:
		w.lookAtFailed(t, k, s)
		if fact := w.evidence.Controllers[kustomizeController]; fact.State == ControllerStopped {
			w.add(t.Key, w.stopped(kustomizeController, fact, Diagnosis{})) // else nobody notices the cure
		}
	case Waiting, Reconciling, Unknown:
		if w.lookAtSource(t.Key, k) {
			return
		}
		status := flux.Classify(k)
		switch {
		case status.Reconciling && w.lookAtRetry(t, k, s):
		case healthChecking(k, status):
			w.lookAtHealth(t.Key, k, runningHealthCheck(k, s))
		case status.Reconciling:
			w.add(t.Key, w.busy(k, s))
		case !w.lookAtDependencies(t.Key, k):
			w.add(t.Key, w.idle(k, s))
		}
	}
}

// lookAtMissing: a tier that is not on the cluster waits for its parent, or nobody applies it.
func (w *walk) lookAtMissing(t *tiers.Tier) {
	if t.Parent != nil && w.statuses[*t.Parent].State != Ready && *t.Parent != t.Key {
		if _, known := w.index[*t.Parent]; known {
			w.wait(t.Key, *t.Parent, viaParent)
			return
		}
	}
	w.add(t.Key, notAppliedDiagnosis(t))
}

// lookAtDependencies notes the dependencies that Flux would not let the tier go past now, and
// reports whether there is any.
func (w *walk) lookAtDependencies(key tiers.Key, k *kustomizev1.Kustomization) bool {
	blocked := false
	for _, dep := range w.rules.Dependencies(w.ctx, k, w.snapshot) {
		if dep.Ready() {
			continue
		}
		blocked = true
		switch _, exists := w.snapshot.Kustomizations[dep.Key]; {
		case w.adopt(dep.Key) && w.statuses[dep.Key].State != Ready:
			w.wait(key, dep.Key, viaDependency)
		case !exists:
			w.add(key, dependencyMissingDiagnosis(dep.Key))
		default:
			w.add(key, expressionDiagnosis(k, dep))
		}
	}
	return blocked
}

// adopt makes sure that a Kustomization is looked at, and reports whether there is anything to look
// at: it is in the graph or on the cluster.
func (w *walk) adopt(key tiers.Key) bool {
	if _, known := w.index[key]; known {
		return true
	}
	k := w.snapshot.Kustomizations[key]
	if k == nil {
		return false
	}
	t := &tiers.Tier{Key: key, Kustomization: k, Source: flux.SourceOf(k).String()}
	w.index[key] = len(w.tiers)
	w.tiers = append(w.tiers, t)
	w.statuses[key] = tierStatus(t, w.snapshot, w.now)
	return true
}

// wait notes that one tier waits for another.
func (w *walk) wait(from, to tiers.Key, reason via) {
	w.waits[from] = append(w.waits[from], wait{to, reason})
}

// add notes a cause that shows in a tier itself.
func (w *walk) add(key tiers.Key, d Diagnosis) {
	d.Tier, d.Retrying = key, w.retrying[key]
	d = w.refine(d)
	if s := w.statuses[key]; d.Since.IsZero() {
		d.Since = s.Since
	}
	id := d.Key()
	w.causes[key] = append(w.causes[key], id)
	w.shown[id] = append(w.shown[id], key)
	if known, ok := w.found[id]; !ok {
		w.found[id] = &d
	} else if !d.Since.IsZero() && d.Since.Before(known.Since) {
		known.Since = d.Since
	}
}

// collect carries every cause to all the tiers that wait for it, and sorts the result.
func (w *walk) collect() []Diagnosis {
	blocked := map[string]map[int]bool{}
	memo := map[tiers.Key]map[string]bool{}
	for i, t := range w.tiers {
		for id := range w.reach(t.Key, memo) {
			if blocked[id] == nil {
				blocked[id] = map[int]bool{}
			}
			blocked[id][i] = true
		}
	}
	diagnoses := make([]Diagnosis, 0, len(w.found))
	for id, d := range w.found {
		if len(blocked[id]) == 0 {
			continue // blameCycles has put another in its place
		}
		order := slices.Sorted(maps.Keys(blocked[id]))
		for _, i := range order {
			if key := w.tiers[i].Key; key != d.Tier && i < w.inGraph {
				d.Blocks = append(d.Blocks, key)
			}
		}
		w.nameSuspension(d)
		diagnoses = append(diagnoses, *d)
	}
	slices.SortFunc(diagnoses, w.compare)
	return diagnoses
}

// reach returns the keys of all causes that hold up a tier. What a tier waits for has no circles
// any more: findCycles has taken them out.
func (w *walk) reach(key tiers.Key, memo map[tiers.Key]map[string]bool) map[string]bool {
	if known, ok := memo[key]; ok {
		return known
	}
	ids := map[string]bool{}
	memo[key] = ids
	for _, id := range w.causes[key] {
		ids[id] = true
	}
	for _, wait := range w.waits[key] {
		maps.Copy(ids, w.reach(wait.to, memo))
	}
	return ids
}

func (w *walk) compare(a, b Diagnosis) int {
	rank := func(d Diagnosis) int {
		switch {
		case d.Cause.Failure():
			return 0
		case d.Cause == AwaitingRetry:
			return 1
		}
		return 2
	}
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(len(b.Blocks), len(a.Blocks)),
		cmp.Compare(w.index[a.Tier], w.index[b.Tier]),
		cmp.Compare(a.Key(), b.Key()),
	)
}
