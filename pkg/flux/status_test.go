package flux

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClassifyFailures(t *testing.T) {
	tests := map[string]struct {
		reason, message string
		want            State
	}{
		"dependency":          {"DependencyNotReady", "dependency 'flux-system/a' is not ready", Pending},
		"canceled":            {"HealthCheckCanceled", "New reconciliation triggered by GitRepository/flux-system/flux-system", Pending},
		"no artifact yet":     {"ArtifactFailed", "Source artifact not found, retrying in 30s", Pending},
		"artifact vanished":   {"ArtifactFailed", "Source is not ready, artifact not found, retrying in 30s", Pending},
		"source absent":       {"ArtifactFailed", `gitrepositories.source.toolkit.fluxcd.io "fleet" not found`, MayHeal},
		"download failed":     {"ArtifactFailed", `failed to download archive: GET http://x giving up after 10 attempt(s)`, MayHeal},
		"path absent":         {"ArtifactFailed", "kustomization path not found: stat /tmp/kustomization-1/apps: no such file or directory", Final},
		"broken build":        {"BuildFailed", "kustomize build failed: accumulating resources", Final},
		"substitute absent":   {"BuildFailed", `post build failed for 'v1.ConfigMap/a': substitute from 'ConfigMap/cluster-vars' error: configmaps "cluster-vars" not found`, MayHeal},
		"variable unset":      {"BuildFailed", `post build failed for 'v1.ConfigMap/a': envsubst error: variable substitution failed: variable not set (strict mode): "X"`, Final},
		"key absent":          {"BuildFailed", `cannot get sops decryption Secret 'flux-system/sops-age': secrets "sops-age" not found`, MayHeal},
		"key Secret absent":   {"BuildFailed", `secrets "sops-age" not found`, MayHeal},
		"wrong key":           {"BuildFailed", "decryption failed for 'Secret.v1.[noGrp]/token': cannot get sops data key", MayHeal},
		"webhook":             {"ReconciliationFailed", `ConfigMap/a/b dry-run failed (InternalError): failed calling webhook "x"`, MayHeal},
		"encrypted, no key":   {"ReconciliationFailed", "Secret/a/b is SOPS encrypted, configuring decryption is required for this secret to be reconciled", Final},
		"unhealthy":           {"HealthCheckFailed", "health check failed after 30s: timeout waiting for: [Deployment/a/b status: 'InProgress']", MayHeal},
		"prune":               {"PruneFailed", "x", MayHeal},
		"reason not known":    {"SomethingNew", "x", MayHeal},
		"access denied":       {"AccessDenied", "can't access 'GitRepository/a/b', cross-namespace references have been blocked", Final},
		"invalid expression":  {"InvalidCELExpression", "x", Final},
		"feature gate is off": {"FeatureGateDisabled", "x", Final},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := kustomization("a", func(k *kustomizev1.Kustomization) {
				k.Status.Conditions = []metav1.Condition{condition(meta.ReadyCondition, metav1.ConditionFalse, test.reason, test.message, 2)}
			})
			if got := Classify(k); got.State != test.want || got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %+v, want %s", got, test.want)
			}
		})
	}
}

func TestClassifyStates(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		change      func(*kustomizev1.Kustomization)
		state       State
		reason      string
		reconciling bool
	}{
		"ready":                          {func(*kustomizev1.Kustomization) {}, Ready, "ReconciliationSucceeded", false},
		"conditions first, status later": {func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = 1 }, Pending, "NotObserved", false},
		"suspended":                      {func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, Suspended, "Suspended", false},
		"terminating":                    {func(k *kustomizev1.Kustomization) { k.DeletionTimestamp = &now }, Pending, "Terminating", false},
		"nothing said":                   {func(k *kustomizev1.Kustomization) { k.Status = kustomizev1.KustomizationStatus{} }, Unknown, "NoStatus", false},
		"a failure of an older generation": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{condition("Ready", "False", "BuildFailed", "x", 1)}
		}, Pending, "NotObserved", false},
		"stalled": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{condition("Ready", "False", "x", "", 2), condition("Stalled", "True", "InvalidCELExpression", "y", 2)}
		}, Final, "InvalidCELExpression", false},
		"in a pass": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{condition("Ready", "Unknown", "Progressing", "", 2), condition("Reconciling", "True", "Progressing", "", 2)}
		}, Pending, "Progressing", true},
		"between passes": {func(k *kustomizev1.Kustomization) {
			k.Status.Conditions = []metav1.Condition{condition("Ready", "False", "HealthCheckFailed", "", 2), condition("Reconciling", "True", "ProgressingWithRetry", "", 2)}
		}, MayHeal, "HealthCheckFailed", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Classify(kustomization("a", test.change))
			if got.State != test.state || got.Reason != test.reason || got.Reconciling != test.reconciling {
				t.Errorf("got %+v, want %s %s, reconciling %v", got, test.state, test.reason, test.reconciling)
			}
		})
	}
	if got := Classify(nil); got.State != Unknown || got.Reason != ReasonNotFound {
		t.Errorf("nil: got %+v", got)
	}
}

func TestSettledNeedsAllThree(t *testing.T) {
	tests := map[string]struct {
		change func(*kustomizev1.Kustomization)
		want   bool
	}{
		"all three": {func(*kustomizev1.Kustomization) {}, true},
		"condition alone": {func(k *kustomizev1.Kustomization) {
			k.Status.ObservedGeneration = 1
			k.Status.LastAppliedRevision = oldRevision
		}, false},
		"revision is old":    {func(k *kustomizev1.Kustomization) { k.Status.LastAppliedRevision = oldRevision }, false},
		"generation is old":  {func(k *kustomizev1.Kustomization) { k.Status.ObservedGeneration = 1 }, false},
		"source not present": {func(k *kustomizev1.Kustomization) { k.Spec.SourceRef.Name = "gone" }, false},
		"suspended":          {func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Settled(kustomization("a", test.change), snapshot()); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestGates(t *testing.T) {
	tests := map[string]struct {
		spec kustomizev1.KustomizationSpec
		want bool
	}{
		"neither":          {kustomizev1.KustomizationSpec{}, false},
		"wait":             {kustomizev1.KustomizationSpec{Wait: true}, true},
		"healthChecks":     {kustomizev1.KustomizationSpec{HealthChecks: []meta.NamespacedObjectKindReference{{Kind: "Deployment", Name: "a"}}}, true},
		"expressions only": {kustomizev1.KustomizationSpec{HealthCheckExprs: []kustomize.CustomHealthCheck{{Kind: "A"}}}, false},
	}
	for name, test := range tests {
		if got := Gates(&kustomizev1.Kustomization{Spec: test.spec}); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestClassifySource(t *testing.T) {
	ready := []metav1.Condition{condition("Ready", "True", "Succeeded", "", 1)}
	failed := func(reason string) []metav1.Condition {
		return []metav1.Condition{condition("Ready", "False", reason, "", 1)}
	}
	tests := map[string]struct {
		source *Source
		want   State
	}{
		"fetched":                {&Source{Generation: 1, ObservedGeneration: 1, Revision: newRevision, Conditions: ready}, Ready},
		"ready without artifact": {&Source{Generation: 1, ObservedGeneration: 1, Conditions: ready}, Pending},
		"static":                 {&Source{Generation: 1, Static: true}, Ready},
		"no status yet":          {&Source{Generation: 1}, Unknown},
		"external artifact":      {&Source{Generation: 1, Revision: newRevision}, Ready},
		"suspended":              {&Source{Generation: 1, ObservedGeneration: 1, Revision: newRevision, Conditions: ready, Suspended: true}, Suspended},
		"host down":              {&Source{Generation: 1, ObservedGeneration: 1, Conditions: failed("GitOperationFailed")}, MayHeal},
		"no credentials":         {&Source{Generation: 1, ObservedGeneration: 1, Conditions: failed("AuthenticationFailed")}, MayHeal},
		"bad URL":                {&Source{Generation: 1, ObservedGeneration: 1, Conditions: failed("URLInvalid")}, Final},
		"absent":                 {nil, Unknown},
	}
	for name, test := range tests {
		if got := ClassifySource(test.source); got.State != test.want {
			t.Errorf("%s: got %+v, want %s", name, got, test.want)
		}
	}
}

func TestClassifyHelm(t *testing.T) {
	release := func(failures int64, conditions ...metav1.Condition) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{
			ObjectMeta: metav1.ObjectMeta{Generation: 1},
			Status:     helmv2.HelmReleaseStatus{ObservedGeneration: 1, InstallFailures: failures, Conditions: conditions},
		}
	}
	tests := map[string]struct {
		release   *helmv2.HelmRelease
		want      State
		exhausted bool
	}{
		"installed":         {release(0, condition("Ready", "True", "InstallSucceeded", "", 1)), Ready, false},
		"dependency":        {release(0, condition("Ready", "False", "DependencyNotReady", "", 1)), Pending, false},
		"chart not fetched": {release(0, condition("Ready", "False", "SourceNotReady", "", 1)), Pending, false},
		"install failed":    {release(1, condition("Ready", "False", "InstallFailed", "", 1)), MayHeal, false},
		"retries exhausted": {release(3, condition("Ready", "False", "InstallFailed", "", 1), condition("Stalled", "True", "RetriesExceeded", "Failed to install after 3 attempt(s)", 1)), Final, true},
		"access denied":     {release(0, condition("Ready", "False", "AccessDenied", "", 1), condition("Stalled", "True", "AccessDenied", "", 1)), Final, false},
	}
	for name, test := range tests {
		if got := ClassifyHelm(test.release); got.State != test.want {
			t.Errorf("%s: got %+v, want %s", name, got, test.want)
		}
		if got := RetriesExhausted(test.release); got != test.exhausted {
			t.Errorf("%s: retries exhausted: got %v, want %v", name, got, test.exhausted)
		}
	}
}

func TestNextRetry(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	failing := func(reason, message string, retry time.Duration) *kustomizev1.Kustomization {
		return kustomization("a", func(k *kustomizev1.Kustomization) {
			k.Spec.Interval.Duration = time.Hour
			if retry > 0 {
				k.Spec.RetryInterval = &metav1.Duration{Duration: retry}
			}
			c := condition("Ready", "False", reason, message, 2)
			c.LastTransitionTime = at
			k.Status.Conditions = []metav1.Condition{c}
		})
	}
	tests := map[string]struct {
		k    *kustomizev1.Kustomization
		want Retry
	}{
		"failed, interval":       {failing("ReconciliationFailed", "", 0), Retry{At: at.Add(time.Hour), Every: time.Hour}},
		"failed, retryInterval":  {failing("HealthCheckFailed", "", time.Minute), Retry{At: at.Add(time.Minute), Every: time.Minute}},
		"build failed":           {failing("BuildFailed", "", time.Minute), Retry{At: at.Add(time.Minute), Every: time.Minute}},
		"dependency":             {failing("DependencyNotReady", "", time.Minute), Retry{Every: 30 * time.Second}},
		"no artifact":            {failing("ArtifactFailed", "Source artifact not found, retrying in 30s", time.Minute), Retry{Every: 30 * time.Second}},
		"source absent":          {failing("ArtifactFailed", `gitrepositories.source.toolkit.fluxcd.io "a" not found`, time.Minute), Retry{Every: time.Minute}},
		"stalled comes never":    {failing("InvalidCELExpression", "", time.Minute), Retry{}},
		"ready at its interval":  {kustomization("a", func(k *kustomizev1.Kustomization) { k.Spec.Interval.Duration = time.Hour }), Retry{Every: time.Hour}},
		"suspended comes never ": {kustomization("a", func(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }), Retry{}},
	}
	for name, test := range tests {
		if got := NextRetry(test.k); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
