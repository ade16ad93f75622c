package resume

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// tier decides about one tier.
func (c *deciding) tier(t *tiers.Tier) *Standing {
	k := c.s.Kustomizations[t.Key]
	st := &Standing{Object: tierObject(t.Key), Status: flux.Classify(k), Selected: c.selected[t.Key]}
	if k != nil {
		c.begin(st.Object, c.revision(k))
	}
	switch {
	case !st.Selected:
		c.untouched(st, k)
	case k == nil:
		c.absent(st, t)
	case k.DeletionTimestamp != nil:
		st.Phase, st.Cause = Stopped, CauseTerminating
	case k.Spec.Suspend:
		c.suspended(st, t, k)
	case flux.Settled(k, c.s):
		st.Phase = Settled
	default:
		c.live(st, k)
	}
	if st.Selected && k != nil {
		c.limit(st, c.tierLimit(k))
	}
	return st
}

func (c *deciding) revision(k *kustomizev1.Kustomization) string {
	if src := c.s.Sources[flux.SourceOf(k)]; src != nil {
		return src.Revision
	}
	return ""
}

// untouched looks at a tier that the run leaves alone: it may still come up by itself.
func (c *deciding) untouched(st *Standing, k *kustomizev1.Kustomization) {
	switch {
	case k == nil || k.Spec.Suspend:
		st.Phase, st.Cause = Held, CauseUnselected
	case flux.Settled(k, c.s):
		st.Phase = Settled
	case st.Status.State == flux.Final:
		st.Phase, st.Cause = Stopped, CauseFailed
	default:
		st.Phase = Working
		if st.Blockers = c.dependencyBlockers(c.dependencies(k)); len(st.Blockers) > 0 {
			st.Phase = Blocked
		}
	}
}

// absent looks at a tier that does not exist: its parent's pass creates it.
func (c *deciding) absent(st *Standing, t *tiers.Tier) {
	if t.Parent == nil || c.tiers[*t.Parent] == nil {
		st.Phase, st.Cause = Stopped, CauseAbsent
		return
	}
	st.Phase = Blocked
	st.Blockers = []Blocker{{Object: tierObject(*t.Parent), Link: LinkParent}}
	if parent := c.s.Kustomizations[*t.Parent]; parent != nil && flux.Settled(parent, c.s) {
		c.overdue(st)
	}
}

// overdue stops an object that should have been created by now.
func (c *deciding) overdue(st *Standing) {
	n := c.change(st.Object, func(n *note) {
		if n.idle.IsZero() {
			n.idle = c.now
		}
	})
	if c.due(n.idle.Add(idleGrace)) {
		st.Phase, st.Cause, st.Blockers = Stopped, CauseAbsent, nil
	}
}

// suspended decides about a tier that is suspended: git's own word is respected, anything else
// ends as soon as the tier can go.
func (c *deciding) suspended(st *Standing, t *tiers.Tier, k *kustomizev1.Kustomization) {
	if (t.Suspend || flux.SuspendedInGit(k, true)) && !c.opts.IncludeSuspendedInGit {
		st.Phase, st.Cause = Held, CauseSuspended
		return
	}
	deps := c.dependencies(k)
	if c.invalid(st, deps) {
		return
	}
	st.Blockers = append(c.blockers(k, deps), c.parentBlockers(t)...)
	switch {
	case len(st.Blockers) > 0:
		st.Phase = Blocked
	case c.inFlight(st.Object):
		st.Phase = Working
	default:
		st.Phase = Working
		c.act(st.Object, Resume, WhySuspended)
	}
}

// live decides about a tier that is neither suspended nor settled.
func (c *deciding) live(st *Standing, k *kustomizev1.Kustomization) {
	st.Phase = Working
	requested := k.Annotations[flux.RequestAnnotation]
	if c.inFlight(st.Object) || st.Status.Reconciling || !flux.Answered(requested, k.Status.LastHandledReconcileAt) {
		return
	}
	moved, deps := c.moved(k), c.dependencies(k)
	if st.Status.State == flux.Final && !moved || c.invalid(st, deps) {
		st.Phase = Stopped
		if st.Cause == CauseNone {
			st.Cause = CauseFailed
		}
		return
	}
	if st.Blockers = c.blockers(k, deps); len(st.Blockers) > 0 {
		st.Phase = Blocked
		return
	}
	switch {
	case st.Status.Reason == meta.DependencyNotReadyReason:
		c.turnedAway(st.Object)
	case st.Status.State == flux.MayHeal && !moved:
		c.failing(st, k)
	case st.Status.Reason == flux.ReasonNoStatus:
		c.fresh(st.Object, k)
	case moved || st.Status.State == flux.Ready || st.Status.Reason == meta.ArtifactFailedReason:
		c.start(st.Object)
	}
}

// turnedAway decides about a tier that Flux turned away at its dependencies, all of which are ready
// now: it would look again within half a minute.
func (c *deciding) turnedAway(o Object) {
	n := c.notes[o]
	if n.turnedAway == 0 || c.due(n.sentAt.Add(backoff(blockedRetry, blockedRetryMax, n.turnedAway-1))) {
		c.act(o, Nudge, WhyDependencies)
	}
}

// fresh decides about a tier that has had no pass. Its controller's first look at it only adds the
// finalizer and comes back after [firstRetry]: a request comes first, if a worker is free to take
// it. Later the tier stands in the controller's queue without one.
func (c *deciding) fresh(o Object, k *kustomizev1.Kustomization) {
	if !slices.Contains(k.Finalizers, kustomizev1.KustomizationFinalizer) {
		return
	}
	if c.running < c.opts.Workers && c.justFound(o) {
		c.running++
		c.act(o, Nudge, WhyNew)
		return
	}
	c.start(o)
}

// justFound reports whether an object that has had no pass was first seen less than [firstRetry] ago.
func (c *deciding) justFound(o Object) bool {
	n := c.change(o, func(n *note) {
		if n.idle.IsZero() {
			n.idle = c.now
		}
	})
	return c.now.Before(n.idle.Add(firstRetry))
}

// failing decides about a tier whose last pass failed and may heal. A health check that fails on
// children is theirs to heal.
func (c *deciding) failing(st *Standing, k *kustomizev1.Kustomization) {
	st.Phase = Failing
	if st.Status.Reason == meta.HealthCheckFailedReason {
		if st.Blockers = c.childBlockers(flux.Key{Namespace: k.Namespace, Name: k.Name}); len(st.Blockers) > 0 {
			st.Phase = Blocked
			return
		}
	}
	c.heal(st.Object, st.Status)
}

// moved reports whether the source has moved on since the last pass, so that how that one ended
// says nothing.
func (c *deciding) moved(k *kustomizev1.Kustomization) bool {
	revision, attempted := c.revision(k), k.Status.LastAttemptedRevision
	return revision != "" && attempted != "" && attempted != revision
}

// invalid stops a tier with a readyExpr that does not compile: no pass gets beyond it.
func (c *deciding) invalid(st *Standing, deps []flux.DependencyState) bool {
	for _, dep := range deps {
		if dep.Reason == flux.ExprInvalid {
			st.Phase, st.Cause, st.Status.Message = Stopped, CauseExpression, dep.Message
			return true
		}
	}
	return false
}

// blockers are what keeps Flux, or the order of this run, from a pass of the tier.
func (c *deciding) blockers(k *kustomizev1.Kustomization, deps []flux.DependencyState) []Blocker {
	return append(c.sourceBlockers(flux.SourceOf(k)), c.dependencyBlockers(deps)...)
}

func (c *deciding) dependencies(k *kustomizev1.Kustomization) []flux.DependencyState {
	return c.opts.Rules.Dependencies(c.ctx, k, c.s)
}

// dependencyBlockers are the dependencies that Flux would not go past. A suspended one that this
// run resumes blocks as well, though Flux does not look at that: it is about to get a new
// generation.
func (c *deciding) dependencyBlockers(deps []flux.DependencyState) []Blocker {
	var blockers []Blocker
	for _, dep := range deps {
		b := Blocker{Object: tierObject(dep.Key), Link: LinkDependency, Message: dep.Message}
		live := c.s.Kustomizations[dep.Key]
		switch {
		case !dep.Ready():
			if live == nil && c.tiers[dep.Key] == nil {
				c.stranger(b.Object)
			}
			blockers = append(blockers, b)
		case live.Spec.Suspend && c.resumes(dep.Key):
			b.Message = "dependency '" + dep.Key.String() + "' is suspended"
			blockers = append(blockers, b)
		}
	}
	return blockers
}

// stranger adds an object that something needs, that is not in the graph and does not exist.
func (c *deciding) stranger(o Object) {
	if c.index[o] == nil {
		c.add(&Standing{Object: o, Phase: Stopped, Cause: CauseAbsent, Status: flux.Classify(nil)})
	}
}

// resumes reports whether this run takes suspend off a tier sooner or later.
func (c *deciding) resumes(key tiers.Key) bool {
	t, k := c.tiers[key], c.s.Kustomizations[key]
	if !c.selected[key] || t == nil || k == nil || !k.Spec.Suspend {
		return false
	}
	return c.opts.IncludeSuspendedInGit || !t.Suspend && !flux.SuspendedInGit(k, true)
}

// parentBlockers hold a suspended tier until its parent, if that is to have a pass in this run, has
// had it: the pass may change what the tier is.
func (c *deciding) parentBlockers(t *tiers.Tier) []Blocker {
	if t.Parent == nil || !c.selected[*t.Parent] {
		return nil
	}
	if parent := c.s.Kustomizations[*t.Parent]; parent == nil || c.passed(*t.Parent, parent) {
		return nil
	}
	return []Blocker{{Object: tierObject(*t.Parent), Link: LinkParent}}
}

// passed reports whether a parent has applied what it holds at the source's revision, or has failed
// to. One that waits has not ended its pass by then: its children are what it waits for.
func (c *deciding) passed(key tiers.Key, parent *kustomizev1.Kustomization) bool {
	status := flux.Classify(parent)
	switch {
	case parent.Spec.Suspend:
		return !c.resumes(key)
	case flux.Settled(parent, c.s):
		return true
	case c.inFlight(tierObject(key)):
		return false
	case status.Reconciling:
		return c.checking(parent)
	case !flux.Answered(parent.Annotations[flux.RequestAnnotation], parent.Status.LastHandledReconcileAt):
		return false
	}
	return (status.State == flux.MayHeal || status.State == flux.Final) && !c.moved(parent)
}

// checking reports whether a tier is in its health check at the source's revision: what it holds is
// applied (checkHealth in kustomize-controller's internal/controller/kustomization_controller.go).
func (c *deciding) checking(k *kustomizev1.Kustomization) bool {
	health := apimeta.FindStatusCondition(k.Status.Conditions, meta.HealthyCondition)
	return flux.Classify(k).Reconciling && health != nil && health.Status == metav1.ConditionUnknown && !c.moved(k)
}

// waitForChildren blocks the gates that are in their health check by the children whose health they wait for.
// A child that in turn only waits for its parent's pass is not what keeps it.
func (c *deciding) waitForChildren() {
	for _, st := range c.all {
		key, ok := st.Object.Tier()
		if k := c.s.Kustomizations[key]; !ok || st.Phase != Working || k == nil || !c.checking(k) {
			continue
		}
		if st.Blockers = c.childBlockers(key); len(st.Blockers) > 0 {
			c.change(st.Object, func(n *note) { n.runnable = c.now })
		}
	}
}

// childBlockers are the children of a gate that exist and that its health check finds unready.
func (c *deciding) childBlockers(key tiers.Key) []Blocker {
	parent := c.tiers[key]
	if parent == nil {
		return nil
	}
	var blockers []Blocker
	for _, child := range c.children[key] {
		k := c.s.Kustomizations[child]
		if k == nil || healthy(k) || !tiers.Watches(parent, kustomizev1.GroupVersion.Group, kustomizev1.KustomizationKind, child) {
			continue
		}
		if st := c.index[tierObject(child)]; st != nil && len(st.Blockers) > 0 && st.Blockers[0] == (Blocker{Object: tierObject(key), Link: LinkParent}) {
			continue
		}
		blockers = append(blockers, Blocker{Object: tierObject(child), Link: LinkChild})
	}
	return blockers
}

// healthy is how a health check reads a Kustomization, suspended or not.
func healthy(k *kustomizev1.Kustomization) bool {
	return apimeta.IsStatusConditionTrue(k.Status.Conditions, meta.ReadyCondition) && k.Generation == k.Status.ObservedGeneration
}
