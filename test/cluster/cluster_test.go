package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/standup-sh/standup/test/cluster"
)

var (
	configMapGVK  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deploymentGVK = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	leaseGVK      = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	helmGVK       = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	return out
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {value: %q}\n", name, value)
}

func TestServerVersionCanBeParsed(t *testing.T) {
	c := full.get(t)
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36" {
		t.Errorf("got %s (%s.%s), want v1.36.3 (1.36)", version.GitVersion, version.Major, version.Minor)
	}
}

func TestKubeconfigIsReadableByItsOwnerOnly(t *testing.T) {
	c := full.get(t)
	info, err := os.Stat(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got mode %o, want 600", got)
	}
}

func TestFluxAppliesWhatIsPushed(t *testing.T) {
	c := full.get(t)
	ctx := within(t, 2*time.Minute)
	first, err := c.Git.Push(ctx, "pushed", tree(map[string]string{"app/cm.yaml": configMap("pushed", "one")}), "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(ctx, cluster.Sync{Repo: "pushed", Path: "app", Name: "pushed"}); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx, "flux-system", "pushed"); err != nil {
		t.Fatal(err)
	}
	k, err := c.Get(ctx, cluster.KustomizationGVK(), "flux-system", "pushed")
	if err != nil {
		t.Fatal(err)
	}
	revision, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
	if want := "main@sha1:" + first; revision != want {
		t.Errorf("applied revision %q, want %q", revision, want)
	}

	second, err := c.Git.Push(ctx, "pushed", tree(map[string]string{"app/cm.yaml": configMap("pushed", "two")}), "second")
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Error("both pushes made the same commit")
	}
	nudge(ctx, t, c, cluster.GitRepositoryGVK(), "flux-system", "pushed")
	err = c.WaitFor(ctx, configMapGVK, "default", "pushed", func(o *unstructured.Unstructured) bool {
		value, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return value == "two"
	})
	if err != nil {
		t.Fatal(err)
	}
}

func nudge(ctx context.Context, t *testing.T, c *cluster.Cluster, gvk schema.GroupVersionKind, namespace, name string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": time.Now().Format(time.RFC3339Nano)})
	client, err := c.Resource(gvk, namespace)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "nudge", Force: true})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGitServerTakesAPushOverHTTP(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	if _, err := c.Git.Push(ctx, "remote", tree(map[string]string{"README": "one\n"}), "first"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) string {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	git("clone", "--quiet", c.Git.URL("remote"), dir)
	// More than git's http.postBuffer, so that the length is not announced.
	if err := os.WriteFile(filepath.Join(dir, "big"), noise(3<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	git("-C", dir, "add", "-A")
	git("-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "second")
	git("-C", dir, "push", "--quiet", "origin", "main")
	local := strings.TrimSpace(git("-C", dir, "rev-parse", "HEAD"))
	if remote := git("ls-remote", c.Git.URL("remote"), "main"); !strings.HasPrefix(remote, local) {
		t.Errorf("the server has %q, want %s", remote, local)
	}
}

// noise does not compress.
func noise(n int) []byte {
	out, state := make([]byte, n), uint64(88172645463325252)
	for i := range out {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		out[i] = byte(state)
	}
	return out
}

func TestDeploymentBecomesAvailable(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	err := c.Apply(ctx, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.example.org/web:1}]
`)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	err = c.WaitFor(ctx, deploymentGVK, "default", "web", func(o *unstructured.Unstructured) bool {
		replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		return cluster.ConditionTrue(o, "Available") && replicas == 2
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Available after %.1f s", time.Since(begin).Seconds())
}

func TestFluxControllersHoldTheirLeases(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	for _, name := range []string{"kustomize-controller-leader-election", "source-controller-leader-election"} {
		err := c.WaitFor(ctx, leaseGVK, "flux-system", name, func(o *unstructured.Unstructured) bool {
			if o == nil {
				return false
			}
			holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity")
			return holder != ""
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestHelmReleaseCRDRejectsWhatTheRealOneRejects(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	const release = `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: default}
spec:
  interval: 10m
  chart: {spec: {chart: web, version: "1.x", sourceRef: {kind: HelmRepository, name: web}}}
`
	if err := c.Apply(ctx, release); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, helmGVK, "default", "web"); err != nil {
		t.Error(err)
	}
	if err := c.Apply(ctx, strings.Replace(release, "10m", "often", 1)); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want the interval refused", err)
	}
}

func TestAuditTellsWhoWroteWhat(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	mark, err := c.Audit.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	config := c.RESTConfig()
	config.UserAgent = "standup/v9.9.9"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	cm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "audited"},
	}}
	maps := client.Resource(configMaps).Namespace("default")
	if _, err := maps.Get(ctx, "audited", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{DryRun: dryRun, FieldManager: "standup"}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := c.Audit.Since(ctx, mark)
	if err != nil {
		t.Fatal(err)
	}
	mine := cluster.Select(entries, cluster.ByUserAgent("standup/"))
	if len(mine) != 3 {
		t.Errorf("got %d requests, want a get, a dry run and a create: %v", len(mine), mine)
	}
	writes := cluster.Writes(mine)
	if len(writes) != 1 {
		t.Fatalf("got writes %v, want one", writes)
	}
	got := writes[0]
	got.Time, got.URI = time.Time{}, ""
	want := cluster.Entry{
		User: "admin", UserAgent: "standup/v9.9.9", Verb: "create", Resource: "configmaps",
		Namespace: "default", Name: "audited", Code: 201, FieldManager: "standup",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	after, err := c.Audit.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := c.Audit.Since(ctx, after)
	if err != nil {
		t.Fatal(err)
	}
	if old := cluster.Select(rest, cluster.ByUserAgent("standup/")); len(old) > 0 {
		t.Errorf("a later mark still shows %v", old)
	}
}

func TestRestrictedUserMayDoWhatTheRulesSay(t *testing.T) {
	c := full.get(t)
	ctx := within(t, time.Minute)
	path, err := c.AddUser(ctx, "reader", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Resource(configMaps).Namespace("default")
	// The authorizer learns of a new binding from a watch.
	allowed := false
	for !allowed && ctx.Err() == nil {
		_, err := maps.List(ctx, metav1.ListOptions{})
		allowed = err == nil
		time.Sleep(50 * time.Millisecond)
	}
	if !allowed {
		t.Error("may not list")
	}
	if err := maps.Delete(ctx, "audited", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting: got %v, want it forbidden", err)
	}
}
