package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

var update = flag.Bool("update", false, "write what is seen to the golden files")

// golden compares got with a file of testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func fluxKey(name string) tiers.Key { return tiers.Key{Namespace: "flux-system", Name: name} }

// causes is one of everything that a diagnosis can carry.
func causes(now time.Time) []wait.Diagnosis {
	return []wait.Diagnosis{
		{
			Cause: wait.KindMissing, Tier: fluxKey("platform-config"), Object: "StorageProfile/fast",
			Summary:     "no CRD for kind StorageProfile: the group cdi.kubevirt.io is served without it",
			FluxMessage: "StorageProfile/fast dry-run failed: no matches for kind \"StorageProfile\" in version \"cdi.kubevirt.io/v1beta1\"\nNamespace/a created\nNamespace/b created\nNamespace/c created\nNamespace/d created\n",
			Since:       now.Add(-3 * time.Minute),
			Blocks: []tiers.Key{
				fluxKey("apps-wave-0"), fluxKey("apps-wave-1"), fluxKey("apps-wave-2"), fluxKey("apps-vms"), fluxKey("backup"),
				fluxKey("crafty"), {Namespace: "team-a", Name: "homepage"},
			},
			MissingKinds: []flux.MissingKind{{GVK: schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}, Object: "StorageProfile/fast"}},
			NextRetry:    now.Add(7 * time.Minute), RetryEvery: 10 * time.Minute,
			Command: "standup crds --path clusters/prod", Unread: []string{"no permission to read the events of namespace cdi"},
		},
		{
			Cause: wait.HealthCheckFailed, Tier: fluxKey("apps"), Object: "Deployment/shop/web", Summary: "Deployment/shop/web and 1 more are not healthy",
			FluxMessage: "health check failed after 1m0.2s: timeout waiting for: [Deployment/shop/web status: 'InProgress', Job/shop/seed status: 'Failed']",
			Waiting: []wait.WaitingObject{
				{
					ID: "Deployment/shop/web", Status: "InProgress", Message: "Available: 0/1",
					Pods:   []wait.PodFact{{Name: "web-1", Phase: "Pending", Waiting: []string{"app: ImagePullBackOff: Back-off pulling image", "not scheduled: 0/1 nodes are available"}}},
					Events: []string{"Failed: image not found"},
				},
				{ID: "Job/shop/seed", Status: "Failed"},
			},
			RetryEvery: time.Hour, Command: "kubectl -n shop describe deployment web",
			Unread: []string{"no permission to read the events of namespace cdi"},
		},
		{
			Cause: wait.Cycle, Tier: fluxKey("a"), Object: "Kustomization/flux-system/a", Summary: "a depends on b, b depends on a",
			Path: []tiers.Key{fluxKey("a"), fluxKey("b"), fluxKey("a")}, Blocks: []tiers.Key{fluxKey("b")},
			Hint: "take one of these edges out in git", Unread: []string{"no permission to read the events of namespace cdi"},
		},
		{
			Cause: wait.InProgress, Tier: fluxKey("cilium"), Summary: "Running health checks for revision main@sha1:2222 with a timeout of 5m0s",
			FluxMessage: "Running health checks for revision main@sha1:2222 with a timeout of 5m0s", Since: now.Add(-40 * time.Second),
			Blocks: []tiers.Key{fluxKey("platform")},
		},
	}
}

func TestDiagnoses(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, busy := range map[string]bool{"diagnoses.txt": false, "diagnoses-busy.txt": true} {
		var out bytes.Buffer
		if err := Diagnoses(&out, causes(now), DiagnosisOptions{Namespace: "flux-system", Now: now, Busy: busy}); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
	}
}

func TestDiagnosisDocument(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	if err := JSON(&out, diagnosisDocuments(causes(now))); err != nil {
		t.Fatal(err)
	}
	golden(t, "diagnoses.json", out.Bytes())
}

func TestDiagnosisLine(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	want := []string{
		"platform-config: no CRD for kind StorageProfile: the group cdi.kubevirt.io is served without it (holds up 7 more tiers)",
		"apps: Deployment/shop/web and 1 more are not healthy",
		"a: a depends on b, b depends on a (holds up 1 more tier)",
		"cilium: Running health checks for revision main@sha1:2222 with a timeout of 5m0s (holds up 1 more tier)",
	}
	var got []string
	for _, d := range causes(now) {
		got = append(got, DiagnosisLine(d, "flux-system"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
