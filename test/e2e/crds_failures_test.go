package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/cluster"
)

// Every case below has an operator of its own in the catalogue, which nothing stands in for: a
// Trigger of the group <case>.fail.example is said to bring Made of the same group.
func failGroup(name string) string { return name + ".fail.example" }

func failCases() []string {
	return []string{"absent", "scaled", "failing", "webhook", "forbidden", "conflict", "outdated", "sealed", "orphan", "revision", "leaky", "version"}
}

func failCatalogue(t *testing.T) *crds.Catalogue {
	t.Helper()
	var b strings.Builder
	b.WriteString("version: 1\noperators:\n")
	for _, name := range failCases() {
		existing := "unknown"
		if name == "orphan" {
			existing = "refuses"
		}
		fmt.Fprintf(&b, `- name: operator of %[1]s
  trigger: {group: %[2]s, kind: Trigger}
  operator: {workloads: [%[1]s-operator]}
  existing: %[3]s
  evidence: {link: "https://fail.example/", grade: reported}
  creates:
  - group: %[2]s
    kinds: [{kind: Made, plural: mades, scope: Cluster}, {kind: Other, plural: others, scope: Cluster}]
`, name, failGroup(name), existing)
	}
	catalogue, err := crds.LoadCatalogue(crds.Source{Name: "fail.yaml", Data: []byte(b.String())})
	if err != nil {
		t.Fatal(err)
	}
	return catalogue
}

const canary = "canary-4711-never-to-be-seen"

func failRepository() map[string]string {
	f := map[string]string{"clusters/test/platform.yaml": tierFile("platform", "")}
	var definitions []string
	for _, name := range failCases() {
		group := failGroup(name)
		definitions = append(definitions, crdFile(group, "v1", "Trigger", "triggers", "Cluster"))
		f["clusters/test/"+name+".yaml"] = tierFile(name, "", "platform")
		spec := "{size: 1}"
		if name == "sealed" {
			spec = "{size: 1, passwordSecretRef: {name: password, namespace: default}}"
			f["sealed/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: default}\nstringData: {password: 'ENC[AES256_GCM,data:" + canary + "]'}\nsops: {version: 3.9.0}\n"
		}
		f[name+"/all.yaml"] = "apiVersion: " + group + "/v1\nkind: Trigger\nmetadata: {name: it}\nspec: " + spec + "\n---\napiVersion: " + group + "/v1\nkind: Made\nmetadata: {name: it}\n"
	}
	definitions = append(definitions, crdFile(failGroup("orphan"), "v1", "Other", "others", "Cluster"))
	f["platform/crds.yaml"] = strings.Join(definitions, "---\n")
	f["version/all.yaml"] = "apiVersion: " + failGroup("version") + "/v2\nkind: Trigger\nmetadata: {name: other-version}\n"
	// A tier that is applied whole, because its operator is part of it, with a Secret that the API
	// server refuses and quotes.
	f["leaky/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: leaky, namespace: default}\nstringData: {password: [" + canary + "]}\n"
	f["leaky/operator.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: leaky-operator, namespace: default}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}\n"
	return f
}

// failEnv is one cluster for all cases.
type failEnv struct {
	*crdsEnv
	opts crds.Options
}

func newFailEnv(t *testing.T) *failEnv {
	e := &failEnv{crdsEnv: newCrdsEnv(t)}
	e.push(failRepository())
	e.waitReady("platform")
	e.opts = e.options()
	e.opts.Catalogue, e.opts.Timeout = failCatalogue(t), 2*time.Second
	return e
}

func (e *failEnv) trigger(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(5)}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: failGroup(name), Version: "v1", Kind: "Trigger"})
	o.SetName("it")
	return o
}

func (e *failEnv) applyAs(t *testing.T, manager string, o *unstructured.Unstructured) {
	t.Helper()
	_, err := e.Dynamic().Resource(schema.GroupVersionResource{Group: o.GroupVersionKind().Group, Version: "v1", Resource: "triggers"}).
		Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
}

// free frees the case's tier, and checks the error's text and how many objects were written.
func (e *failEnv) free(t *testing.T, clients crds.Clients, name, want string, wantWrites int) error {
	t.Helper()
	var said strings.Builder
	var outcome crds.Outcome
	var err error
	writes := e.writesOf(func() {
		outcome, err = crds.Free(t.Context(), clients, tiers.Key{Namespace: "flux-system", Name: name}, e.opts, func(event crds.Event) {
			data, _ := json.Marshal(event)
			said.Write(data)
		})
	})
	if err == nil {
		t.Fatalf("no error; outcome: %+v; events: %s", outcome, said.String())
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error: %v\nwant: …%s…", err, want)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	if len(writes) != wantWrites || outcome.Changed() != wantWrites {
		t.Errorf("%d writes in the audit log, %d in the outcome, want %d: %v", len(writes), outcome.Changed(), wantWrites, writes)
	}
	data, _ := json.Marshal(outcome)
	if strings.Contains(said.String()+string(data)+err.Error(), canary) {
		t.Error("a Secret's value was shown")
	}
	return err
}

// TestE2ECrdsSaysWhatIsWrong holds every refusal to a clear line, the typed error, and the exact
// number of writes.
func TestE2ECrdsSaysWhatIsWrong(t *testing.T) {
	e := newFailEnv(t)
	t.Run("the operator is not there", func(t *testing.T) {
		err := e.free(t, e.clients, "absent", "still waiting for Made (absent.fail.example/v1): Trigger/it: operator of absent does not run on this cluster: no workload of it exists", 1)
		assertAs[*crds.NotServedError](t, err)
		assertAs[*crds.OperatorNotRunningError](t, err)
	})
	t.Run("interrupted, and gone on with: the kind has come meanwhile", func(t *testing.T) {
		e.waitStuck("absent", "Made")
		must(t, e.Apply(t.Context(), crdFile(failGroup("absent"), "v1", "Made", "mades", "Cluster")))
		only := e.opts
		only.Timeout = 2 * time.Minute
		only.Graph = subgraph(e.opts.Graph, "platform", "absent")
		result, err := crds.Run(t.Context(), e.clients, only, nil)
		must(t, err)
		if !slices.Contains(result.Nudged, tiers.Key{Namespace: "flux-system", Name: "absent"}) {
			t.Errorf("nudged: %v", result.Nudged)
		}
		e.waitReady("absent")
		e.nothingOfOurs(e.object(failGroup("absent"), "v1", "Trigger", "", "it"))
	})
	t.Run("the operator is scaled to nothing", func(t *testing.T) {
		must(t, e.Apply(t.Context(), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: scaled-operator, namespace: default}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}\n"))
		err := e.free(t, e.clients, "scaled", "operator of scaled is not available: Deployment/default/scaled-operator: it is scaled to 0", 1)
		assertAs[*crds.OperatorNotRunningError](t, err)
	})
	t.Run("the trigger's condition says that it failed", func(t *testing.T) {
		o := e.trigger("failing")
		o.Object["spec"] = map[string]any{"size": int64(1)}
		e.applyAs(t, "kubectl-someone", o.DeepCopy())
		delete(o.Object, "spec")
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Degraded", "status": "True", "reason": "BadLuck", "message": "no luck\nat all"}}}
		must(t, e.ApplyStatus(t.Context(), o))
		err := e.free(t, e.clients, "failing", "Trigger/it: its controller reports Degraded=True (BadLuck): no luck", 1)
		assertAs[*crds.TriggerFailedError](t, err)
	})
	t.Run("a webhook that does not answer", func(t *testing.T) {
		must(t, e.Apply(t.Context(), `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gone}
webhooks:
- name: gone.fail.example
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: gone, namespace: default}}
  rules: [{apiGroups: [webhook.fail.example], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
`))
		err := e.free(t, e.clients, "webhook", `Trigger/it: dry run: Internal error occurred: failed calling webhook "gone.fail.example"`, 0)
		assertAs[*crds.RefusedError](t, err)
	})
	t.Run("a user who may read but not write", func(t *testing.T) {
		kubeconfig, err := e.AddUser(t.Context(), "reader", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
		must(t, err)
		err = e.free(t, e.as(kubeconfig), "forbidden", `Trigger/it: dry run: triggers.forbidden.fail.example "it" is forbidden`, 0)
		assertAs[*crds.RefusedError](t, err)
	})
	t.Run("someone else owns a field", func(t *testing.T) {
		e.applyAs(t, "someone", e.trigger("conflict"))
		err := e.free(t, e.clients, "conflict", `Trigger/it: applying: others own fields that git sets: .spec.size ("someone")`, 0)
		assertAs[*crds.ConflictError](t, err)
	})
	t.Run("Flux applied an older value", func(t *testing.T) {
		o := e.trigger("outdated")
		o.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": "outdated", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"})
		e.applyAs(t, "kustomize-controller", o)
		e.free(t, e.clients, "outdated", "still waiting for Made", 1) //nolint:errcheck // free has looked at it
		size, _, _ := unstructured.NestedInt64(e.object(failGroup("outdated"), "v1", "Trigger", "", "it").Object, "spec", "size")
		if size != 1 {
			t.Errorf("spec.size is %d, git says 1", size)
		}
	})
	t.Run("what the trigger needs is encrypted", func(t *testing.T) {
		err := e.free(t, e.clients, "sealed", "Trigger/it: it needs Secret/default/password, which is encrypted with SOPS", 0)
		assertAs[*crds.EncryptedError](t, err)
	})
	t.Run("the operator would take its own CRD for an orphan", func(t *testing.T) {
		err := e.free(t, e.clients, "orphan", "operator of orphan does not deploy while CRDs of its own exist that it did not create: others.orphan.fail.example", 0)
		assertAs[*crds.OrphanError](t, err)
	})
	t.Run("a Secret that is refused is not quoted", func(t *testing.T) {
		e.free(t, e.clients, "leaky", "Secret/default/leaky: dry run: ", 0) //nolint:errcheck // free has looked at it
	})
	t.Run("a version that is not served", func(t *testing.T) {
		_, err := crds.Run(t.Context(), e.clients, e.opts, nil)
		if want := "Kustomization/flux-system/version: Trigger (version.fail.example/v2) is missing: the cluster serves v1, git uses v2"; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v\nwant: …%s…", err, want)
		}
		assertAs[*crds.MissingKindError](t, err)
	})
	t.Run("the revision changes under us", func(t *testing.T) {
		changed := failRepository()
		changed["README.md"] = "changed"
		e.push(changed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(t, e.requestSource(ctx))
		err := e.free(t, e.clients, "revision", "Kustomization/flux-system/revision: the cluster is at revision main@sha1:", 0)
		assertAs[*crds.RevisionError](t, err)
	})
}

// subgraph keeps some tiers of a graph.
func subgraph(graph *tiers.Graph, names ...string) *tiers.Graph {
	part := *graph
	part.Tiers = nil
	for _, tier := range graph.Tiers {
		if slices.Contains(names, tier.Name) {
			part.Tiers = append(part.Tiers, tier)
		}
	}
	return &part
}

// requestSource asks for a look at git and waits until the pushed commit is the artifact.
func (e *failEnv) requestSource(ctx context.Context) error {
	old := e.opts.Graph.Revision
	patch := []byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)
	_, err := e.Dynamic().Resource(schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}).
		Namespace("flux-system").Patch(ctx, "flux-system", "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return e.WaitFor(ctx, cluster.GitRepositoryGVK(), "flux-system", "flux-system", func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision")
		return revision != "" && !strings.Contains(revision, old)
	})
}

func assertAs[E error](t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[E](err); !ok {
		t.Errorf("%T: %v: not a %T", err, err, *new(E))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
