package audit

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/tiers"
)

func (r *replay) dependencyBlocker(i int, k tiers.Key) (blocker, bool) {
	what := ref{group: kustomizev1.GroupVersion.Group, kind: kustomizev1.KustomizationKind, namespace: k.Namespace, name: k.Name}
	j, ok := r.index[k]
	switch {
	case !ok && (r.declared(what) || r.perhaps(what)):
		return blocker{}, false
	case !ok:
		return blocker{kind: byMissing, what: what}, true
	case r.ready[j]:
		return blocker{}, false
	case r.tiers[i].ReadyExpr(k) != "" && (r.tiers[j].Suspend || r.within(i, j)):
		return r.existenceBlocker(j)
	case r.sleeper(j) >= 0:
		return blocker{kind: bySuspended, what: what}, true
	}
	return blocker{kind: byDependency, what: what, on: []int{j}}, true
}

// sleeper is the tier for whose suspension in git a tier does not come up: itself, or the nearest of those
// that hold it, which never apply it on a cold cluster; -1 if there is none.
func (w *world) sleeper(i int) int {
	for range w.tiers { // parents cannot go round in a circle for ever
		t := w.tiers[i]
		if t.Suspend {
			return i
		}
		if t.Parent == nil {
			break
		}
		j, ok := w.index[*t.Parent]
		if !ok {
			break
		}
		i = j
	}
	return -1
}

// existenceBlocker tells whether a tier is still to be created. That is all that can be said where an
// expression decides when a dependency is ready, and it may be one that asks for less than readiness
// (readyExpr, see checkDependencies in kustomize-controller).
func (r *replay) existenceBlocker(j int) (blocker, bool) {
	t := r.tiers[j]
	if t.Parent == nil {
		return blocker{}, false
	}
	parent, ok := r.index[*t.Parent]
	return blocker{kind: byDependency, what: r.tierRef(j), on: []int{parent}}, ok && !r.exists(j, parent)
}

// within reports whether a tier is applied by another one, or by one that is within that one.
func (w *world) within(i, parent int) bool {
	for t := w.tiers[i]; t.Parent != nil; {
		j, ok := w.index[*t.Parent]
		if !ok || j == i {
			return false
		}
		if j == parent {
			return true
		}
		t = w.tiers[j]
	}
	return false
}

// perhaps reports whether the graph itself is not sure that a dependency is missing: it may lie in a
// tier whose objects are not known.
func (w *world) perhaps(dependency ref) bool {
	found := false
	for _, p := range w.graph.Problems {
		if p.Rule == missingDependency && strings.Contains(p.Message, dependency.namespace+"/"+dependency.name+",") {
			if p.Severity == tiers.Error {
				return false
			}
			found = true
		}
	}
	return found
}

// exists reports whether a tier is on the cluster: applied by its parent, or by what the parent applies
// and that generates the tier, a ResourceSet.
func (r *replay) exists(i, parent int) bool {
	what := r.tierRef(i)
	return r.present[what] || len(r.byRef[what]) == 0 && r.applied[parent]
}
