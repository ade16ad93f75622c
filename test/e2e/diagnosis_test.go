package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
	"github.com/standup-sh/standup/test/cluster"
)

// TestE2EDiagnosis puts every trouble that git alone can make beside each other on one cluster and
// checks the line that each gets. The numbers are those of the incidents they are made after.
func TestE2EDiagnosis(t *testing.T) {
	e := newDiagnosisEnv(t, cluster.Options{})
	e.watch()
	e.apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: flux-system}
`)
	e.push("fleet", together(
		samePass(), unservedVersion(), operatorWithoutWait(), webhookWithoutEndpoints(), dangling(),
		suspendedRelease(), buildTroubles(), sourceTroubles(), applyTroubles(), healthTroubles(),
	))
	if err := e.Sync(t.Context(), cluster.Sync{Repo: "fleet", Path: "clusters/test"}); err != nil {
		t.Fatal(err)
	}
	e.expect(8*time.Minute, // on a busy machine; one minute on an idle one
		// 3: a release and a CR of its chart in one pass.
		"kind-missing guard: no CRD for kind GuardRule of guard.example.test/v1 | after-guard | standup crds --path clusters/test",
		// 17: the kind is there, the version is not.
		"version-not-served gauge: kind Gauge is served as meters.example.test/v1, not as meters.example.test/v2 |  | kubectl api-resources --api-group=meters.example.test",
		// 18, 19: the tier before is ready because it does not wait.
		"kind-missing vault-store: no CRD for kind Store of vault.example.test/v1 |  | standup crds --path clusters/test",
		// 21: a fail-closed webhook with nobody behind it.
		"webhook-down hooked: webhook check.hook.example.test does not answer: …; the Service hooked/hook has no ready endpoints |  | kubectl -n hooked get pods,endpointslices",
		// 25: what three depend on was removed.
		"dependency-missing needs-1: Kustomization flux-system/restore, named by dependsOn, does not exist | needs-2 needs-3 | …",
		// 30: a suspended release under a tier that waits.
		"helmrelease-suspended release: HelmRelease/default/paused is suspended, and the tier waits for it to be healthy | after-release | flux -n default resume helmrelease paused",

		"build-failed broken: kustomize cannot build broken: … |  | kubectl kustomize broken",
		"substitute-missing no-vars: ConfigMap flux-system/no-such-vars, named by postBuild.substituteFrom, does not exist |  | kubectl -n flux-system get configmap no-such-vars",
		"variable-missing no-value: variable ${DOMAIN} in token has no value and no default |  | ",
		"decryption-key no-key: the decryption key Secret/flux-system/no-such-key does not exist |  | kubectl -n flux-system get secret no-such-key",
		"path-missing no-path: the revision has no folder no-such-folder |  | ",

		"source-not-fetched bad-source: source GitRepository/flux-system/broken cannot be fetched: … |  | flux -n flux-system reconcile source git broken",
		"source-suspended paused-source: source GitRepository/flux-system/paused is suspended and has no artifact |  | flux -n flux-system resume source git paused",
		"source-missing no-source: source GitRepository/flux-system/nowhere does not exist |  | …",

		"namespace-missing no-namespace: namespace nowhere does not exist |  | kubectl create namespace nowhere",
		"forbidden no-rights: ServiceAccount/flux-system/deployer may not patch configmaps in namespace default |  | kubectl auth can-i patch configmaps --as=system:serviceaccount:flux-system:deployer -n default",
		"invalid no-schema: Gauge/default/bad does not fit the schema that the cluster serves: .spec.colour: field not declared in schema |  | ",

		"health-check-failed unschedulable: Deployment/default/homeless is not healthy |  | kubectl -n default describe deployment homeless",
		"child-suspended sleeper: sleeper is suspended, never applied, and git says so too; family waits for it to be healthy | family | standup resume --only sleeper --include-suspended-in-git",
	)
	e.expectPods()
	e.crossNamespace()
}

// expectPods checks that the pods behind a failed health check are named with why they do not run.
func (e *diagnosisEnv) expectPods() {
	e.t.Helper()
	var last []wait.WaitingObject
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Second) {
		for _, d := range e.diagnose() {
			if d.Tier.Name != "unschedulable" { // failed, or in its next try
				continue
			}
			last = d.Waiting
			if len(last) == 1 && len(last[0].Pods) == 1 && unschedulablePod(last[0].Pods[0]) {
				return
			}
		}
	}
	e.t.Errorf("got %+v, want one object with one pod that is not scheduled", last)
}

func unschedulablePod(pod wait.PodFact) bool {
	return pod.Phase == "Pending" && len(pod.Waiting) == 1 && strings.HasPrefix(pod.Waiting[0], "not scheduled: 0/1 nodes are available")
}

// crossNamespace (22) turns cross-namespace references off, as tenants' clusters do.
func (e *diagnosisEnv) crossNamespace() {
	e.t.Helper()
	e.SetFlags(cluster.KustomizeController, "--no-cross-namespace-refs=true")
	if err := e.Restart(e.t.Context(), cluster.KustomizeController); err != nil {
		e.t.Fatal(err)
	}
	e.apply(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: tenant, namespace: default}
spec: {interval: 1h, path: ./x, prune: true, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}
`)
	e.expect(4*time.Minute, "cross-namespace tenant: GitRepository/flux-system/flux-system is in another namespace, and the controllers run with --no-cross-namespace-refs |  | …")
}

func samePass() scenario {
	return together(
		troubledTier("guard", "", `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: guard, namespace: default}
spec: {interval: 1h, chart: {spec: {chart: guard, sourceRef: {kind: HelmRepository, name: guard}}}}
---
apiVersion: guard.example.test/v1
kind: GuardRule
metadata: {name: strict}
`),
		troubledTier("after-guard", "dependsOn: [{name: guard}]", configMap("after-guard")),
	)
}

func unservedVersion() scenario {
	return together(
		troubledTier("meters", "wait: true", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.meters.example.test}
spec:
  group: meters.example.test
  scope: Namespaced
  names: {kind: Gauge, plural: gauges, singular: gauge, listKind: GaugeList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`),
		troubledTier("gauge", "dependsOn: [{name: meters}]", "apiVersion: meters.example.test/v2\nkind: Gauge\nmetadata: {name: tall, namespace: default}\n"),
		troubledTier("no-schema", "dependsOn: [{name: meters}]", "apiVersion: meters.example.test/v1\nkind: Gauge\nmetadata: {name: bad, namespace: default}\nspec: {colour: red}\n"),
	)
}

func operatorWithoutWait() scenario {
	return together(
		troubledTier("vault", "", `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: vault, namespace: default}
spec: {interval: 1h, chart: {spec: {chart: vault, sourceRef: {kind: HelmRepository, name: vault}}}}
`),
		troubledTier("vault-store", "dependsOn: [{name: vault}]", "apiVersion: vault.example.test/v1\nkind: Store\nmetadata: {name: main, namespace: default}\n"),
	)
}

func webhookWithoutEndpoints() scenario {
	return together(
		troubledTier("hook", "", `
apiVersion: v1
kind: Namespace
metadata: {name: hooked}
---
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: hooked}
spec: {selector: {app: hook}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: check.hook.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {service: {namespace: hooked, name: hook, path: /check}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: hooked}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
`),
		troubledTier("hooked", "dependsOn: [{name: hook}]", configMapIn("held", "hooked")),
	)
}

func dangling() scenario {
	return together(
		troubledTier("needs-1", "dependsOn: [{name: restore}]", configMap("needs-1")),
		troubledTier("needs-2", "dependsOn: [{name: restore}]", configMap("needs-2")),
		troubledTier("needs-3", "dependsOn: [{name: needs-1}]", configMap("needs-3")),
	)
}

func suspendedRelease() scenario {
	return together(
		troubledTier("release", "wait: true", `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: paused, namespace: default}
spec: {interval: 1h, suspend: true, chart: {spec: {chart: paused, sourceRef: {kind: HelmRepository, name: paused}}}}
`),
		troubledTier("after-release", "dependsOn: [{name: release}]", configMap("after-release")),
	)
}

func buildTroubles() scenario {
	noPath := troubledTier("no-path", "", "")
	delete(noPath, "no-path/objects.yaml")
	noPath["clusters/test/no-path.yaml"] = strings.Replace(noPath["clusters/test/no-path.yaml"], "./no-path", "./no-such-folder", 1)
	broken := troubledTier("broken", "", configMap("broken"))
	broken["broken/kustomization.yaml"] = "resources: [objects.yaml, no-such-file.yaml]\n"
	return together(broken, noPath,
		troubledTier("no-vars", "postBuild: {substituteFrom: [{kind: ConfigMap, name: no-such-vars}]}", configMap("no-vars")),
		troubledTier("no-value", "postBuild: {substitute: {OTHER: x}}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: token, namespace: default}\ndata: {host: \"${DOMAIN}\"}\n"),
		troubledTier("no-key", "decryption: {provider: sops, secretRef: {name: no-such-key}}", configMap("no-key")),
	)
}

func sourceTroubles() scenario {
	bad := troubledTier("bad-source", "sourceRef: {kind: GitRepository, name: broken}", "")
	bad["clusters/test/sources.yaml"] = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: broken, namespace: flux-system}
spec: {interval: 1h, timeout: 5s, url: "http://127.0.0.1:1/nothing.git", ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: paused, namespace: flux-system}
spec: {interval: 1h, suspend: true, url: "http://127.0.0.1:1/nothing.git", ref: {branch: main}}
`
	delete(bad, "bad-source/objects.yaml")
	return together(bad,
		troubledTier("paused-source", "sourceRef: {kind: GitRepository, name: paused}", configMap("x")),
		troubledTier("no-source", "sourceRef: {kind: GitRepository, name: nowhere}", configMap("x")),
	)
}

func applyTroubles() scenario {
	return together(
		troubledTier("no-namespace", "", configMapIn("lost", "nowhere")),
		troubledTier("no-rights", "serviceAccountName: deployer", configMap("no-rights")),
	)
}

func healthTroubles() scenario {
	return together(
		troubledTier("unschedulable", "wait: true", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: homeless, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: homeless}}
  template:
    metadata: {labels: {app: homeless}}
    spec: {nodeSelector: {no: where}, containers: [{name: app, image: example.test/app}]}
`),
		troubledTier("family", "wait: true", `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: sleeper, namespace: flux-system}
spec: {interval: 1h, suspend: true, path: ./sleeper, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
`),
	)
}

// TestE2EDiagnosisOverTime looks at troubles that need a history: a circle that holds up a bystander
// (23), a restart (28), the wait for a requeue (31), a tier that broke its own source (37), and a
// dependency that was suspended at an old revision.
func TestE2EDiagnosisOverTime(t *testing.T) {
	e := newDiagnosisEnv(t, cluster.Options{Components: cluster.Flux()})
	mark, err := e.Audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.watch()
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"awaiting a requeue", e.requeue},
		{"suspended at an old revision", e.oldRevision},
		{"circle", e.circle},
		{"a tier that breaks its own source", e.ownSource},
		{"a controller that is gone and comes back", e.restart},
		{"one list and one watch a kind", func() { e.requests(mark) }},
	} {
		t.Run(step.name, func(t *testing.T) {
			e.t = t
			step.run()
		})
	}
}

// requeue (31): a dependent of a tier that has just become ready waits for Flux to look again.
func (e *diagnosisEnv) requeue() {
	e.push("chain", together(
		troubledTier("chain-1", "", configMap("chain-1")),
		troubledTier("chain-2", "dependsOn: [{name: chain-1}]", configMap("chain-2")),
	))
	if err := e.Sync(e.t.Context(), cluster.Sync{Repo: "chain", Path: "clusters/test"}); err != nil {
		e.t.Fatal(err)
	}
	e.expect(time.Minute, "awaiting-retry chain-2: nothing is in its way any more; Flux looks again within 30s |  | flux -n flux-system reconcile kustomization chain-2")
	e.ready("chain-2")
}

func (e *diagnosisEnv) ready(names ...string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Minute)
	defer cancel()
	for _, name := range names {
		if err := e.WaitReady(ctx, "flux-system", name); err != nil {
			e.t.Fatalf("tier %s: %v", name, err)
		}
	}
}

func (e *diagnosisEnv) oldRevision() {
	e.apply("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: chain-1, namespace: flux-system}\nspec: {suspend: true}\n")
	changed := together(
		troubledTier("chain-1", "", configMap("chain-1-again")),
		troubledTier("chain-2", "dependsOn: [{name: chain-1}]", configMap("chain-2-again")),
	)
	e.push("chain", changed)
	e.reconcileSource("flux-system")
	e.expect(2*time.Minute, "dependency-suspended chain-1: chain-1 is suspended at main@sha1:…, the source is at main@sha1:… | chain-2 | standup resume --only chain-1")
	e.apply("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: chain-1, namespace: flux-system}\nspec: {suspend: false}\n")
}

// reconcileSource asks source-controller to fetch now. A merge patch: an apply would take away what
// Sync has applied.
func (e *diagnosisEnv) reconcileSource(name string) {
	e.t.Helper()
	sources, err := e.Resource(cluster.GitRepositoryGVK(), "flux-system")
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := sources.Patch(e.t.Context(), name, flux.PatchType, flux.NudgePatch(flux.Token(time.Now())), metav1.PatchOptions{FieldManager: flux.FieldManager}); err != nil {
		e.t.Fatal(err)
	}
}

// circle (23): a circle that comes with a new revision keeps even a bystander of the same source
// from noticing it.
func (e *diagnosisEnv) circle() {
	const source = "sourceRef: {kind: GitRepository, name: ring}"
	e.push("ring", together(
		troubledTier("ring-a", source, configMap("ring-a")),
		troubledTier("ring-b", source+"\ndependsOn: [{name: ring-a}]", configMap("ring-b")),
		troubledTier("bystander", source, configMap("bystander")),
	))
	if err := e.Sync(e.t.Context(), cluster.Sync{Repo: "ring", Path: "clusters/test", Name: "ring"}); err != nil {
		e.t.Fatal(err)
	}
	e.ready("ring-a", "ring-b", "bystander")
	e.apply("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: ring-a, namespace: flux-system}\nspec: {dependsOn: [{name: ring-b}]}\n")
	e.push("ring", together(
		troubledTier("ring-a", source+"\ndependsOn: [{name: ring-b}]", configMap("ring-a-again")),
		troubledTier("ring-b", source+"\ndependsOn: [{name: ring-a}]", configMap("ring-b-again")),
		troubledTier("bystander", source, configMap("bystander-again")),
	))
	e.reconcileSource("ring")
	e.expect(2*time.Minute, "cycle ring-a: ring-a depends on ring-b, ring-b depends on ring-a | … | ")
	for _, d := range e.diagnose() {
		if d.Cause == wait.Cycle && !slices.ContainsFunc(d.Blocks, func(k tiers.Key) bool { return k.Name == "bystander" }) {
			e.t.Errorf("the bystander is not among %v", d.Blocks)
		}
	}
}

// ownSource (37): a tier waits for the source it is read from, and has broken it.
func (e *diagnosisEnv) ownSource() {
	e.push("self", map[string]string{"clusters/test/settings.yaml": configMap("self")})
	if err := e.Sync(e.t.Context(), cluster.Sync{Repo: "self", Path: "clusters/test", Name: "self", Wait: true, Interval: "35s"}); err != nil {
		e.t.Fatal(err)
	}
	e.ready("self")
	e.push("self", map[string]string{"clusters/test/source.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: self, namespace: flux-system}
spec: {interval: 1m, timeout: 5s, url: "http://127.0.0.1:1/nothing.git", ref: {branch: main}}
`})
	e.reconcileSource("self")
	e.expect(3*time.Minute, "source-in-tier self: the tier waits for GitRepository/flux-system/self, the source it is read from: while that fails, no commit can repair it |  | kubectl -n flux-system edit gitrepository self")
}

// restart (28): while the controller is away that is the cause of whatever waits; afterwards what
// was ready is ready without a new pass in order.
func (e *diagnosisEnv) restart() {
	if err := e.Kill(cluster.KustomizeController); err != nil {
		e.t.Fatal(err)
	}
	e.apply("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: late, namespace: flux-system}\n" +
		"spec: {interval: 1h, path: ./chain-1, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}\n")
	e.expect(3*time.Minute, "controller-not-running …: kustomize-controller is not running: nobody has renewed its lease for … | …late… | kubectl -n flux-system get deployment,pods,lease")
	if err := e.StartComponent(e.t.Context(), cluster.KustomizeController); err != nil {
		e.t.Fatal(err)
	}
	snapshot, _ := e.last()
	graph := liveGraph(snapshot)
	err := wait.Run(e.t.Context(), e.clients, wait.Options{Graph: graph, Timeout: 3 * time.Minute, Tiers: []tiers.Key{fluxKey("chain-1"), fluxKey("chain-2"), fluxKey("late")}}, func(wait.Event) {})
	if err != nil {
		e.t.Error(err)
	}
}

// requests checks the price of the watch that ran through all of this: one list and one watch a
// kind. What diagnoses and wait.Run asked for themselves is left out by their verbs and resources.
func (e *diagnosisEnv) requests(mark cluster.Mark) {
	entries, err := e.Audit.Since(e.t.Context(), mark)
	if err != nil {
		e.t.Fatal(err)
	}
	count := map[string]int{}
	for _, entry := range cluster.Select(entries, cluster.ByUserAgent(waitAgent)) {
		switch entry.Resource {
		case "kustomizations", "gitrepositories", "helmreleases":
			// A kind whose CRD is only just served answers 429 while its storage is made.
			if (entry.Verb == "list" || entry.Verb == "watch") && entry.Code < 300 {
				count[entry.Verb+" "+entry.Resource]++
			}
		}
		if entry.Write() {
			e.t.Errorf("a write: %s", entry)
		}
	}
	want := map[string]int{ // one watch of Watch's, and one of the one run
		"list kustomizations": 2, "watch kustomizations": 2, "list gitrepositories": 2, "watch gitrepositories": 2,
		"list helmreleases": 1, "watch helmreleases": 1,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		e.t.Errorf("requests (-want +got):\n%s", diff)
	}
}
