package wait

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/flux"
)

func TestStatus(t *testing.T) {
	c := newCluster()
	c.tier("ready", "", readyAt(current))
	c.tier("behind", "", readyAt(old))
	c.tier("passing", "", running("Building manifests for revision "+current+" with a timeout of 9m30s", 5*time.Second))
	c.tier("turned-away", "failing", waitingFor("failing"))
	c.tier("failing", "", failed(meta.BuildFailedReason, "kustomize build failed: broken"))
	c.tier("resting", "", readyAt(old), suspendedTier)
	c.tier("gone", "")
	c.tier("silent", "")
	c.absent("gone")
	c.source("empty", "")
	c.tier("sourceless", "", readyAt(current)).Kustomization.Spec.SourceRef.Name = "empty"
	c.snapshot.Kustomizations[key("sourceless")].Spec.SourceRef.Name = "empty"

	type row struct {
		Name    string
		State   State
		Message string
		Retry   time.Duration // until NextRetry
		Every   time.Duration
	}
	var got []row
	for _, s := range Status(c.graph, c.snapshot, now) {
		r := row{s.Name, s.State, s.Message, 0, s.RetryEvery}
		if !s.NextRetry.IsZero() {
			r.Retry = s.NextRetry.Sub(now)
		}
		got = append(got, r)
	}
	want := []row{
		{"ready", Ready, "Applied revision: " + current, 0, 10 * time.Minute},
		{"behind", Reconciling, "applied " + old + ", the source is at " + current, 0, 10 * time.Minute},
		{"passing", Reconciling, "Building manifests for revision " + current + " with a timeout of 9m30s", 0, 0},
		{"turned-away", Waiting, "dependency 'flux-system/failing' is not ready", 0, flux.DependencyRequeue},
		{"failing", Failed, "kustomize build failed: broken", 9 * time.Minute, 10 * time.Minute},
		{"resting", Suspended, "suspended at " + old, 0, 0},
		{"gone", Missing, "not on the cluster", 0, 0},
		{"silent", Unknown, "no controller has reported on it yet", 0, 0},
		{"sourceless", Waiting, "its source GitRepository/flux-system/empty has no artifact", 0, 10 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
