package flux

import (
	"context"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
)

// DependencyReason says why a dependency does not let its dependent go on. It is empty for a
// dependency that does.
type DependencyReason string

// The reasons, in the order in which Flux checks them.
const (
	// Missing: the object does not exist on the cluster.
	Missing DependencyReason = "Missing"
	// ExprInvalid: readyExpr does not compile. Flux stalls the dependent; only git can change it.
	ExprInvalid DependencyReason = "ExprInvalid"
	// ExprError: readyExpr compiles but cannot be evaluated on what is there now, such as a status
	// field that does not exist yet. Flux retries it like any other unready dependency.
	ExprError DependencyReason = "ExprError"
	// ExprFalse: readyExpr is false.
	ExprFalse DependencyReason = "ExprFalse"
	// NotObserved: it has no conditions, or its controller has not seen its latest generation.
	NotObserved DependencyReason = "NotObserved"
	// NotReady: its Ready condition is not True.
	NotReady DependencyReason = "NotReady"
	// OldRevision: it has the dependent's own source and has not applied the source's revision.
	OldRevision DependencyReason = "OldRevision"
)

// DependencyState is what Flux would find if it checked one dependency now.
type DependencyState struct {
	// Key is the dependency, with its namespace filled in.
	Key Key
	// Reason is empty when the dependency counts as ready.
	Reason DependencyReason
	// Message is the text of Flux's own condition; empty when ready.
	Message string
}

// Ready reports whether Flux would go past this dependency.
func (d DependencyState) Ready() bool { return d.Reason == "" }

// Rules are Flux's rules under the feature gates of one installation. The zero value is Flux as it
// is shipped. Rules remember compiled expressions and are safe for concurrent use; use one by
// pointer for as long as expressions repeat.
type Rules struct {
	// AdditiveCELDependencyCheck is the controllers' feature gate of that name: a readyExpr is
	// checked in addition to readiness, not instead of it.
	AdditiveCELDependencyCheck bool

	programs sync.Map // expression → *program
}

// GateAdditiveCELDependencyCheck is the feature gate's name on the controllers' command line
// (fluxcd/pkg's runtime/controller/features.go).
const GateAdditiveCELDependencyCheck = "AdditiveCELDependencyCheck"

// Dependency is [Rules.Dependency] for Flux as it is shipped.
func Dependency(ctx context.Context, self *kustomizev1.Kustomization, ref meta.DependencyReference, s Snapshot) DependencyState {
	return new(Rules).Dependency(ctx, self, ref, s)
}

// Dependency reports whether Flux would let self go past one entry of its dependsOn. Like Flux it
// ignores whether the dependency is suspended. A source without an artifact matches no revision,
// but Flux does not come as far as this check then: see [SourceOf].
//
// It mirrors checkDependencies in kustomize-controller's
// internal/controller/kustomization_controller.go. ctx only interrupts a long CEL evaluation.
func (r *Rules) Dependency(ctx context.Context, self *kustomizev1.Kustomization, ref meta.DependencyReference, s Snapshot) DependencyState {
	state := DependencyState{Key: dependencyKey(self.Namespace, ref)}
	dep := s.Kustomizations[state.Key]
	if dep == nil {
		return state.blocked(Missing, "dependency '"+state.Key.String()+"' not found")
	}
	if ref.ReadyExpr != "" {
		if reason, message := r.evaluate(ctx, ref.ReadyExpr, self, dep, state.Key); reason != "" {
			return state.blocked(reason, message)
		}
		if !r.AdditiveCELDependencyCheck {
			return state
		}
	}
	if len(dep.Status.Conditions) == 0 || dep.Generation != dep.Status.ObservedGeneration {
		return state.blocked(NotObserved, "dependency '"+state.Key.String()+"' is not ready")
	}
	if !apimeta.IsStatusConditionTrue(dep.Status.Conditions, meta.ReadyCondition) {
		return state.blocked(NotReady, "dependency '"+state.Key.String()+"' is not ready")
	}
	source := SourceOf(self)
	if source == SourceOf(dep) && !hasRevision(s.Sources[source], dep.Status.LastAppliedRevision) {
		return state.blocked(OldRevision, "dependency '"+state.Key.String()+"' revision is not up to date")
	}
	return state
}

// Dependencies reports on every entry of self's dependsOn, in the order of the spec. Flux itself
// stops at the first that is not ready.
func (r *Rules) Dependencies(ctx context.Context, self *kustomizev1.Kustomization, s Snapshot) []DependencyState {
	states := make([]DependencyState, 0, len(self.Spec.DependsOn))
	for _, ref := range self.Spec.DependsOn {
		states = append(states, r.Dependency(ctx, self, ref, s))
	}
	return states
}

// HelmDependency reports whether Flux would let a HelmRelease go past one entry of its dependsOn:
// as for a Kustomization, but without any look at revisions.
//
// It mirrors checkDependencies in helm-controller's internal/controller/helmrelease_controller.go.
func (r *Rules) HelmDependency(ctx context.Context, self *helmv2.HelmRelease, ref meta.DependencyReference, s Snapshot) DependencyState {
	state := DependencyState{Key: dependencyKey(self.Namespace, ref)}
	dep := s.HelmReleases[state.Key]
	if dep == nil {
		return state.blocked(Missing, "unable to get '"+state.Key.String()+"' dependency: not found")
	}
	if ref.ReadyExpr != "" {
		if reason, message := r.evaluate(ctx, ref.ReadyExpr, self, dep, state.Key); reason != "" {
			return state.blocked(reason, message)
		}
		if !r.AdditiveCELDependencyCheck {
			return state
		}
	}
	if dep.Generation != dep.Status.ObservedGeneration {
		return state.blocked(NotObserved, "dependency '"+state.Key.String()+"' is not ready")
	}
	if !apimeta.IsStatusConditionTrue(dep.Status.Conditions, meta.ReadyCondition) {
		return state.blocked(NotReady, "dependency '"+state.Key.String()+"' is not ready")
	}
	return state
}

// HelmDependencies reports on every entry of a HelmRelease's dependsOn, in the order of the spec.
func (r *Rules) HelmDependencies(ctx context.Context, self *helmv2.HelmRelease, s Snapshot) []DependencyState {
	states := make([]DependencyState, 0, len(self.Spec.DependsOn))
	for _, ref := range self.Spec.DependsOn {
		states = append(states, r.HelmDependency(ctx, self, ref, s))
	}
	return states
}

// SourceOf names the source that a Kustomization reads, its namespace filled in.
func SourceOf(k *kustomizev1.Kustomization) SourceRef {
	ref := SourceRef{Kind: k.Spec.SourceRef.Kind, Namespace: k.Spec.SourceRef.Namespace, Name: k.Spec.SourceRef.Name}
	if ref.Namespace == "" {
		ref.Namespace = k.Namespace
	}
	return ref
}

func dependencyKey(namespace string, ref meta.DependencyReference) Key {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return Key{Namespace: namespace, Name: ref.Name}
}

func hasRevision(s *Source, revision string) bool {
	return s != nil && s.Revision != "" && s.Revision == revision
}

func (d DependencyState) blocked(reason DependencyReason, message string) DependencyState {
	d.Reason, d.Message = reason, message
	return d
}
