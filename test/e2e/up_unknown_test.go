package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/test/standin/helm"
)

const shelfObject = "apiVersion: shop.example/v1\nkind: Shelf\nmetadata: {name: books, namespace: default}\nspec: {}\n"

func shelfChart() *chart.Chart {
	return chartOf("shop", crdFile("shop.example", "v1", "Shelf", "shelves", "Namespaced"))
}

// runHelm starts the stand-in for helm-controller with some charts, after a while.
func (e *crdsEnv) runHelm(after time.Duration, charts map[string]*chart.Chart) {
	e.background(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
		return helm.Run(ctx, e.RESTConfig(), charts, func(err error) { e.t.Log("stand-in:", err) })
	})
}

// up runs `standup up` on the clone.
func (e *crdsEnv) up(args ...string) outcome {
	e.t.Helper()
	return standup(e.t, e.Cluster, e.repo.Dir, append([]string{"up", "--path", e.path}, args...)...)
}

// appliedOf are the objects that standup wrote while do ran, requests to Flux and the lease aside.
func (e *crdsEnv) appliedOf(do func()) []string {
	e.t.Helper()
	return slices.DeleteFunc(e.audited(do), func(object string) bool {
		return len(object) > len("Kustomization.") && object[:len("Kustomization.")] == "Kustomization."
	})
}

// TestE2EUpFreesATierOfAnUnknownChart is a cold cluster with a tier that holds the release of a chart
// that no catalogue knows, an object of a kind that only this chart brings, and one of a kind that
// the chart's operator registers once it has seen the first.
func TestE2EUpFreesATierOfAnUnknownChart(t *testing.T) {
	e := newCrdsEnv(t)
	e.runHelm(0, map[string]*chart.Chart{"shop": shelfChart()})
	e.background(func(ctx context.Context) error { // the operator in the chart
		shelf := schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Shelf"}
		if e.WaitFor(ctx, shelf, "default", "books", func(o *unstructured.Unstructured) bool { return o != nil }) != nil {
			return nil
		}
		return e.Apply(ctx, crdFile("gadgets.example", "v1", "Gadget", "gadgets", "Namespaced"))
	})
	e.push(map[string]string{
		"clusters/test/base.yaml": tierFile("base", ""),
		"clusters/test/shop.yaml": tierFile("shop", "  wait: true\n", "base"),
		"clusters/test/apps.yaml": tierFile("apps", "", "shop"),
		"base/base.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base, namespace: default}\n",
		"shop/release.yaml":       releaseFile("shop", "default", "shop", "{}"),
		"shop/shelf.yaml":         shelfObject,
		"shop/gadget.yaml":        "apiVersion: gadgets.example/v1\nkind: Gadget\nmetadata: {name: a, namespace: default}\n",
		"apps/apps.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: default}\n",
	})
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))

	e.up().exits(t, 0)
	e.waitReady("shop", "apps")
	e.nothingOfOurs(e.object("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "default", "shop"))
	if writes := writesOf(t, e.Cluster, func() { e.up().exits(t, 0) }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
}

// TestE2EUpKnowsWhatItIsGiven: a chart that lies in git, and one that a catalogue of the user's knows,
// are none that nobody knows. Their tiers are freed at once, and nothing is guessed.
func TestE2EUpKnowsWhatItIsGiven(t *testing.T) {
	e := newCrdsEnv(t)
	e.runHelm(0, map[string]*chart.Chart{
		"./charts/shop": shelfChart(),
		"gadgets":       chartOf("gadgets", crdFile("gadgets.example", "v1", "Gadget", "gadgets", "Namespaced")),
	})
	e.push(map[string]string{
		"clusters/test/shop.yaml":    tierFile("shop", ""),
		"clusters/test/gadgets.yaml": tierFile("gadgets", ""),
		"charts/shop/Chart.yaml":     "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"charts/shop/crds/crd.yaml":  crdFile("shop.example", "v1", "Shelf", "shelves", "Namespaced"),
		"shop/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: flux-system}\nspec:\n  interval: 1h\n" +
			"  chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: flux-system}}}\n",
		"shop/shelf.yaml":      shelfObject,
		"gadgets/release.yaml": releaseFile("gadgets", "default", "gadgets", "{}"),
		"gadgets/gadget.yaml":  "apiVersion: gadgets.example/v1\nkind: Gadget\nmetadata: {name: a, namespace: default}\n",
	})
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))
	catalogue := filepath.Join(t.TempDir(), "catalogue.yaml")
	must(t, os.WriteFile(catalogue, []byte("version: 1\ncharts:\n- name: gadgets\n  charts: [gadgets]\n  groups: [gadgets.example]\n  folder: true\n"+
		"  evidence: {link: 'https://example.org', grade: verified}\n"), 0o600))

	guess := "nothing is known to bring"
	if o := e.up("--dry-run"); !strings.Contains(o.stdout+o.stderr, guess) || strings.Contains(o.stdout+o.stderr, guess+" Shelf") {
		t.Errorf("without the catalogue Gadget alone is not known")
	}
	if o := e.up("--catalogue", catalogue); o.code != 0 || strings.Contains(o.stdout+o.stderr, guess) {
		t.Errorf("exit %d, want 0 and no guess", o.code)
	}
	e.waitReady("shop", "gadgets")
}

// TestE2EUpGoesOnWithAnUnknownChart: killed after it has applied the release, the next run writes
// nothing but its requests, and is patient with the chart, however slow that is.
func TestE2EUpGoesOnWithAnUnknownChart(t *testing.T) {
	e := newCrdsEnv(t)
	e.push(map[string]string{
		"clusters/test/shop.yaml": tierFile("shop", ""),
		"shop/release.yaml":       releaseFile("shop", "default", "shop", "{}"),
		"shop/shelf.yaml":         shelfObject,
	})
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))
	kind := schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmRepository"}
	endWhen(t, e.Cluster, e.repo.Dir, e.path, syscall.SIGKILL, func() bool {
		_, err := e.Get(t.Context(), kind, "default", "charts")
		return err == nil
	})
	e.runHelm(25*time.Second, map[string]*chart.Chart{"shop": shelfChart()})
	if applied := e.appliedOf(func() { e.up("--take-over").exits(t, 0) }); len(applied) > 0 {
		t.Errorf("the next run applied: %v", applied)
	}
	e.nothingOfOurs(e.object("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "default", "shop"))
}

// TestE2EUpIsPatientWithAnUpstreamChart: the chart of a tier before brings the kind, and is still
// being installed when Flux fails for want of it. Nothing is applied, although the tier holds a
// release of its own that might have brought it.
func TestE2EUpIsPatientWithAnUpstreamChart(t *testing.T) {
	e := newCrdsEnv(t)
	e.push(map[string]string{
		"clusters/test/charts.yaml": tierFile("charts", ""),
		"clusters/test/shop.yaml":   tierFile("shop", "", "charts"),
		"charts/release.yaml":       releaseFile("shop", "default", "shop", "{}"),
		"shop/release.yaml":         releaseFile("books", "kube-public", "books", "{}"),
		"shop/shelf.yaml":           shelfObject,
	})
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))

	e.runHelm(45*time.Second, map[string]*chart.Chart{"shop": shelfChart(), "books": chartOf("books", "")})
	if applied := e.appliedOf(func() { e.up().exits(t, 0, "but HelmRelease/kube-public/books may") }); len(applied) > 0 {
		t.Errorf("applied ahead of Flux: %v", applied)
	}
	e.waitReady("shop")
}

// TestE2EUpSaysWhatNobodyBrings: one tier lacks a kind that nothing of it can bring, and one has an
// operator that does not.
func TestE2EUpSaysWhatNobodyBrings(t *testing.T) {
	e := newCrdsEnv(t)
	e.push(map[string]string{
		"clusters/test/riddle.yaml": tierFile("riddle", ""),
		"clusters/test/gadget.yaml": tierFile("gadget", ""),
		"clusters/test/apps.yaml":   tierFile("apps", "", "gadget"),
		"riddle/riddle.yaml":        "apiVersion: mystery.example/v1\nkind: Riddle\nmetadata: {name: a, namespace: default}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: riddle, namespace: default}\n",
		"gadget/gadget.yaml":        "apiVersion: gadgets.example/v1\nkind: Gadget\nmetadata: {name: a, namespace: default}\n",
		"gadget/operator.yaml":      deploymentOf("gadget-operator"),
		"apps/apps.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: default}\n",
	})
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))

	says := []string{
		"riddle: nothing is known to bring Riddle (mystery.example/v1), and nothing in the tier can",
		"gadget: nothing is known to bring Gadget (gadgets.example/v1), but Deployment/default/gadget-operator may",
	}
	if writes := writesOf(t, e.Cluster, func() { e.up("--dry-run").exits(t, 0, says...) }); len(writes) > 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	says = append(says,
		"warning: freeing: Kustomization/flux-system/riddle: Riddle (mystery.example/v1) is missing: nothing in git or in the catalogue brings it",
		"not freed yet: Kustomization/flux-system/gadget: still waiting for Gadget (gadgets.example/v1)",
		"3 tiers not ready",
		"hint      freeing it failed: Kustomization/flux-system/riddle: Riddle (mystery.example/v1) is missing",
		"run       standup crds --list --path clusters/test",
	)
	var up outcome
	if diff := cmp.Diff([]string{"Deployment.apps default/gadget-operator"}, e.appliedOf(func() { up = e.up("--tier-timeout", "30s") })); diff != "" {
		t.Error("applied ahead of Flux:", diff)
	}
	up.exits(t, 1, says...)
	if applied := e.appliedOf(func() { up = e.up("--tier-timeout", "20s") }); len(applied) > 0 {
		t.Errorf("the second run applied: %v", applied)
	}
	up.exits(t, 1, "all else of the tier is applied")
}

func deploymentOf(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: default}\nspec: {selector: {matchLabels: {app: " + name +
		"}}, template: {metadata: {labels: {app: " + name + "}}, spec: {containers: [{name: a, image: a}]}}}\n"
}
