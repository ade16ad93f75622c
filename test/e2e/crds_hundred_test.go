package e2e

import (
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/cluster"
)

// TestE2ECrdsOfAHundredTiersTakesNoTime: where nothing is missing, a run is a few requests, however
// many tiers there are.
func TestE2ECrdsOfAHundredTiersTakesNoTime(t *testing.T) {
	c := cluster.New(t, cluster.Options{Components: cluster.Flux()})
	must(t, c.Stop(cluster.KustomizeController)) // its CRDs are wanted, not its passes
	e := &crdsEnv{Cluster: c, t: t, clients: clientsOf(t, c.RESTConfig())}
	graph := &tiers.Graph{}
	for i := range 100 {
		name := fmt.Sprintf("tier-%03d", i)
		must(t, applyPatiently(t, c, tierFile(name, "")))
		tier := &tiers.Tier{Key: tiers.Key{Namespace: "flux-system", Name: name}, Kustomization: &kustomizev1.Kustomization{}}
		for j := range 20 {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			o.SetNamespace("default")
			o.SetName(fmt.Sprintf("%s-%d", name, j))
			tier.Objects = append(tier.Objects, render.Object{Unstructured: o})
		}
		if i > 0 {
			graph.Edges = append(graph.Edges, tiers.Edge{From: tier.Key, To: graph.Tiers[i-1].Key, Kind: tiers.DependsOn})
		}
		graph.Tiers = append(graph.Tiers, tier)
	}
	catalogue, err := crds.DefaultCatalogue()
	must(t, err)
	begin := time.Now()
	requests := e.requestsOf(func() { e.mustRun(crds.Options{Graph: graph, Catalogue: catalogue}) })
	t.Logf("%d requests, %d ms with what the audit log takes", len(requests), time.Since(begin).Milliseconds())
	if len(requests) == 0 || len(requests) > 10 || len(cluster.Writes(requests)) != 0 {
		t.Errorf("for a hundred tiers where nothing is missing: %v", requests)
	}
}

// applyPatiently bears with a busy API server that does not list a new CRD's kind yet.
func applyPatiently(t *testing.T, c *cluster.Cluster, manifest string) error {
	t.Helper()
	for try := 1; ; try++ {
		err := c.Apply(t.Context(), manifest)
		if err == nil || try == 120 {
			return err
		}
		time.Sleep(500 * time.Millisecond)
	}
}
