package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
)

// waitingTree is a repository whose tier "web" waits for a pod that no node takes until it is
// repaired, with "app" behind it.
func waitingTree(repaired bool) fstest.MapFS {
	tree := fstest.MapFS{}
	write := func(path, text string) { tree[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	selector := "disk: none"
	if repaired {
		selector = "kubernetes.io/hostname: node-0"
	}
	tier := func(name, dependsOn, content string) {
		write("fleet/"+name+".yaml", fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec: {interval: 1h, path: ./%[1]s, prune: true, wait: true, timeout: 40s, dependsOn: [%[2]s], sourceRef: {kind: GitRepository, name: flux-system}}
`, name, dependsOn))
		write(name+"/content.yaml", content)
	}
	tier("base", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base, namespace: default}\n")
	tier("web", "name: base", fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {%s}, containers: [{name: web, image: registry.example/web}]}
`, selector))
	tier("app", "name: web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: default}\n")
	write("fleet/kustomization.yaml", "resources: [base.yaml, web.yaml, app.yaml]\n")
	return tree
}

// TestE2EInterruptedRunGoesOn ends runs in their middle, by Ctrl-C and by SIGKILL: the first says
// what is pending and leaves nothing behind, the second leaves a lease that the next run names, and
// the run after them finishes.
func TestE2EInterruptedRunGoesOn(t *testing.T) {
	c := cluster.New(t, cluster.Options{})
	r, err := cold.Push(t.Context(), c, "waiting", waitingTree(false), "waiting")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(t.Context(), cluster.Sync{Repo: r.Name, Path: "fleet"}); err != nil {
		t.Fatal(err)
	}

	interrupted := endAt(t, c, r.Dir, syscall.SIGINT)
	if interrupted.code != 130 {
		t.Errorf("after Ctrl-C: exit %d, want 130", interrupted.code)
	}
	for _, want := range []string{"Running health checks", "2 of 4 tiers ready", "nothing was rolled back"} {
		if !strings.Contains(interrupted.stdout+interrupted.stderr, want) {
			t.Errorf("after Ctrl-C nothing says %q", want)
		}
	}
	if leaseExists(t, c) {
		t.Error("the lease outlived Ctrl-C")
	}

	if o := standup(t, c, r.Dir, "suspend", "--path", "fleet"); o.code != 0 {
		t.Fatalf("suspend: exit %d, want 0", o.code)
	}
	endAt(t, c, r.Dir, syscall.SIGKILL)
	if !leaseExists(t, c) {
		t.Fatal("SIGKILL came before the lease was taken")
	}
	if _, err := cold.Push(t.Context(), c, r.Name, waitingTree(true), "repaired"); err != nil {
		t.Fatal(err)
	}
	fetched(t, c, r.Dir)
	next := standup(t, c, r.Dir, "up", "--path", "fleet")
	if next.code == 2 { // within the lease's 30 seconds
		if !strings.Contains(next.stderr, "another run is at work") || !strings.Contains(next.stderr, "--take-over") {
			t.Errorf("the held lease is not explained: %s", next.stderr)
		}
		next = standup(t, c, r.Dir, "up", "--path", "fleet", "--take-over")
	}
	if next.code != 0 {
		t.Errorf("the run after both: exit %d, want 0", next.code)
	}
}

// endAt runs up until "web" is in its health check, and ends it by a signal.
func endAt(t *testing.T, c *cluster.Cluster, dir string, signal os.Signal) outcome {
	t.Helper()
	return endWhen(t, c, dir, "fleet", signal, func() bool { return checking(t, c, "web") && leaseExists(t, c) })
}

// endWhen runs up until something is so, and ends it by a signal.
func endWhen(t *testing.T, c *cluster.Cluster, dir, path string, signal os.Signal, is func() bool) outcome {
	t.Helper()
	binary, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "up", "--path", path)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if is() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is what counts
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	t.Logf("standup up, ended by %s: exit %d\n%s%s", signal, o.code, o.stderr, o.stdout)
	return o
}

func leaseExists(t *testing.T, c *cluster.Cluster) bool {
	t.Helper()
	_, err := c.Get(t.Context(), coordinationv1.SchemeGroupVersion.WithKind("Lease"), "flux-system", resume.LeaseName)
	return err == nil
}

// checking reports whether a tier waits for the health of what it has applied.
func checking(t *testing.T, c *cluster.Cluster, name string) bool {
	t.Helper()
	o, err := c.Get(t.Context(), cluster.KustomizationGVK(), "flux-system", name)
	return err == nil && strings.Contains(fmt.Sprint(o.Object["status"]), "Running health checks")
}

// fetched waits until the cluster has the last commit of a clone.
func fetched(t *testing.T, c *cluster.Cluster, dir string) {
	t.Helper()
	head, err := exec.CommandContext(t.Context(), "git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := c.Resource(cluster.GitRepositoryGVK(), "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sources.Patch(t.Context(), "flux-system", flux.PatchType, flux.ResumePatch(flux.Token(time.Now())), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	err = c.WaitFor(t.Context(), cluster.GitRepositoryGVK(), "flux-system", "flux-system", func(o *unstructured.Unstructured) bool {
		revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision")
		return strings.HasSuffix(revision, strings.TrimSpace(string(head)))
	})
	if err != nil {
		t.Fatal(err)
	}
}
