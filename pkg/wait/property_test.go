package wait

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// randomCluster makes tiers in random states that depend on each other at random, circles, missing
// dependencies, parents and children included.
func randomCluster(seed uint64) *cluster {
	r := rand.New(rand.NewPCG(seed, 1))
	c := newCluster()
	n := 1 + r.IntN(12)
	tierName := func() string { return fmt.Sprintf("t%d", r.IntN(n+1)) } // the last does not exist
	for i := range n {
		deps := ""
		for range r.IntN(3) {
			deps += " " + tierName()
		}
		states := []func(*kustomizev1.Kustomization){
			readyAt(current), readyAt(old), waitingFor(tierName()),
			failed(meta.ReconciliationFailedReason, missingProfile),
			failed(meta.BuildFailedReason, "kustomize build failed: x"),
			failed(meta.ArtifactFailedReason, "Source artifact not found, retrying in 30s"),
			failed(meta.HealthCheckFailedReason, "health check failed after 1s: timeout waiting for: [Kustomization/flux-system/"+tierName()+" status: 'InProgress']"),
			running("Building manifests for revision x with a timeout of 5m0s", time.Duration(r.IntN(7200))*time.Second),
			running("Running health checks for revision x with a timeout of 5m0s", time.Duration(r.IntN(7200))*time.Second),
			func(*kustomizev1.Kustomization) {},
		}
		change := []func(*kustomizev1.Kustomization){states[r.IntN(len(states))]}
		if r.IntN(3) == 0 {
			change = append(change, gate, holding("flux-system_"+tierName()+"_kustomize.toolkit.fluxcd.io_Kustomization", "shop_web_apps_Deployment"))
		}
		if r.IntN(8) == 0 {
			change = append(change, suspendedTier)
		}
		c.tier(fmt.Sprintf("t%d", i), deps, change...)
	}
	for i := range n {
		if r.IntN(4) == 0 {
			c.child(fmt.Sprintf("t%d", r.IntN(n)), fmt.Sprintf("t%d", i))
		}
		if r.IntN(8) == 0 {
			c.absent(fmt.Sprintf("t%d", i))
		}
	}
	if r.IntN(6) == 0 {
		c.source("flux-system", "")
	}
	return c
}

// TestEveryTierThatIsNotReadyHasACause holds the walk to its promise whatever the cluster is like:
// no tier is left without an answer, no ready tier is held up, and the answer does not depend on
// chance.
func TestEveryTierThatIsNotReadyHasACause(t *testing.T) {
	for seed := range uint64(1000) {
		c := randomCluster(seed)
		diagnoses := c.diagnose(Evidence{})
		for _, s := range Status(c.graph, c.snapshot, now) {
			held := slices.ContainsFunc(diagnoses, func(d Diagnosis) bool { return d.HoldsUp(s.Key) })
			if held == s.Settled() {
				t.Fatalf("seed %d: %s is %s and held up is %t, by\n%+v", seed, s.Name, s.State, held, findings(diagnoses))
			}
		}
		seen := map[string]bool{}
		for _, d := range diagnoses {
			if seen[d.Key()] {
				t.Fatalf("seed %d: two diagnoses with the key %s", seed, d.Key())
			}
			seen[d.Key()] = true
			if slices.Contains(d.Blocks, d.Tier) {
				t.Fatalf("seed %d: %s is among what it blocks itself", seed, d.Tier)
			}
		}
		if diff := cmp.Diff(diagnoses, c.diagnose(Evidence{}), cmpopts.IgnoreUnexported(Diagnosis{})); diff != "" {
			t.Fatalf("seed %d: a second look differs:\n%s", seed, diff)
		}
	}
}

// BenchmarkDiagnose is a cold start of a thousand tiers with one failure at its root.
func BenchmarkDiagnose(b *testing.B) {
	c := newCluster()
	c.tier("t0", "", failed(meta.ReconciliationFailedReason, missingProfile))
	for i := 1; i < 1000; i++ {
		dep := fmt.Sprintf("t%d", (i-1)/3)
		c.tier(fmt.Sprintf("t%d", i), dep, waitingFor(dep))
	}
	for b.Loop() {
		if d := c.diagnose(Evidence{}); len(d) != 1 || len(d[0].Blocks) != 999 {
			b.Fatalf("%d diagnoses", len(d))
		}
	}
}
