package audit

import (
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/xrash/smetrics"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

func (r *replay) missing(b stuckOn) Finding {
	t := r.tiers[b.tier]
	if b.item != nil { // a HelmRelease's own dependsOn
		f := r.at(releaseNeverHealthy, b.tier, []*item{b.item})
		f.Message = fmt.Sprintf("%s depends on %s, which nothing makes", b.item.ID(), b.what)
		f.Fix = fmt.Sprintf("correct the name in dependsOn of %s, or remove the entry", b.item.ID())
		return f
	}
	target := tiers.Key{Namespace: b.what.namespace, Name: b.what.name}
	f := r.at(missingDependency, b.tier, nil)
	f.Object = b.what.String()
	f.At = r.dependencyAt(t, target)
	f.Message = fmt.Sprintf("%s depends on %s, and there is no such Kustomization", t.Key, target)
	f.Cause = []string{"Flux looks the dependency up at every pass; while it does not exist the tier stays at DependencyNotReady, without an end"}
	f.Fix = fmt.Sprintf("remove %s from spec.dependsOn of %s, or bring the Kustomization back", target, t.Key)
	if o, ok := r.leftOut(target); ok {
		f.Message = fmt.Sprintf("%s depends on %s, which Flux never creates: it opts out of being applied", t.Key, target)
		f.Related = append(f.Related, Location{File: o.File, Line: o.Line, Note: o.ID()})
		f.Fix = fmt.Sprintf("remove %s from spec.dependsOn of %s, or the annotation or label %s/reconcile or …/ssa from %s", target, t.Key, kustomizev1.GroupVersion.Group, target)
	} else if near := r.nearest(target); near != "" {
		f.Fix += "; did you mean " + near + "?"
	}
	if hr := r.releaseNamed(target); hr != nil {
		f.Rule = dependsOnRelease
		f.Message = fmt.Sprintf("%s depends on %s, which is a HelmRelease and not a Kustomization", t.Key, target)
		f.Related = append(f.Related, r.locationOf(hr, hr.ID()))
		f.Fix = fmt.Sprintf("depend on %s, the tier that applies %s, and let it wait for the release (wait: true, or the release in healthChecks)", r.tiers[hr.tier].Key, hr.ID())
	}
	return f
}

// leftOut finds a Kustomization that git holds and Flux never creates.
func (w *world) leftOut(k tiers.Key) (render.Object, bool) {
	i := slices.IndexFunc(w.graph.LeftOut, func(o render.Object) bool { return o.GetNamespace() == k.Namespace && o.GetName() == k.Name })
	if i < 0 {
		return render.Object{}, false
	}
	return w.graph.LeftOut[i], true
}

// releaseNamed finds a HelmRelease of a name, in the namespace asked for or else in any.
func (r *replay) releaseNamed(k tiers.Key) *item {
	var other *item
	for i := range r.tiers {
		for _, it := range r.items[i] {
			if !isRelease(it.gk) || it.GetName() != k.Name {
				continue
			}
			if it.GetNamespace() == k.Namespace {
				return it
			}
			if other == nil {
				other = it
			}
		}
	}
	return other
}

// nearest names a tier of the same name in another namespace, or of a name one slip away.
func (w *world) nearest(k tiers.Key) string {
	for _, t := range w.tiers {
		if t.Name == k.Name {
			return t.Key.String()
		}
	}
	for _, t := range w.tiers {
		if t.Namespace == k.Namespace && smetrics.WagnerFischer(t.Name, k.Name, 1, 1, 1) == 1 {
			return t.Key.String()
		}
	}
	return ""
}

// dependencyAt is where an edge is written: the graph knows those whose target exists, and its
// problems those whose target does not.
func (w *world) dependencyAt(t *tiers.Tier, to tiers.Key) Location {
	for _, e := range w.graph.Edges {
		if e.From == t.Key && e.To == to && e.Kind == tiers.DependsOn && e.File != "" {
			return Location{File: e.File, Line: e.Line}
		}
	}
	for _, p := range w.graph.Problems {
		if p.Tier == t.Key && strings.Contains(p.Message, to.Name) && p.Line > 0 {
			return Location{File: p.File, Line: p.Line}
		}
	}
	return Location{File: t.File, Line: t.Line}
}

func (r *replay) suspended(group []stuckOn) Finding {
	b := group[0]
	if b.item != nil && r.reads(b.tier, b.what) {
		return r.sourceSuspended(b)
	}
	if b.item != nil { // something that the tier applies and waits for
		f := r.at(waitsForSuspended, b.tier, []*item{b.item})
		f.Message = fmt.Sprintf("%s waits for %s, which git keeps suspended", r.tiers[b.tier].Key, b.item.ID())
		f.Cause = []string{"a suspended object is never reconciled, so on a cold cluster it has no status, and without one it never counts as healthy"}
		f.Fix = fmt.Sprintf("remove suspend from %s; or take it out of what %s waits for (wait: false and healthChecks for the rest)", b.item.ID(), r.tiers[b.tier].Key)
		return f
	}
	target := tiers.Key{Namespace: b.what.namespace, Name: b.what.name}
	var who []string
	for _, g := range group {
		who = append(who, r.tiers[g.tier].Key.String())
	}
	sleeper := r.sleeper(r.index[target])
	asleep := r.tiers[sleeper].Key
	f := r.at(dependsOnSuspended, sleeper, nil)
	f.Message = fmt.Sprintf("%s %s on %s, which git keeps suspended", words(who), verb(len(who), "depends", "depend"), target)
	f.Cause = []string{"a tier that is suspended from the start never becomes Ready, and what depends on it stays at DependencyNotReady"}
	if asleep != target {
		f.Message = fmt.Sprintf("%s %s on %s, which comes with %s, and git keeps that suspended", words(who), verb(len(who), "depends", "depend"), target, asleep)
		f.Cause = []string{"a tier that is suspended from the start applies nothing, and what depends on something that does not exist stays at DependencyNotReady"}
	}
	f.Related = append(f.Related, r.dependencyAt(r.tiers[b.tier], target))
	f.Fix = fmt.Sprintf("remove suspend: true from %s, or the dependency on %s", asleep, target)
	return f
}
