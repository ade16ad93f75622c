package model

import (
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// The controller's times that are no option of a tier.
const (
	finalizerRequeue = 750 * time.Millisecond // --min-retry-delay, which Requeue: true waits for
	healthPoll       = 5 * time.Second
	// patchGap lies between the patch of the conditions and that of the rest of the status.
	patchGap  = 8 * time.Millisecond
	checkTime = 5 * time.Millisecond
)

// add puts a tier in the queue: one that is there already is not put twice, and one in a pass is
// looked at again afterwards. A pending requeue is jumped.
func (c *Cluster) add(key flux.Key) {
	delete(c.delayed, key)
	switch {
	case c.running[key]:
		c.dirty[key] = true
	case !c.queued[key]:
		c.queued[key] = true
		c.queue = append(c.queue, key)
		c.work()
	}
}

func (c *Cluster) addAfter(key flux.Key, d time.Duration) {
	if c.queued[key] {
		return
	}
	due := c.now.Add(d)
	if at, ok := c.delayed[key]; ok && at.Before(due) {
		return
	}
	c.delayed[key] = due
	c.After(d, func() {
		if at, ok := c.delayed[key]; ok && at.Equal(due) {
			c.add(key)
		}
	})
}

func (c *Cluster) work() {
	for len(c.queue) > 0 && len(c.running) < c.Workers {
		key := c.queue[0]
		c.queue = c.queue[1:]
		delete(c.queued, key)
		c.running[key] = true
		p := &pass{Cluster: c, key: key, restart: c.restarts}
		p.then(checkTime, p.begin)
	}
}

// pass is one call of Reconcile. It works on the object as it was when it began.
type pass struct {
	*Cluster
	key     flux.Key
	restart int
	obj     *kustomizev1.Kustomization
	began   time.Time
	checked time.Time
}

// then goes on later, unless the controller has been restarted or the object is gone.
func (p *pass) then(d time.Duration, do func()) {
	p.After(d, func() {
		if p.restart == p.restarts && p.live.Kustomizations[p.key] != nil {
			do()
		}
	})
}

func (p *pass) begin() {
	p.obj, p.began = p.live.Kustomizations[p.key], p.now
	source := p.live.Sources[Source()]
	switch {
	case len(p.obj.Finalizers) == 0:
		p.update(p.key, false, func(k *kustomizev1.Kustomization) { k.Finalizers = []string{kustomizev1.KustomizationFinalizer} })
		p.finish(finalizerRequeue)
		return
	case p.obj.Spec.Suspend:
		p.conclude(0)
		return
	case source == nil:
		p.turnAway(meta.ArtifactFailedReason, `gitrepositories.source.toolkit.fluxcd.io "flux-system" not found`, p.obj.GetRetryInterval())
		return
	case source.Revision == "":
		p.turnAway(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s", flux.DependencyRequeue)
		return
	}
	for _, dep := range p.rules.Dependencies(noContext{}, p.obj, p.live) {
		if !dep.Ready() {
			p.turnAway(meta.DependencyNotReadyReason, dep.Message, flux.DependencyRequeue)
			return
		}
	}
	p.Passes[p.key]++
	p.condition(meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason, "Reconciliation in progress")
	p.condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "Fetching manifests for revision "+source.Revision)
	p.then(p.tier().Build, func() { p.build(source.Revision) })
}

func (p *pass) tier() *tierState { return p.tiers[p.key] }

func (p *pass) build(rev string) {
	t := p.tier()
	if t.Broken != nil && t.Broken.Reason == meta.ArtifactFailedReason {
		p.fail(*t.Broken)
		return
	}
	p.update(p.key, false, func(k *kustomizev1.Kustomization) { k.Status.LastAttemptedRevision = rev })
	p.condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, "Building manifests for revision "+rev)
	if t.Broken != nil && t.Broken.Reason == meta.BuildFailedReason {
		p.fail(*t.Broken)
		return
	}
	if t.Sick != nil && p.now.Before(Start().Add(t.SickFor)) {
		p.fail(*t.Sick)
		return
	}
	p.then(t.Apply, func() { p.apply(rev) })
}

// apply is staged: the first stage stays even if the last one's dry-run fails.
func (p *pass) apply(rev string) {
	t := p.tier()
	for _, kind := range t.Provides {
		p.kinds[kind] = true
	}
	for _, kind := range t.Needs {
		if !p.kinds[kind] {
			p.fail(Failure{meta.ReconciliationFailedReason, fmt.Sprintf("%s/%s dry-run failed: no matches for kind %q in version %q\n", kind, t.Name, kind, "example.com/v1")})
			return
		}
	}
	switch {
	case t.sick > 0:
		t.sick--
		p.fail(Failure{meta.ReconciliationFailedReason, "ConfigMap/x dry-run failed (InternalError): failed calling webhook"})
		return
	case t.Broken != nil:
		p.fail(*t.Broken)
		return
	case t.failed < len(t.Failures):
		t.failed++
		p.fail(t.Failures[t.failed-1])
		return
	}
	p.applied()
	if !t.Wait {
		p.succeed(rev)
		return
	}
	message := "Running health checks for revision " + rev
	p.condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
	p.condition(meta.HealthyCondition, metav1.ConditionUnknown, meta.ProgressingReason, message)
	p.checked = p.now
	p.check(rev)
}

// applied creates the children and starts what takes time after an apply.
func (p *pass) applied() {
	t := p.tier()
	for _, key := range p.order {
		child := p.tiers[key]
		if child.Parent != t.Name {
			continue
		}
		live := p.live.Kustomizations[key]
		switch {
		case live == nil:
			p.create(key)
		case child.InGit && child.Suspended && !live.Spec.Suspend:
			p.update(key, true, func(k *kustomizev1.Kustomization) {
				k.Spec.Suspend = true
				k.Generation++
				p.own(k, child)
			})
		}
	}
	if !t.applied.IsZero() {
		return
	}
	t.applied = p.now
	for kind, after := range t.Registers {
		p.After(after, func() { p.kinds[kind] = true })
	}
}

// check polls the health of what was applied, children among it.
func (p *pass) check(rev string) {
	t := p.tier()
	healthy := !p.now.Before(t.applied.Add(t.Health))
	for _, key := range p.order {
		if p.tiers[key].Parent == t.Name {
			k := p.live.Kustomizations[key]
			healthy = healthy && k != nil && isTrue(k, meta.ReadyCondition) && k.Generation == k.Status.ObservedGeneration
		}
	}
	left := p.obj.GetTimeout() - p.now.Sub(p.checked)
	switch {
	case healthy:
		p.condition(meta.HealthyCondition, metav1.ConditionTrue, meta.SucceededReason, "Health check passed")
		p.succeed(rev)
	case left <= 0:
		p.condition(meta.HealthyCondition, metav1.ConditionFalse, meta.HealthCheckFailedReason, "timeout waiting for: []")
		p.fail(Failure{meta.HealthCheckFailedReason, "health check failed: timeout waiting for: []"})
	default:
		p.then(min(healthPoll, left), func() { p.check(rev) })
	}
}

func (p *pass) succeed(rev string) {
	p.update(p.key, false, func(k *kustomizev1.Kustomization) {
		apimeta.RemoveStatusCondition(&k.Status.Conditions, meta.ReconcilingCondition)
		p.set(k, meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+rev)
	})
	p.then(patchGap, func() {
		p.update(p.key, false, func(k *kustomizev1.Kustomization) {
			k.Status.LastAppliedRevision = rev
			k.Status.ObservedGeneration = p.obj.Generation
			p.handled(k)
		})
		p.finish(p.obj.Spec.Interval.Duration)
	})
}

func (p *pass) fail(f Failure) {
	p.update(p.key, false, func(k *kustomizev1.Kustomization) {
		p.set(k, meta.ReadyCondition, metav1.ConditionFalse, f.Reason, f.Message)
		p.set(k, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "")
	})
	p.conclude(p.obj.GetRetryInterval())
}

// turnAway ends a pass before its build.
func (p *pass) turnAway(reason, message string, requeue time.Duration) {
	p.condition(meta.ReadyCondition, metav1.ConditionFalse, reason, message)
	if apimeta.FindStatusCondition(p.live.Kustomizations[p.key].Status.Conditions, meta.ReconcilingCondition) != nil {
		p.condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "")
	}
	p.conclude(requeue)
}

// conclude patches what is left of the status after the conditions.
func (p *pass) conclude(requeue time.Duration) {
	p.then(patchGap, func() {
		p.update(p.key, false, func(k *kustomizev1.Kustomization) {
			p.handled(k)
			if isTrue(k, meta.ReadyCondition) {
				k.Status.ObservedGeneration = p.obj.Generation
			}
		})
		p.finish(requeue)
	})
}

func (p *pass) handled(k *kustomizev1.Kustomization) {
	if token, ok := p.obj.Annotations[flux.RequestAnnotation]; ok {
		k.Status.LastHandledReconcileAt = token
	}
}

func (p *pass) finish(requeue time.Duration) {
	delete(p.running, p.key)
	switch {
	case p.dirty[p.key]:
		delete(p.dirty, p.key)
		p.add(p.key)
	case requeue > 0:
		p.addAfter(p.key, requeue)
	}
	p.work()
}

func (p *pass) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	p.update(p.key, false, func(k *kustomizev1.Kustomization) { p.set(k, kind, status, reason, message) })
}

// set is conditions.Set of fluxcd/pkg's runtime/conditions: the transition time changes with any of
// status, reason and message, and is cut to the second.
func (p *pass) set(k *kustomizev1.Kustomization, kind string, status metav1.ConditionStatus, reason, message string) {
	next := metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: p.obj.Generation,
		LastTransitionTime: metav1.NewTime(p.now.Truncate(time.Second)),
	}
	i := slices.IndexFunc(k.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		k.Status.Conditions = append(k.Status.Conditions, next)
		return
	}
	old := k.Status.Conditions[i]
	if old.Status == status && old.Reason == reason && old.Message == message {
		next.LastTransitionTime = old.LastTransitionTime
	}
	k.Status.Conditions[i] = next
}

func isTrue(k *kustomizev1.Kustomization, kind string) bool {
	return apimeta.IsStatusConditionTrue(k.Status.Conditions, kind)
}

// noContext is a context without an end: in virtual time nothing is interrupted.
type noContext struct{}

func (noContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (noContext) Done() <-chan struct{}       { return nil }
func (noContext) Err() error                  { return nil }
func (noContext) Value(any) any               { return nil }
