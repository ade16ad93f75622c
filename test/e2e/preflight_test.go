package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/preflight"
	"github.com/standup-sh/standup/pkg/wait"
	"github.com/standup-sh/standup/test/cluster"
)

func preflightClients(t *testing.T, config *rest.Config) preflight.Clients {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = waitAgent, -1
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return preflight.Clients{Kubernetes: k, Dynamic: d}
}

// checked runs the checks and returns the one of that name as "status: message".
func checked(t *testing.T, clients preflight.Clients, o preflight.Options, name string) string {
	t.Helper()
	r, err := preflight.Run(t.Context(), clients, o)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Checks, func(c preflight.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s in %+v", name, r.Checks)
	}
	return string(r.Checks[i].Status) + ": " + r.Checks[i].Message
}

// TestE2EPreflight asks a real API server with Flux's real controllers, and writes nothing.
func TestE2EPreflight(t *testing.T) {
	e := newDiagnosisEnv(t, cluster.Options{Components: cluster.Flux()})
	clients := preflightClients(t, e.RESTConfig())
	sha, err := e.Git.Push(t.Context(), "fleet", treeOf(map[string]string{"clusters/test/a.yaml": configMap("a")}), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Sync(t.Context(), cluster.Sync{Repo: "fleet", Path: "clusters/test"}); err != nil {
		t.Fatal(err)
	}
	e.ready("flux-system")
	mark, err := e.Audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := fluxKey("flux-system")
	o := preflight.Options{
		SourceKinds: []string{"GitRepository", "OCIRepository", "Bucket", "HelmRepository", "ExternalArtifact"},
		Entry:       &key, Source: &flux.SourceRef{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}, Revision: sha,
		Access: []preflight.Access{
			{Verb: "patch", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"},
			{Verb: "list", Resource: "events", Optional: true},
		},
	}
	r, err := preflight.Run(t.Context(), clients, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Status != preflight.OK {
			t.Errorf("%s is %s: %s", c.Name, c.Status, c.Message)
		}
	}

	o.Revision = strings.Repeat("1", 40)
	if got, want := checked(t, clients, o, "revision"), "fail: the cluster is at main@sha1:"+sha+", read was 111111111111"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	kubeconfig, err := e.AddUser(t.Context(), "reader", rbacv1.PolicyRule{
		APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}, Verbs: []string{"get", "list", "watch"},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	reader := preflightClients(t, config)
	for name, want := range map[string]string{
		"access":               "fail: not allowed: patch kustomizations.kustomize.toolkit.fluxcd.io in all namespaces",
		"entry":                "ok: Kustomization/flux-system/flux-system exists",
		"kustomize-controller": "unknown: cannot be told: no permission to read the deployments of namespace flux-system; no permission to read the leases of namespace flux-system",
		"webhooks":             "unknown: reading webhook configurations: …",
	} {
		if got := checked(t, reader, o, name); !lineMatches(want, got) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	err = wait.Watch(t.Context(), reader.Dynamic, wait.WatchOptions{Sources: []string{"GitRepository"}}, func(flux.Snapshot) { t.Error("a snapshot was delivered") })
	if want := `watching GitRepository in all namespaces: permission denied: …User "reader" cannot list resource "gitrepositories"…`; err == nil || !lineMatches(want, err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}

	entries, err := e.Audit.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range cluster.Select(cluster.Writes(entries), cluster.ByUserAgent(waitAgent)) {
		t.Errorf("a write: %s", entry)
	}

	e.apply(webhookWithoutEndpoints()["hook/objects.yaml"])
	if got, want := checked(t, clients, o, "webhooks"), "warn: webhooks with failurePolicy Fail and no ready endpoints: Service/hooked/hook (ValidatingWebhookConfiguration/hook)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	if err := e.Kill(cluster.SourceController); err != nil {
		t.Fatal(err)
	}
	o.Now = time.Now().Add(2 * time.Minute) // as if that time had passed since
	if got, want := checked(t, clients, o, "source-controller"), "fail: not running: nobody has renewed its lease for …"; !lineMatches(want, got) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
