package diff_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/homenetwork"
)

func homeNetwork(t *testing.T, state homenetwork.State, path string) *tiers.Graph {
	t.Helper()
	dir := t.TempDir()
	if err := homenetwork.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	return load(t, dir, path)
}

// TestHomeNetworkRepair is the change that the project was born from: both profiles leave
// platform-config for a tier that depends on it.
func TestHomeNetworkRepair(t *testing.T) {
	before, after := homeNetwork(t, homenetwork.Wedged, "clusters/prod"), homeNetwork(t, homenetwork.Repaired, "clusters/prod")
	d := diff.Compare(before, after)
	want := []string{
		"added: flux-system/platform-config-cdi",
		"edge: + flux-system/apps-vms flux-system/platform-config-cdi dependsOn",
		"edge: + flux-system/platform-config-cdi flux-system/platform-config dependsOn",
		"move: StorageProfile/longhorn-iso flux-system/platform-config flux-system/platform-config-cdi deleted and re-created warning",
		"move: StorageProfile/longhorn-vm flux-system/platform-config flux-system/platform-config-cdi deleted and re-created warning",
		"needs: flux-system/platform-config",
	}
	if delta := cmp.Diff(want, facts(d)); delta != "" {
		t.Errorf("(-want +got):\n%s", delta)
	}
	config := tiers.Key{Namespace: "flux-system", Name: "platform-config"}
	steps := d.Fallback(config, before)
	if len(steps) != 3 || steps[0].Edits[0] != "clusters/base/platform-config.yaml: spec.prune: false" ||
		len(steps[1].Commands) != 2 || steps[2].Edits[0] != "clusters/base/platform-config.yaml: spec.prune: true" {
		t.Errorf("fallback: %+v", steps)
	}
	if v := diff.Check(d.Preconditions, nil); len(v) != 1 || v[0].Tier != config || v[0].State != "it does not exist there" {
		t.Errorf("on an empty cluster: %+v", v)
	}
	ready := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "platform-config"}}
	ready.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded"}}
	if v := diff.Check(d.Preconditions, map[flux.Key]*kustomizev1.Kustomization{config: ready}); len(v) != 0 {
		t.Errorf("where platform-config is Ready: %+v", v)
	}
}

// TestHomeNetworkRepairWithoutPrune is the first commit of the way out: nothing is deleted any more.
func TestHomeNetworkRepairWithoutPrune(t *testing.T) {
	before, after := homeNetwork(t, homenetwork.Wedged, "clusters/prod"), homeNetwork(t, homenetwork.Repaired, "clusters/prod")
	for _, tier := range after.Tiers {
		if tier.Name == "platform-config" {
			tier.Kustomization.Spec.Prune = false
		}
	}
	for _, m := range diff.Compare(before, after).Moves {
		if m.Outcome != diff.Adopted {
			t.Errorf("%s is %s: %s", m.ID, m.Outcome, m.Why)
		}
	}
}

func TestHomeNetworkEntriesHaveOneGraph(t *testing.T) {
	dev, prod := homeNetwork(t, homenetwork.Repaired, "clusters/dev"), homeNetwork(t, homenetwork.Repaired, "clusters/prod")
	if d := diff.CompareEntries(dev, prod); !d.SameGraph() {
		t.Errorf("dev and prod differ: %v", facts(d))
	}
	prod.Tiers[3].Kustomization.Spec.Wait = !prod.Tiers[3].Kustomization.Spec.Wait
	if d := diff.CompareEntries(dev, prod); d.SameGraph() {
		t.Error("a changed wait is not seen")
	}
}
