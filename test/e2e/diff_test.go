package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
)

// TestE2EDiffContext asks a real cluster whether a move can be merged: the tier that the new owner
// waits for is Ready there, and then it is not.
func TestE2EDiffContext(t *testing.T) {
	e := newCrdsEnv(t)
	before := map[string]string{
		"clusters/test/base.yaml": tierFile("base", "  wait: true\n"),
		"clusters/test/old.yaml":  tierFile("old", ""),
		"base/config.yaml":        configMapFile("base"),
		"old/kept.yaml":           configMapFile("kept"),
		"old/moved.yaml":          configMapFile("moved"),
	}
	e.push(before)
	e.waitReady("base", "old")
	diff := func() outcome {
		t.Helper()
		e.edit(map[string]string{
			"clusters/test/next.yaml": tierFile("next", "", "base"),
			"next/moved.yaml":         configMapFile("moved"),
		}, "old/moved.yaml")
		return standup(t, e.Cluster, e.repo.Dir, "diff", "--path", e.path, "--context", currentContext(t, e.Kubeconfig()))
	}
	var met outcome
	if writes := writesOf(t, e.Cluster, func() { met = diff() }); len(writes) > 0 {
		t.Errorf("diff wrote: %v", writes)
	}
	if met.code != 0 || !strings.Contains(met.stdout, "ConfigMap/default/moved") || strings.Contains(met.stdout, "does not hold") {
		t.Errorf("the precondition holds: exit %d\n%s", met.code, met.stdout)
	}

	before["base/broken.yaml"] = "apiVersion: nobody.example/v1\nkind: Unknown\nmetadata: {name: x, namespace: default}\n"
	e.push(before)
	e.fetch()
	e.waitStuck("base", "Unknown")
	unmet := diff()
	if unmet.code != 1 || !strings.Contains(unmet.stdout, `no matches for kind "Unknown"`) {
		t.Errorf("the precondition does not hold: exit %d\n%s", unmet.code, unmet.stdout)
	}
	offline := standup(t, e.Cluster, e.repo.Dir, "diff", "--path", e.path)
	if offline.code != 0 || !strings.Contains(offline.stdout, "base") {
		t.Errorf("without a context no cluster is asked: exit %d\n%s", offline.code, offline.stdout)
	}
}

func configMapFile(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {a: b}\n"
}

// edit changes the work tree of the clone, and commits nothing.
func (e *crdsEnv) edit(write map[string]string, remove ...string) {
	e.t.Helper()
	for name, data := range write {
		file := filepath.Join(e.repo.Dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			e.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			e.t.Fatal(err)
		}
	}
	for _, name := range remove {
		if err := os.RemoveAll(filepath.Join(e.repo.Dir, name)); err != nil {
			e.t.Fatal(err)
		}
	}
}

// fetch makes Flux look for a new commit now.
func (e *crdsEnv) fetch() {
	e.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`)
	sources := e.clients.Dynamic.Resource(schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"})
	if _, err := sources.Namespace("flux-system").Patch(e.t.Context(), "flux-system", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

func currentContext(t *testing.T, kubeconfig string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config.CurrentContext
}
