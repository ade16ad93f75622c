package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/test/homenetwork"
)

func homeNetwork(t *testing.T, state homenetwork.State) string {
	t.Helper()
	dir := t.TempDir()
	if err := homenetwork.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestHomeNetworkWedged(t *testing.T) {
	dir := homeNetwork(t, homenetwork.Wedged)
	for _, path := range []string{"clusters/dev", "clusters/prod"} {
		result := run(t, load(t, dir, path), audit.Options{})
		want := []string{"error same-pass-second-order flux-system/platform-config StorageProfile/longhorn-vm blocks 9"}
		if d := cmp.Diff(want, shorts(result.Findings)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", path, d)
		}
		f := result.Findings[0]
		if f.BlockedDirectly != 7 {
			t.Errorf("%s: %d tiers blocked directly, want 7", path, f.BlockedDirectly)
		}
		if f.At.File != "platform-config/storageprofiles.yaml" || !relates(f, "platform-config/cdi.yaml") {
			t.Errorf("%s: files %v and %v", path, f.At, f.Related)
		}
		if !strings.Contains(f.Message, "StorageProfile") || !strings.Contains(f.Message, "CDI/cdi") {
			t.Errorf("%s: %s", path, f.Message)
		}
		if !strings.Contains(f.Fix, "tier of their own that depends on flux-system/platform-config, which waits") {
			t.Errorf("%s: %s", path, f.Fix)
		}
	}
}

func relates(f audit.Finding, file string) bool {
	for _, at := range f.Related {
		if at.File == file {
			return true
		}
	}
	return false
}

func TestHomeNetworkRepaired(t *testing.T) {
	dir := homeNetwork(t, homenetwork.Repaired)
	for _, path := range []string{"clusters/dev", "clusters/prod"} {
		result := run(t, load(t, dir, path), audit.Options{})
		if len(result.Findings) > 0 || result.Ready != 14 {
			t.Errorf("%s: %d of %d ready\n%s", path, result.Ready, result.Tiers, lines(result.Findings))
		}
	}
}

// TestHomeNetworkFix applies the manifest that the finding proposes: the wedged state comes up.
func TestHomeNetworkFix(t *testing.T) {
	dir := homeNetwork(t, homenetwork.Wedged)
	f := run(t, load(t, dir, "clusters/prod"), audit.Options{}).Findings[0]
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	profiles, err := os.ReadFile(filepath.Join(dir, f.At.File))
	if err != nil {
		t.Fatal(err)
	}
	write("platform-config-cdi/storageprofiles.yaml", string(profiles))
	write("clusters/base/platform-config-cdi.yaml", f.FixYAML)
	edit(t, filepath.Join(dir, "platform-config/kustomization.yaml"), "  - storageprofiles.yaml\n", "")
	edit(t, filepath.Join(dir, "clusters/base/kustomization.yaml"), "  - platform-config.yaml\n", "  - platform-config.yaml\n  - platform-config-cdi.yaml\n")
	result := run(t, load(t, dir, "clusters/prod"), audit.Options{})
	// The move has made the edge of apps-vms load-bearing, which is the next thing to be found.
	want := []string{"warning unordered-use flux-system/apps-vms DataVolume/vms/workshop blocks 0"}
	if d := cmp.Diff(want, shorts(result.Findings)); d != "" || result.Ready != 14 {
		t.Errorf("%d ready (-want +got):\n%s", result.Ready, d)
	}
}

func TestHomeNetworkWithoutLoadBearingEdge(t *testing.T) {
	dir := homeNetwork(t, homenetwork.Repaired)
	edit(t, filepath.Join(dir, "clusters/base/apps-vms.yaml"), "    - name: platform-config-cdi\n", "")
	result := run(t, load(t, dir, "clusters/prod"), audit.Options{})
	want := []string{"warning unordered-use flux-system/apps-vms DataVolume/vms/workshop blocks 0"}
	if d := cmp.Diff(want, shorts(result.Findings)); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if f := result.Findings[0]; !strings.Contains(f.Message, "StorageProfile/longhorn-vm") || !strings.Contains(f.Fix, "add platform-config-cdi to spec.dependsOn of flux-system/apps-vms") {
		t.Errorf("%s\n%s", f.Message, f.Fix)
	}
}

// edit replaces text in a file, which must hold it.
func edit(t *testing.T, name, old, new string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s holds no %q", name, old)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHomeNetworkKinds is the table of the kinds that platform-config and its profiles use: of all of
// them only StorageProfile is second-order.
func TestHomeNetworkKinds(t *testing.T) {
	result := run(t, load(t, homeNetwork(t, homenetwork.Wedged), "clusters/prod"), audit.Options{})
	got := map[string]string{}
	for _, k := range result.Kinds {
		for _, tier := range k.UsedBy {
			if tier.Name == "platform-config" && k.Provider != "builtin" {
				got[k.Kind] = k.Provider + " " + k.Trigger
			}
		}
	}
	want := map[string]string{
		"CDI": "git ", "KubeVirt": "git ", "KeycloakRealmImport": "git ", "Cluster": "git ", "VolumeSnapshotClass": "git ",
		"ClusterIssuer": "git ", "PrometheusRule": "git ", "ServiceMonitor": "git ", "CiliumL2AnnouncementPolicy": "git ",
		"StorageProfile": "runtime CDI/cdi",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
