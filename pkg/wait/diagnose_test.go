package wait

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// finding is the part of a diagnosis that the tests of the walk compare.
type finding struct {
	Cause   Cause
	Tier    string
	Object  string
	Summary string
	Blocks  []tiers.Key
	Command string
}

func findings(diagnoses []Diagnosis) []finding {
	var list []finding
	for _, d := range diagnoses {
		list = append(list, finding{d.Cause, d.Tier.Name, d.Object, d.Summary, d.Blocks, d.Command})
	}
	return list
}

const missingProfile = `StorageProfile/fast dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`

func TestDiagnose(t *testing.T) {
	tests := map[string]struct {
		build    func(*cluster)
		evidence Evidence
		want     []finding
	}{
		"one missing kind holds up everything after it": {
			build: func(c *cluster) {
				c.tier("platform", "", readyAt(current))
				c.tier("config", "platform", failed(meta.ReconciliationFailedReason, missingProfile))
				c.tier("wave-0", "config", waitingFor("config"))
				c.tier("wave-1", "wave-0", waitingFor("wave-0"))
				c.tier("vms", "config wave-1", waitingFor("config"))
			},
			evidence: Evidence{Kinds: map[schema.GroupVersionKind]KindFact{
				{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}: {GroupServed: true},
			}},
			want: []finding{{
				KindMissing, "config", "StorageProfile/fast", "no CRD for kind StorageProfile: the group cdi.kubevirt.io is served without it",
				keys("wave-0", "wave-1", "vms"), "standup crds --path clusters/prod",
			}},
		},
		"version not served": {
			build: func(c *cluster) {
				c.tier("config", "", failed(meta.ReconciliationFailedReason, missingProfile))
			},
			evidence: Evidence{Kinds: map[schema.GroupVersionKind]KindFact{
				{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}: {GroupServed: true, Versions: []string{"v1", "v1alpha1"}},
			}},
			want: []finding{{
				VersionNotServed, "config", "StorageProfile/fast", "kind StorageProfile is served as cdi.kubevirt.io/v1, cdi.kubevirt.io/v1alpha1, not as cdi.kubevirt.io/v1beta1",
				nil, "kubectl api-resources --api-group=cdi.kubevirt.io",
			}},
		},
		"served by now": {
			build: func(c *cluster) {
				c.tier("config", "", failed(meta.ReconciliationFailedReason, missingProfile))
			},
			evidence: Evidence{Kinds: map[schema.GroupVersionKind]KindFact{
				{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}: {GroupServed: true, Served: true},
			}},
			want: []finding{{
				DiscoveryStale, "config", "StorageProfile/fast", "kind StorageProfile of cdi.kubevirt.io/v1beta1 is served by now; Flux has not looked again",
				nil, "flux -n flux-system reconcile kustomization config",
			}},
		},
		"two causes for one tier": {
			build: func(c *cluster) {
				c.tier("a", "", failed(meta.BuildFailedReason, "kustomize build failed: a is broken"))
				c.tier("b", "", failed(meta.BuildFailedReason, "kustomize build failed: b is broken"))
				c.tier("both", "a b", waitingFor("a"))
				c.tier("only-b", "b", waitingFor("b"))
			},
			want: []finding{
				{BuildFailed, "b", "", "kustomize cannot build b: b is broken", keys("both", "only-b"), "kubectl kustomize b"},
				{BuildFailed, "a", "", "kustomize cannot build a: a is broken", keys("both"), "kubectl kustomize a"},
			},
		},
		"a dependency that was removed from git is one cause for all that name it": {
			build: func(c *cluster) {
				c.tier("x", "restore", failed(meta.DependencyNotReadyReason, "dependency 'flux-system/restore' not found: kustomizations.kustomize.toolkit.fluxcd.io \"restore\" not found"))
				c.tier("y", "restore", waitingFor("restore"))
				c.tier("z", "y", waitingFor("y"))
			},
			want: []finding{{
				DependencyMissing, "x", "Kustomization/flux-system/restore", "Kustomization flux-system/restore, named by dependsOn, does not exist",
				keys("y", "z"), "kubectl get kustomizations.kustomize.toolkit.fluxcd.io -A",
			}},
		},
		"a dependency outside the graph": {
			build: func(c *cluster) {
				c.tier("outside", "", failed(meta.BuildFailedReason, "kustomize build failed: broken"))
				c.graph.Tiers = nil
				c.tier("inside", "outside", waitingFor("outside"))
			},
			want: []finding{{BuildFailed, "outside", "", "kustomize cannot build outside: broken", keys("inside"), "kubectl kustomize outside"}},
		},
		"suspended at an old revision": {
			build: func(c *cluster) {
				c.tier("base", "", readyAt(old), suspendedTier)
				c.tier("apps", "base", failed(meta.DependencyNotReadyReason, "dependency 'flux-system/base' revision is not up to date"))
			},
			want: []finding{{
				DependencySuspended, "base", "Kustomization/flux-system/base", "base is suspended at " + old + ", the source is at " + current,
				keys("apps"), "standup resume --only base",
			}},
		},
		"a suspended dependency that counts as ready": {
			build: func(c *cluster) {
				c.tier("base", "", readyAt(current), suspendedTier)
				c.tier("apps", "base", readyAt(current))
			},
			want: []finding{{TierSuspended, "base", "Kustomization/flux-system/base", "base is suspended at " + current, nil, "standup resume --only base"}},
		},
		"a suspended child under a waiting parent": {
			build: func(c *cluster) {
				c.tier("parent", "", gate, holding("flux-system_child_kustomize.toolkit.fluxcd.io_Kustomization"),
					failed(meta.HealthCheckFailedReason, "health check failed after 30.0s: timeout waiting for: [Kustomization/flux-system/child status: 'InProgress']"))
				c.tier("child", "", suspendedTier)
				c.tier("after", "parent", waitingFor("parent"))
				c.child("parent", "child")
			},
			want: []finding{{
				ChildSuspended, "child", "Kustomization/flux-system/child", "child is suspended, never applied; parent waits for it to be healthy",
				keys("parent", "after"), "standup resume --only child",
			}},
		},
		"a suspended release under a waiting parent": {
			build: func(c *cluster) {
				c.tier("apps", "", gate, holding("apps_web_helm.toolkit.fluxcd.io_HelmRelease"),
					failed(meta.HealthCheckFailedReason, "health check failed after 30.0s: timeout waiting for: [HelmRelease/apps/web status: 'InProgress']"))
				c.release("web", func(h *helmv2.HelmRelease) { h.Spec.Suspend = true })
				c.tier("after", "apps", waitingFor("apps"))
			},
			want: []finding{{
				HelmReleaseSuspended, "apps", "HelmRelease/apps/web", "HelmRelease/apps/web is suspended, and the tier waits for it to be healthy",
				keys("after"), "flux -n apps resume helmrelease web",
			}},
		},
		"a suspended release known from evidence": {
			build: func(c *cluster) {
				c.tier("apps", "", gate, holding("apps_web_helm.toolkit.fluxcd.io_HelmRelease"), running("Running health checks for revision x with a timeout of 5m0s", 40*time.Second))
			},
			evidence: Evidence{Objects: map[string]ObjectFact{"HelmRelease/apps/web": {Status: "InProgress", Suspended: true}}},
			want: []finding{{
				HelmReleaseSuspended, "apps", "HelmRelease/apps/web", "HelmRelease/apps/web is suspended, and the tier waits for it to be healthy",
				nil, "flux -n apps resume helmrelease web",
			}},
		},
		"a failed release": {
			build: func(c *cluster) {
				c.tier("apps", "", gate, failed(meta.HealthCheckFailedReason, "health check failed after 2.1s: failed early due to stalled resources: [HelmRelease/apps/web status: 'Failed']"))
				c.release("web", func(h *helmv2.HelmRelease) {
					h.Status.Conditions = []metav1.Condition{
						condition(meta.ReadyCondition, metav1.ConditionFalse, "InstallFailed", "Helm install failed: no chart version found", time.Minute),
						condition(meta.StalledCondition, metav1.ConditionTrue, "RetriesExceeded", "Failed to install after 3 attempt(s)", time.Minute),
					}
				})
			},
			want: []finding{{
				HelmReleaseFailed, "apps", "HelmRelease/apps/web", "HelmRelease/apps/web failed: Failed to install after 3 attempt(s)",
				nil, "flux -n apps reconcile helmrelease web --reset",
			}},
		},
		"a health check": {
			build: func(c *cluster) {
				c.tier("apps", "", gate, failed(meta.HealthCheckFailedReason, "health check failed after 1m0.2s: timeout waiting for: [Deployment/shop/web status: 'InProgress', Deployment/shop/api status: 'InProgress']"))
				c.tier("after", "apps", waitingFor("apps"))
			},
			evidence: Evidence{Objects: map[string]ObjectFact{"Deployment/shop/web": {Status: "InProgress", Message: "Available: 0/1"}}},
			want: []finding{{
				HealthCheckFailed, "apps", "Deployment/shop/web", "Deployment/shop/web and 1 more are not healthy",
				keys("after"), "kubectl -n shop describe deployment web",
			}},
		},
		"a tier that waits for its own source": {
			build: func(c *cluster) {
				c.tier("root", "", gate, failed(meta.HealthCheckFailedReason, "health check failed after 30.1s: timeout waiting for: [GitRepository/flux-system/flux-system status: 'InProgress']"))
			},
			want: []finding{{
				SourceInTier, "root", "GitRepository/flux-system/flux-system",
				"the tier waits for GitRepository/flux-system/flux-system, the source it is read from: while that fails, no commit can repair it",
				nil, "kubectl -n flux-system edit gitrepository flux-system",
			}},
		},
		"a source that cannot be fetched": {
			build: func(c *cluster) {
				c.source("flux-system", "", func(s *flux.Source) {
					s.Conditions = []metav1.Condition{condition(meta.ReadyCondition, metav1.ConditionFalse, "GitOperationFailed", "failed to checkout and determine revision: unable to clone 'https://jo:pw@git.example/fleet': authentication required", time.Minute)}
				})
				c.tier("a", "", failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"))
				c.tier("b", "", failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"))
				c.tier("c", "b", failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"))
			},
			want: []finding{{
				SourceNotFetched, "a", "GitRepository/flux-system/flux-system",
				"source GitRepository/flux-system/flux-system cannot be fetched: failed to checkout and determine revision: unable to clone 'https://*****@git.example/fleet': authentication required",
				keys("b", "c"), "flux -n flux-system reconcile source git flux-system",
			}},
		},
		"a suspended source": {
			build: func(c *cluster) {
				c.source("flux-system", "", func(s *flux.Source) { s.Suspended = true })
				c.tier("a", "", failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"))
			},
			want: []finding{{
				SourceSuspended, "a", "GitRepository/flux-system/flux-system", "source GitRepository/flux-system/flux-system is suspended and has no artifact",
				nil, "flux -n flux-system resume source git flux-system",
			}},
		},
		"a source that does not exist": {
			build: func(c *cluster) {
				delete(c.snapshot.Sources, flux.SourceRef{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"})
				c.tier("a", "", failed(meta.ArtifactFailedReason, `GitRepository.source.toolkit.fluxcd.io "flux-system" not found`))
			},
			want: []finding{{
				SourceMissing, "a", "GitRepository/flux-system/flux-system", "source GitRepository/flux-system/flux-system does not exist",
				nil, "kubectl -n flux-system get gitrepositories",
			}},
		},
		"not applied although the parent is ready": {
			build: func(c *cluster) {
				c.tier("root", "", readyAt(current))
				c.tier("leaf", "")
				c.child("root", "leaf")
				c.absent("leaf")
			},
			want: []finding{{
				NotApplied, "leaf", "Kustomization/flux-system/leaf", "leaf is in git and not on the cluster, although its parent root is ready",
				nil, "flux -n flux-system reconcile kustomization root",
			}},
		},
		"not applied because the parent fails": {
			build: func(c *cluster) {
				c.tier("root", "", failed(meta.BuildFailedReason, "kustomize build failed: broken"))
				c.tier("leaf", "")
				c.tier("after", "leaf")
				c.child("root", "leaf")
				c.child("root", "after")
				c.absent("leaf", "after")
			},
			want: []finding{{BuildFailed, "root", "", "kustomize cannot build root: broken", keys("leaf", "after"), "kubectl kustomize root"}},
		},
		"nothing in the way any more": {
			build: func(c *cluster) {
				c.tier("a", "", readyAt(current))
				c.tier("b", "a", waitingFor("a"))
			},
			want: []finding{{
				AwaitingRetry, "b", "", "nothing is in its way any more; Flux looks again within 30s", nil, "flux -n flux-system reconcile kustomization b",
			}},
		},
		"a pass that runs": {
			build: func(c *cluster) {
				c.tier("a", "", running("Building manifests for revision x with a timeout of 5m0s", 5*time.Second))
				c.tier("b", "a", waitingFor("a"))
			},
			want: []finding{{InProgress, "a", "", "Building manifests for revision x with a timeout of 5m0s", keys("b"), ""}},
		},
		"a pass that tries again what failed before": {
			build: func(c *cluster) {
				c.tier("a", "", running("Building manifests for revision x with a timeout of 5m0s", 5*time.Second))
				c.tier("b", "a", waitingFor("a"))
			},
			evidence: Evidence{LastFailures: map[tiers.Key]LastFailure{key("a"): {Reason: meta.BuildFailedReason, Message: "kustomize build failed: x", Revision: current, At: now.Add(-time.Minute)}}},
			want:     []finding{{BuildFailed, "a", "", "kustomize cannot build a: x", keys("b"), "kubectl kustomize a"}},
		},
		"a pass at a new revision is not what failed before": {
			build: func(c *cluster) {
				c.tier("a", "", running("Building manifests for revision x with a timeout of 5m0s", 5*time.Second))
			},
			evidence: Evidence{LastFailures: map[tiers.Key]LastFailure{key("a"): {Reason: meta.BuildFailedReason, Message: "kustomize build failed: x", Revision: old}}},
			want:     []finding{{InProgress, "a", "", "Building manifests for revision x with a timeout of 5m0s", nil, ""}},
		},
		"a readyExpr that is false": {
			build: func(c *cluster) {
				c.tier("a", "", readyAt(current))
				c.tier("b", "a", func(k *kustomizev1.Kustomization) { k.Spec.DependsOn[0].ReadyExpr = "dep.metadata.name == 'c'" }, waitingFor("a"))
			},
			want: []finding{{ExpressionFalse, "b", "Kustomization/flux-system/a", "the readyExpr for a is not true", nil, ""}},
		},
		"a webhook that is down holds up several tiers": {
			build: func(c *cluster) {
				message := `Pod/shop/web dry-run failed (InternalError): Internal error occurred: failed calling webhook "check.policy.example": failed to call webhook: Post "https://policy.policy.svc:443/v?timeout=10s": no endpoints available for service "policy"`
				c.tier("a", "", failed(meta.ReconciliationFailedReason, message))
				c.tier("b", "", failed(meta.ReconciliationFailedReason, message))
			},
			evidence: Evidence{Services: map[tiers.Key]ServiceFact{{Namespace: "policy", Name: "policy"}: {Exists: true}}},
			want: []finding{{
				WebhookDown, "a", "Service/policy/policy",
				`webhook check.policy.example does not answer: no endpoints available for service "policy"; the Service policy/policy has no ready endpoints`,
				keys("b"), "kubectl -n policy get pods,endpointslices",
			}},
		},
		"a controller that is scaled to nothing": {
			build: func(c *cluster) {
				c.tier("a", "")
				c.tier("b", "a")
			},
			evidence: Evidence{Controllers: map[string]ControllerFact{"kustomize-controller": {State: ControllerStopped, Message: "its Deployment is scaled to 0"}}},
			want: []finding{{
				ControllerDown, "a", "Deployment/flux-system/kustomize-controller", "kustomize-controller is not running: its Deployment is scaled to 0",
				keys("b"), "kubectl -n flux-system get deployment,pods,lease",
			}},
		},
		"a helm-controller that is stopped": {
			build: func(c *cluster) {
				c.tier("apps", "", gate, failed(meta.HealthCheckFailedReason, "health check failed after 30.0s: timeout waiting for: [HelmRelease/apps/web status: 'InProgress', HelmRelease/apps/api status: 'InProgress']"))
			},
			evidence: Evidence{Controllers: map[string]ControllerFact{"helm-controller": {State: ControllerStopped, Message: "its Deployment is scaled to 0"}}},
			want: []finding{{
				ControllerDown, "apps", "Deployment/flux-system/helm-controller", "helm-controller is not running: its Deployment is scaled to 0",
				nil, "kubectl -n flux-system get deployment,pods,lease",
			}},
		},
		"a failure that nobody would notice the cure of": {
			build: func(c *cluster) {
				c.tier("a", "", failed(meta.BuildFailedReason, "kustomize build failed: x"))
			},
			evidence: Evidence{Controllers: map[string]ControllerFact{"kustomize-controller": {State: ControllerStopped, Message: "its Deployment is scaled to 0"}}},
			want: []finding{
				{BuildFailed, "a", "", "kustomize cannot build a: x", nil, "kubectl kustomize a"},
				{ControllerDown, "a", "Deployment/flux-system/kustomize-controller", "kustomize-controller is not running: its Deployment is scaled to 0", nil, "kubectl -n flux-system get deployment,pods,lease"},
			},
		},
		"a request that nobody answers": {
			build: func(c *cluster) {
				c.tier("a", "", readyAt(old), requested(10*time.Minute))
			},
			want: []finding{{
				ControllerDown, "a", "Deployment/flux-system/kustomize-controller", "kustomize-controller is not running: asked to reconcile 10 min ago, it has not answered",
				nil, "kubectl -n flux-system get deployment,pods,lease",
			}},
		},
		"a pass that a controller died in": {
			build: func(c *cluster) {
				c.tier("a", "", running("Building manifests for revision x with a timeout of 9m30s", time.Hour))
			},
			want: []finding{{
				ControllerDown, "a", "Deployment/flux-system/kustomize-controller", "kustomize-controller is not running: a pass began 1h00m ago and has not ended",
				nil, "kubectl -n flux-system get deployment,pods,lease",
			}},
		},
		"a source-controller that is stopped": {
			build: func(c *cluster) {
				c.source("flux-system", "")
				c.tier("a", "", failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"))
			},
			evidence: Evidence{Controllers: map[string]ControllerFact{"source-controller": {State: ControllerStopped, Message: "its Deployment has no available replica"}}},
			want: []finding{{
				ControllerDown, "a", "Deployment/flux-system/source-controller", "source-controller is not running: its Deployment has no available replica",
				nil, "kubectl -n flux-system get deployment,pods,lease",
			}},
		},
		"a message that standup does not understand": {
			build: func(c *cluster) {
				c.tier("a", "", failed(meta.ReconciliationFailedReason, "the moon is in the wrong house"))
			},
			want: []finding{{
				NotUnderstood, "a", "", "Flux reports ReconciliationFailed", nil, "kubectl -n flux-system describe kustomization.kustomize.toolkit.fluxcd.io a",
			}},
		},
		"everything is ready": {build: func(c *cluster) { c.tier("a", "", readyAt(current)) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			test.build(c)
			compare(t, test.want, findings(c.diagnose(test.evidence)))
		})
	}
}

func TestDiagnoseCycles(t *testing.T) {
	tests := map[string]struct {
		build func(*cluster)
		path  []tiers.Key
		want  []finding
	}{
		"two tiers, one that depends on them, and a bystander of the same source": {
			build: func(c *cluster) {
				c.tier("a", "b", readyAt(old))
				c.tier("b", "a", readyAt(old))
				c.tier("after", "b", waitingFor("b"))
				c.tier("bystander", "", readyAt(old))
			},
			path: keys("a", "b", "a"),
			want: []finding{{
				Cycle, "a", "Kustomization/flux-system/a", "a depends on b, b depends on a", keys("b", "after", "bystander"), "",
			}},
		},
		"a tier that depends on itself": {
			build: func(c *cluster) { c.tier("a", "a", waitingFor("a")) },
			path:  keys("a", "a"),
			want:  []finding{{Cycle, "a", "Kustomization/flux-system/a", "a depends on a", nil, ""}},
		},
		"a child that depends on its waiting parent": {
			build: func(c *cluster) {
				c.tier("parent", "", gate, holding("flux-system_child_kustomize.toolkit.fluxcd.io_Kustomization"),
					running("Running health checks for revision x with a timeout of 5m0s", time.Minute))
				c.tier("child", "parent", waitingFor("parent"))
				c.child("parent", "child")
			},
			path: keys("parent", "child", "parent"),
			want: []finding{{
				Cycle, "parent", "Kustomization/flux-system/parent",
				"parent waits for its child child to be healthy, child depends on parent", keys("child"), "",
			}},
		},
		"a circle inside a larger knot, and a failure beside it": {
			build: func(c *cluster) {
				c.tier("a", "b broken", waitingFor("b"))
				c.tier("b", "c", waitingFor("c"))
				c.tier("c", "a", waitingFor("a"))
				c.tier("broken", "", failed(meta.BuildFailedReason, "kustomize build failed: x"))
			},
			path: keys("a", "b", "c", "a"),
			want: []finding{
				{Cycle, "a", "Kustomization/flux-system/a", "a depends on b, b depends on c, c depends on a", keys("b", "c"), ""},
				{BuildFailed, "broken", "", "kustomize cannot build broken: x", keys("a"), "kubectl kustomize broken"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			test.build(c)
			got := c.diagnose(Evidence{})
			compare(t, test.want, findings(got))
			compare(t, test.path, got[0].Path)
		})
	}
}
