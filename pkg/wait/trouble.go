package wait

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

func isKey(key tiers.Key) func(flux.DependencyState) bool {
	return func(d flux.DependencyState) bool { return d.Key == key }
}

func suspendedDiagnosis(key tiers.Key, k *kustomizev1.Kustomization) Diagnosis {
	d := Diagnosis{
		Cause: TierSuspended, Object: "Kustomization/" + key.String(), Summary: key.Name + " is " + suspendedMessage(k),
		Command: "standup resume --only " + name(key),
	}
	if flux.SuspendedInGit(k, k.Spec.Suspend) {
		d.Summary += ", and git says so too"
		d.Hint = "take suspend: true out of git: its parent's next pass suspends it again"
		d.Command += " --include-suspended-in-git"
	}
	return d
}

// nameSuspension tells apart what waits for a suspended tier, once that is known.
func (w *walk) nameSuspension(d *Diagnosis) {
	if d.Cause != TierSuspended {
		return
	}
	var dependents, parents []string
	for _, t := range w.tiers {
		for _, wait := range w.waits[t.Key] {
			switch {
			case wait.to != d.Tier:
			case wait.via == viaHealth:
				parents = append(parents, t.Name)
			case wait.via == viaDependency:
				dependents = append(dependents, t.Name)
			}
		}
	}
	switch {
	case len(parents) > 0:
		d.Cause = ChildSuspended
		d.Summary += fmt.Sprintf("; %s waits for it to be healthy", parents[0])
	case len(dependents) > 0:
		d.Cause = DependencySuspended
		if s := w.statuses[d.Tier]; s.Revision != "" && s.SourceRevision != "" && s.Revision != s.SourceRevision {
			d.Summary += fmt.Sprintf(", the source is at %s", s.SourceRevision)
		}
	}
}

func notAppliedDiagnosis(t *tiers.Tier) Diagnosis {
	d := Diagnosis{Cause: NotApplied, Object: "Kustomization/" + t.Key.String(), Summary: name(t.Key) + " is in git and not on the cluster"}
	switch {
	case t.Parent != nil:
		d.Summary += fmt.Sprintf(", although its parent %s is ready", name(*t.Parent))
		d.Hint = "compare the revision that was read with the one the cluster has"
		d.Command = reconcileCommand(*t.Parent)
	case t.File != "":
		d.Command = "kubectl apply -f " + t.File
	}
	return d
}

func dependencyMissingDiagnosis(dep tiers.Key) Diagnosis {
	return Diagnosis{
		Cause: DependencyMissing, Object: "Kustomization/" + dep.String(),
		Summary: fmt.Sprintf("Kustomization %s, named by dependsOn, does not exist", dep),
		Hint:    "add it to git, or take the dependsOn out",
		Command: "kubectl get kustomizations.kustomize.toolkit.fluxcd.io -A",
	}
}

func expressionDiagnosis(k *kustomizev1.Kustomization, dep flux.DependencyState) Diagnosis {
	d := Diagnosis{Cause: ExpressionFalse, Object: "Kustomization/" + dep.Key.String(), FluxMessage: Mask(dep.Message)}
	d.Summary = fmt.Sprintf("the readyExpr for %s is not true", name(dep.Key))
	if dep.Reason == flux.ExprError {
		d.Summary = fmt.Sprintf("the readyExpr for %s cannot be evaluated yet", name(dep.Key))
	}
	if dep.Reason == flux.ExprInvalid {
		d.Cause, d.Summary, d.Hint = ExpressionInvalid, fmt.Sprintf("the readyExpr for %s does not compile", name(dep.Key)), "correct it in git"
	}
	d.RetryEvery = flux.NextRetry(k).Every
	return d
}

// lookAtSource notes what is wrong with the source of a tier that cannot go on without it, and
// reports whether anything is.
func (w *walk) lookAtSource(key tiers.Key, k *kustomizev1.Kustomization) bool {
	ref := flux.SourceOf(k)
	source := w.snapshot.Sources[ref]
	d := Diagnosis{Object: ref.String(), RetryEvery: flux.NextRetry(k).Every}
	status := flux.ClassifySource(source)
	switch {
	case source == nil && w.index[key] >= w.inGraph:
		return false // kinds of sources that only others use are not watched
	case source == nil:
		d.Cause, d.Summary = SourceMissing, fmt.Sprintf("source %s does not exist", ref)
		d.Command = fmt.Sprintf("kubectl -n %s get %s", ref.Namespace, sourceResource(ref.Kind))
	case source.Revision != "":
		return false
	case source.Suspended:
		d.Cause, d.Summary = SourceSuspended, fmt.Sprintf("source %s is suspended and has no artifact", ref)
		d.Command = sourceCommand("resume", ref)
	case status.State == flux.MayHeal || status.State == flux.Final:
		d.Cause, d.FluxMessage = SourceNotFetched, Mask(status.Message)
		d.Summary = fmt.Sprintf("source %s cannot be fetched: %s", ref, firstLine(d.FluxMessage))
		d.Command = sourceCommand("reconcile", ref)
		d.Since = status.Since.Time
	default:
		d.Cause, d.Summary = SourceNoArtifact, fmt.Sprintf("source %s has no artifact yet", ref)
		d.FluxMessage = Mask(status.Message)
		d.Command = sourceCommand("reconcile", ref)
	}
	w.add(key, d)
	return true
}

// lookAtFailed reads the condition of a tier whose last pass failed.
func (w *walk) lookAtFailed(t *tiers.Tier, k *kustomizev1.Kustomization, s TierStatus) {
	if s.Reason == meta.ArtifactFailedReason && w.lookAtSource(t.Key, k) {
		return
	}
	if s.Reason == meta.HealthCheckFailedReason {
		d := Diagnosis{Cause: HealthCheckFailed, FluxMessage: s.Message, Waiting: unhealthy(s.Message)}
		d.retry(s)
		w.lookAtHealth(t.Key, k, d)
		return
	}
	if w.reader == nil {
		w.reader = newReader(w.evidence.fluxNamespace())
	}
	d := w.reader.failure(k, flux.Status{Reason: s.Reason, Message: s.Message})
	d.retry(s)
	if d.Command == "" {
		d.Command = w.defaultCommand(t.Key, d)
	}
	w.add(t.Key, d)
}

func (d *Diagnosis) retry(s TierStatus) {
	d.NextRetry, d.RetryEvery, d.Since = s.NextRetry, s.RetryEvery, s.Since
}

// lookAtRetry treats a tier whose pass runs as what it was before: failed, if the last pass failed
// at the revision that is tried again. The conditions have forgotten that; the evidence may not.
func (w *walk) lookAtRetry(t *tiers.Tier, k *kustomizev1.Kustomization, s TierStatus) bool {
	failure, ok := w.evidence.LastFailures[t.Key]
	if !ok || s.SourceRevision == "" || s.Revision == s.SourceRevision || failure.Revision != s.SourceRevision {
		return false
	}
	s.Reason, s.Message, s.Since = failure.Reason, Mask(failure.Message), failure.At
	s.NextRetry, s.RetryEvery = time.Time{}, k.GetRetryInterval()
	w.retrying[t.Key] = true
	w.lookAtFailed(t, k, s)
	return true
}

// healthChecking reports whether the pass that runs has come as far as its health checks.
func healthChecking(k *kustomizev1.Kustomization, status flux.Status) bool {
	c := apimeta.FindStatusCondition(k.Status.Conditions, meta.HealthyCondition)
	return status.Reconciling && c != nil && c.Status == metav1.ConditionUnknown && c.Reason == meta.ProgressingReason
}

func runningHealthCheck(k *kustomizev1.Kustomization, s TierStatus) Diagnosis {
	d := Diagnosis{Cause: InProgress, Summary: s.Message, FluxMessage: s.Message, Since: s.Since}
	for _, id := range healthChecked(k) {
		if mayBeUnhealthy(id) {
			d.candidates = append(d.candidates, id)
		}
	}
	return d
}

// lookAtHealth follows a health check to the children it waits for; what is not a child of the tier
// remains as a cause of its own.
func (w *walk) lookAtHealth(key tiers.Key, k *kustomizev1.Kustomization, d Diagnosis) {
	waiting := false
	for _, child := range w.waitedChildren(key, k) {
		w.wait(key, child, viaHealth)
		waiting = true
	}
	if d.Cause == HealthCheckFailed {
		d.Waiting = slices.DeleteFunc(d.Waiting, func(o WaitingObject) bool { return w.isChild(key, o.ID) })
		if len(d.Waiting) == 0 && waiting {
			return
		}
		w.addHealth(key, k, d)
		return
	}
	d.candidates = slices.DeleteFunc(d.candidates, func(id string) bool { return w.isChild(key, id) })
	if known := w.judge(d.candidates); len(known) > 0 {
		d.Waiting = known
		w.addHealth(key, k, d)
		return
	}
	if !waiting {
		w.add(key, w.overdue(k, d))
	}
}

// isChild reports whether an object is a Kustomization that the tier's health check leads on to.
func (w *walk) isChild(key tiers.Key, id string) bool {
	return slices.ContainsFunc(w.waits[key], func(wait wait) bool {
		return wait.via == viaHealth && id == "Kustomization/"+wait.to.String()
	})
}

// waitedChildren are the Kustomizations that the tier's health check waits for and that kstatus
// would not call current: not Ready at their own generation. Their revision is not looked at.
func (w *walk) waitedChildren(key tiers.Key, k *kustomizev1.Kustomization) []tiers.Key {
	checked := healthChecked(k)
	var waited []tiers.Key
	consider := func(child tiers.Key) {
		if child == key || slices.Contains(waited, child) || !w.adopt(child) {
			return
		}
		if c := w.snapshot.Kustomizations[child]; c == nil || !apimeta.IsStatusConditionTrue(c.Status.Conditions, meta.ReadyCondition) ||
			c.Generation != c.Status.ObservedGeneration {
			waited = append(waited, child)
		}
	}
	for _, id := range checked {
		if rest, ok := strings.CutPrefix(id, "Kustomization/"); ok {
			namespace, child, _ := strings.Cut(rest, "/")
			consider(tiers.Key{Namespace: namespace, Name: child})
		}
	}
	if k.Spec.Wait && len(checked) == 0 { // no inventory yet
		for _, child := range w.children[key] {
			consider(child)
		}
	}
	return waited
}

// addHealth adds one cause for each suspended or failed release, the tier's own source if it is
// among the objects, and one for the rest.
func (w *walk) addHealth(key tiers.Key, k *kustomizev1.Kustomization, d Diagnosis) {
	var rest []WaitingObject
	for _, object := range d.Waiting {
		special, ok := w.special(k, object)
		if !ok {
			rest = append(rest, object)
			continue
		}
		special.FluxMessage, special.NextRetry, special.RetryEvery, special.Since = d.FluxMessage, d.NextRetry, d.RetryEvery, d.Since
		special.Waiting = []WaitingObject{object}
		w.add(key, special)
	}
	if len(rest) == 0 && len(d.Waiting) > 0 {
		return
	}
	d.Waiting = rest
	switch {
	case len(rest) > 0 && d.Cause == HealthCheckFailed:
		d.Object, d.Summary = rest[0].ID, counted(rest)+" not healthy"
	case len(rest) > 0:
		d.Object, d.Summary = rest[0].ID, "waiting for "+rest[0].ID+others(len(rest)-1)+" to be healthy"
	default:
		d.Summary = "the health check failed: " + firstLine(d.FluxMessage)
	}
	if len(rest) > 0 {
		d.Command = objectCommand(rest[0].ID)
	}
	w.add(key, d)
}

func others(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// special tells what deserves a cause of its own among the objects that are not healthy.
func (w *walk) special(k *kustomizev1.Kustomization, object WaitingObject) (Diagnosis, bool) {
	kind, rest, _ := strings.Cut(object.ID, "/")
	namespace, objectName, _ := strings.Cut(rest, "/")
	key := tiers.Key{Namespace: namespace, Name: objectName}
	switch {
	case object.ID == flux.SourceOf(k).String():
		return Diagnosis{
			Cause: SourceInTier, Object: object.ID,
			Summary: fmt.Sprintf("the tier waits for %s, the source it is read from: while that fails, no commit can repair it", object.ID),
			Hint:    "repair the source on the cluster, then in git; leave it out of a tier with wait: true",
			Command: fmt.Sprintf("kubectl -n %s edit %s %s", namespace, strings.ToLower(kind), objectName),
		}, true
	case kind == "HelmRelease":
		return w.release(key, object)
	}
	return Diagnosis{}, false
}

// release tells why a waiting tier waits for a HelmRelease.
func (w *walk) release(key tiers.Key, object WaitingObject) (Diagnosis, bool) {
	if fact := w.evidence.Controllers[helmController]; fact.State == ControllerStopped {
		return w.stopped(helmController, fact, Diagnosis{}), true
	}
	suspended, known := w.evidence.suspended(object.ID)
	message := object.Message
	if h := w.snapshot.HelmReleases[key]; h != nil {
		suspended, known = h.Spec.Suspend, true
		message = Mask(flux.ClassifyHelm(h).Message)
	}
	switch {
	case known && suspended:
		return Diagnosis{
			Cause: HelmReleaseSuspended, Object: object.ID,
			Summary: fmt.Sprintf("%s is suspended, and the tier waits for it to be healthy", object.ID),
			Command: fmt.Sprintf("flux -n %s resume helmrelease %s", key.Namespace, key.Name),
		}, true
	case object.Status == "Failed" || known && message != "" && w.snapshot.HelmReleases[key] != nil && flux.ClassifyHelm(w.snapshot.HelmReleases[key]).State == flux.Final:
		d := Diagnosis{Cause: HelmReleaseFailed, Object: object.ID, Summary: object.ID + " failed"}
		if message != "" {
			d.Summary += ": " + firstLine(message)
		}
		d.Command = fmt.Sprintf("flux -n %s reconcile helmrelease %s --reset", key.Namespace, key.Name)
		return d, true
	}
	return Diagnosis{}, false
}

// name writes a tier as the commands take it: without the namespace where it is the usual one.
func name(key tiers.Key) string {
	if key.Namespace == DefaultFluxNamespace || key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func reconcileCommand(key tiers.Key) string {
	return fmt.Sprintf("flux -n %s reconcile kustomization %s", key.Namespace, key.Name)
}

func sourceCommand(verb string, ref flux.SourceRef) string {
	kind := map[string]string{"GitRepository": "git", "OCIRepository": "oci", "Bucket": "bucket", "HelmRepository": "helm"}[ref.Kind]
	if kind == "" {
		return fmt.Sprintf("kubectl -n %s describe %s %s", ref.Namespace, strings.ToLower(ref.Kind), ref.Name)
	}
	return fmt.Sprintf("flux -n %s %s source %s %s", ref.Namespace, verb, kind, ref.Name)
}

func objectCommand(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	namespace, objectName, ok := strings.Cut(rest, "/")
	if !ok {
		return fmt.Sprintf("kubectl describe %s %s", strings.ToLower(kind), rest)
	}
	return fmt.Sprintf("kubectl -n %s describe %s %s", namespace, strings.ToLower(kind), objectName)
}
