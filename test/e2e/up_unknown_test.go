package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/standup-sh/standup/test/cluster"
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
// that no catalogue knows and an object of a kind that only this chart brings.
func TestE2EUpFreesATierOfAnUnknownChart(t *testing.T) {
	e := newCrdsEnv(t)
	e.runHelm(0, map[string]*chart.Chart{"shop": shelfChart()})
	e.push(map[string]string{
		"clusters/test/base.yaml": tierFile("base", ""),
		"clusters/test/shop.yaml": tierFile("shop", "  wait: true\n", "base"),
		"clusters/test/apps.yaml": tierFile("apps", "", "shop"),
		"base/base.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base, namespace: default}\n",
		"shop/release.yaml":       releaseFile("shop", "default", "shop", "{}"),
		"shop/shelf.yaml":         shelfObject,
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

var _ = cluster.Options{}
