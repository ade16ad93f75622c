package flux

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	oldRevision = "main@sha1:1111111111111111111111111111111111111111"
	newRevision = "main@sha1:2222222222222222222222222222222222222222"
)

func kustomization(name string, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Generation: 2},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "flux-system"},
		},
		Status: kustomizev1.KustomizationStatus{
			ObservedGeneration:  2,
			LastAppliedRevision: newRevision,
			Conditions:          []metav1.Condition{condition(meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "", 2)},
		},
	}
	for _, c := range change {
		c(k)
	}
	return k
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
}

func snapshot(objects ...any) Snapshot {
	s := Snapshot{
		Kustomizations: map[Key]*kustomizev1.Kustomization{},
		HelmReleases:   map[Key]*helmv2.HelmRelease{},
		Sources: map[SourceRef]*Source{
			{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}: {Revision: newRevision},
		},
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *kustomizev1.Kustomization:
			s.Kustomizations[Key{Namespace: o.Namespace, Name: o.Name}] = o
		case *helmv2.HelmRelease:
			s.HelmReleases[Key{Namespace: o.Namespace, Name: o.Name}] = o
		}
	}
	return s
}

func TestDependency(t *testing.T) {
	appliedOld := func(k *kustomizev1.Kustomization) { k.Status.LastAppliedRevision = oldRevision }
	notReady := func(k *kustomizev1.Kustomization) {
		k.Status.Conditions[0] = condition(meta.ReadyCondition, metav1.ConditionFalse, meta.HealthCheckFailedReason, "", 2)
	}
	tests := map[string]struct {
		dep      *kustomizev1.Kustomization
		expr     string
		additive bool
		reason   DependencyReason
		message  string
	}{
		"ready": {dep: kustomization("dep")},
		"does not exist": {
			reason: Missing, message: "dependency 'flux-system/dep' not found",
		},
		"no conditions": {
			dep:    kustomization("dep", func(k *kustomizev1.Kustomization) { k.Status.Conditions = nil }),
			reason: NotObserved, message: "dependency 'flux-system/dep' is not ready",
		},
		"generation not observed": {
			dep:    kustomization("dep", func(k *kustomizev1.Kustomization) { k.Generation = 3 }),
			reason: NotObserved, message: "dependency 'flux-system/dep' is not ready",
		},
		"not ready": {
			dep: kustomization("dep", notReady), reason: NotReady, message: "dependency 'flux-system/dep' is not ready",
		},
		"old revision of the same source": {
			dep: kustomization("dep", appliedOld), reason: OldRevision,
			message: "dependency 'flux-system/dep' revision is not up to date",
		},
		"old revision of a source of another name": {
			dep: kustomization("dep", appliedOld, func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Name = "other" }),
		},
		"old revision of a source of another kind": {
			dep: kustomization("dep", appliedOld, func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Kind = "OCIRepository" }),
		},
		"old revision of a source in another namespace": {
			dep: kustomization("dep", appliedOld, func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Namespace = "other" }),
		},
		"old revision, the source's namespace written out": {
			dep:    kustomization("dep", appliedOld, func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Namespace = "flux-system" }),
			reason: OldRevision, message: "dependency 'flux-system/dep' revision is not up to date",
		},
		"suspended but ready at the revision": {
			dep: kustomization("dep", func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }),
		},
		"expression true replaces readiness": {
			dep: kustomization("dep", notReady), expr: "dep.metadata.name == 'dep' && self.metadata.name == 'self'",
		},
		"expression true is added to readiness": {
			dep: kustomization("dep", notReady), expr: "dep.metadata.name == 'dep'", additive: true,
			reason: NotReady, message: "dependency 'flux-system/dep' is not ready",
		},
		"expression false": {
			dep: kustomization("dep"), expr: "dep.metadata.name == 'other'", reason: ExprFalse,
			message: "dependency 'flux-system/dep' is not ready according to readyExpr eval",
		},
		"expression on a field that is not there yet": {
			dep: kustomization("dep"), expr: "dep.status.missing == 'x'", reason: ExprError,
			message: "failed to evaluate the CEL expression 'dep.status.missing == 'x'': no such key: missing",
		},
		"expression that does not compile": {
			dep: kustomization("dep"), expr: "nothing.here == true", reason: ExprInvalid,
			message: "failed to evaluate dependency dep: failed to parse the CEL expression 'nothing.here == true': " +
				"ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing.here == true\n | ^",
		},
		"expression of another type": {
			dep: kustomization("dep"), expr: "'yes'", reason: ExprInvalid,
			message: "failed to evaluate dependency dep: CEL expression output type mismatch: expected bool, got string",
		},
		"expression on a dependency that does not exist": {
			expr: "true", reason: Missing, message: "dependency 'flux-system/dep' not found",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := snapshot()
			if test.dep != nil {
				s = snapshot(test.dep)
			}
			rules := &Rules{AdditiveCELDependencyCheck: test.additive}
			got := rules.Dependency(t.Context(), kustomization("self"), meta.DependencyReference{Name: "dep", ReadyExpr: test.expr}, s)
			if got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %q %q, want %q %q", got.Reason, got.Message, test.reason, test.message)
			}
			if got.Ready() != (test.reason == "") {
				t.Errorf("Ready() is %v with reason %q", got.Ready(), got.Reason)
			}
		})
	}
}

func TestDependencyInAnotherNamespace(t *testing.T) {
	dep := kustomization("dep", func(k *kustomizev1.Kustomization) { k.Namespace = "infra" })
	self := kustomization("self", func(k *kustomizev1.Kustomization) {
		k.Spec.DependsOn = []meta.DependencyReference{{Name: "dep"}, {Namespace: "infra", Name: "dep"}}
	})
	states := new(Rules).Dependencies(t.Context(), self, snapshot(dep))
	if len(states) != 2 || states[0].Reason != Missing || !states[1].Ready() {
		t.Errorf("got %+v, want the first missing and the second ready", states)
	}
	if want := (Key{Namespace: "infra", Name: "dep"}); states[1].Key != want {
		t.Errorf("got key %v, want %v", states[1].Key, want)
	}
}

func TestHelmDependencyIgnoresRevisions(t *testing.T) {
	release := func(name string, observed int64, status metav1.ConditionStatus) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, Generation: 1},
			Status: helmv2.HelmReleaseStatus{
				ObservedGeneration: observed,
				Conditions:         []metav1.Condition{condition(meta.ReadyCondition, status, "x", "", 1)},
			},
		}
	}
	s := snapshot(release("ready", 1, metav1.ConditionTrue), release("failed", 1, metav1.ConditionFalse), release("new", 0, metav1.ConditionTrue))
	self := release("self", 1, metav1.ConditionFalse)
	self.Spec.DependsOn = []meta.DependencyReference{
		{Name: "ready"}, {Name: "failed"}, {Name: "new"}, {Name: "gone"}, {Name: "failed", ReadyExpr: "true"}, {Name: "ready", ReadyExpr: "false"},
	}
	want := []DependencyReason{"", NotReady, NotObserved, Missing, "", ExprFalse}
	for i, got := range new(Rules).HelmDependencies(t.Context(), self, s) {
		if got.Reason != want[i] {
			t.Errorf("entry %d: got %q, want %q", i, got.Reason, want[i])
		}
	}
}

func TestCheckExpressions(t *testing.T) {
	for name, test := range map[string]struct {
		spec kustomizev1.KustomizationSpec
		want string
	}{
		"none":              {},
		"a readyExpr":       {spec: kustomizev1.KustomizationSpec{DependsOn: []meta.DependencyReference{{Name: "a"}, {Name: "b", ReadyExpr: "dep.spec.suspend == true"}}}},
		"no end":            {spec: kustomizev1.KustomizationSpec{DependsOn: []meta.DependencyReference{{Name: "b", ReadyExpr: "has(dep.status"}}}, want: "readyExpr of b: failed to parse the CEL expression 'has(dep.status'"},
		"no truth":          {spec: kustomizev1.KustomizationSpec{DependsOn: []meta.DependencyReference{{Name: "b", ReadyExpr: "dep.status"}}}, want: "readyExpr of b: CEL expression output type mismatch"},
		"of a health check": {spec: kustomizev1.KustomizationSpec{HealthCheckExprs: []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "A"}}}, want: "healthCheckExprs: failed to create custom status evaluator"},
	} {
		err := CheckExpressions(&kustomizev1.Kustomization{Spec: test.spec})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
