package flux

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is what an object's conditions mean for someone who waits for it.
type State string

// The states.
const (
	// Ready: the last pass succeeded at the latest generation.
	Ready State = "Ready"
	// Pending: a pass runs, or the object waits for something that Flux itself expects to come.
	Pending State = "Pending"
	// MayHeal: the last pass failed for a reason that can pass without a change in git.
	MayHeal State = "MayHeal"
	// Final: the last pass failed and only a change in git, or of the controller's flags, helps.
	Final State = "Final"
	// Suspended: spec.suspend is set; what the conditions say is history.
	Suspended State = "Suspended"
	// Unknown: the controller has not said anything yet, or the object does not exist.
	Unknown State = "Unknown"
)

// Status is a classified object.
type Status struct {
	State State `json:"state"`
	// Reason and Message are those of the condition that decided, or one of the reasons below
	// where there is no such condition.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when that condition last changed; zero when unknown.
	Since metav1.Time `json:"since,omitzero"`
	// Reconciling says that a pass is running now, as far as the status tells.
	Reconciling bool `json:"reconciling,omitempty"`
}

// Reasons that are standup's own, for states that Flux has no condition for.
const (
	ReasonNotFound    = "NotFound"    // the object does not exist
	ReasonNoStatus    = "NoStatus"    // no controller has reported on it
	ReasonNotObserved = "NotObserved" // what is reported belongs to an older generation
	ReasonTerminating = "Terminating" // it is being deleted
	ReasonSuspended   = "Suspended"
	ReasonNoArtifact  = "NoArtifact" // a source that is Ready and has no artifact
)

// Classify tells what a Kustomization's status means. It looks at nothing but the object: whether
// the revision is the source's is [Settled]'s question, and what a final failure is at one revision
// may be cured by the next. k may be nil.
//
// The reasons are those set in kustomize-controller's
// internal/controller/kustomization_controller.go, and the conditions' observedGeneration is what
// fluxcd/pkg's runtime/conditions records.
func Classify(k *kustomizev1.Kustomization) Status {
	if k == nil {
		return Status{State: Unknown, Reason: ReasonNotFound}
	}
	status := classify(k.GetDeletionTimestamp() != nil, k.Spec.Suspend, k.Generation, k.Status.ObservedGeneration, k.Status.Conditions)
	if status.State == MayHeal {
		status.State = failureOf(status.Reason, status.Message)
	}
	return status
}

// classify decides everything that all of Flux's kinds have in common. A failure comes back as
// MayHeal, for the caller to tell apart.
func classify(deleted, suspended bool, generation, observed int64, conditions []metav1.Condition) Status {
	ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	stalled := apimeta.FindStatusCondition(conditions, meta.StalledCondition)
	status := Status{Reconciling: reconciling(conditions)}
	if ready != nil {
		status.Reason, status.Message, status.Since = ready.Reason, ready.Message, ready.LastTransitionTime
	}
	switch {
	case deleted:
		status.State, status.Reason = Pending, ReasonTerminating
	case suspended:
		status.State, status.Reason, status.Reconciling = Suspended, ReasonSuspended, false
	case stalled != nil && stalled.Status == metav1.ConditionTrue && !stale(*stalled, generation):
		status.State = Final
		status.Reason, status.Message, status.Since = stalled.Reason, stalled.Message, stalled.LastTransitionTime
	case ready == nil:
		status.State, status.Reason = Unknown, ReasonNoStatus
	case ready.Status == metav1.ConditionTrue && generation == observed:
		status.State = Ready
	case ready.Status == metav1.ConditionTrue || stale(*ready, generation):
		status.State, status.Reason = Pending, ReasonNotObserved
	case ready.Status == metav1.ConditionUnknown:
		status.State = Pending
	default:
		status.State = MayHeal
	}
	return status
}

// stale reports whether a condition was set for an older generation than the object now has.
func stale(c metav1.Condition, generation int64) bool {
	return c.ObservedGeneration != 0 && c.ObservedGeneration < generation
}

// reconciling reports whether a pass runs now: after a failed one the condition stays, with the
// reason ProgressingWithRetry (finalizeStatus in the same file).
func reconciling(conditions []metav1.Condition) bool {
	c := apimeta.FindStatusCondition(conditions, meta.ReconcilingCondition)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != meta.ProgressingWithRetryReason
}

// Settled reports whether a Kustomization's last pass succeeded at the current generation and at
// its source's current revision. The controller patches the conditions first and the rest of the
// status second, so that only all three together mean that a dependent which is checked now will
// go on.
func Settled(k *kustomizev1.Kustomization, s Snapshot) bool {
	return Classify(k).State == Ready && hasRevision(s.Sources[SourceOf(k)], k.Status.LastAppliedRevision)
}

// Gates reports whether Ready means healthy rather than only applied. healthCheckExprs alone do
// not: checkHealth in kustomize-controller's internal/controller/kustomization_controller.go
// returns before it looks at them unless wait or healthChecks are set.
func Gates(k *kustomizev1.Kustomization) bool {
	return k.Spec.Wait || len(k.Spec.HealthChecks) > 0
}
