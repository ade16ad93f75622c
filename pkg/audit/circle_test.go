package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tier writes a Kustomization of a test; extra is what its spec has beside the usual.
func tier(name, extra string) string {
	return fmt.Sprintf(`---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %[1]s
  namespace: flux-system
spec:
  interval: 10m
  retryInterval: 1m
  path: ./%[1]s
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
%[2]s`, name, extra)
}

// repository writes the files of a test, each tier's folder with an object at least.
func repository(t *testing.T, files map[string]string) fixture {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range files {
		for line := range strings.SplitSeq(content, "\n") {
			if folder, ok := strings.CutPrefix(line, "  path: ./"); ok {
				write(folder+"/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+folder+", namespace: default}\n")
			}
		}
	}
	for name, content := range files {
		write(name, content)
	}
	return fixture{name: t.Name(), dir: dir, path: "cluster"}
}

// TestCircleNamesTheEdgeToRemove looks at circles that a health check closes: what is to be removed
// has to be there.
func TestCircleNamesTheEdgeToRemove(t *testing.T) {
	check := "  healthChecks:\n    - {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, namespace: flux-system, name: second}\n"
	for _, test := range []struct {
		name               string
		files              map[string]string
		rule, message, fix string
	}{
		{"a child", map[string]string{
			"cluster/tiers.yaml": tier("first", "  wait: true\n"), "first/tiers.yaml": tier("second", "  dependsOn: [{name: first}]\n"),
		}, "child-depends-on-waiting-parent", "flux-system/second depends on flux-system/first, the parent that waits for it",
			"remove flux-system/first from spec.dependsOn of flux-system/second: a child exists only after its parent has applied it; or set wait: false on flux-system/first"},
		{"a child of a child", map[string]string{
			"cluster/tiers.yaml": tier("first", "  wait: true\n"), "first/tiers.yaml": tier("second", "  wait: true\n"),
			"second/tiers.yaml": tier("third", "  dependsOn: [{name: first}]\n"),
		}, "child-depends-on-waiting-parent", "flux-system/third depends on flux-system/first, which waits for it by way of flux-system/second",
			"remove flux-system/first from spec.dependsOn of flux-system/third: a child exists only after its parent has applied it; or set wait: false on flux-system/first"},
		{"what a child depends on", map[string]string{
			"cluster/tiers.yaml": tier("first", "  wait: true\n") + tier("third", "  dependsOn: [{name: first}]\n"),
			"first/tiers.yaml":   tier("second", "  dependsOn: [{name: third}]\n"),
		}, "cycle", "flux-system/third depends on flux-system/first, which waits for it by way of flux-system/second",
			"remove flux-system/first from spec.dependsOn of flux-system/third; or set wait: false on flux-system/first"},
		{"no child at all", map[string]string{
			"cluster/tiers.yaml": tier("first", check) + tier("second", "  dependsOn: [{name: first}]\n"),
		}, "cycle", "flux-system/second depends on flux-system/first, which waits for it",
			"remove flux-system/first from spec.dependsOn of flux-system/second; or remove flux-system/second from healthChecks of flux-system/first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, _ := repository(t, test.files).audit(t)
			if len(result.Findings) != 1 {
				t.Fatalf("found\n%s", lines(result.Findings))
			}
			f := result.Findings[0]
			if f.Rule != test.rule || f.Message != test.message || f.Fix != test.fix {
				t.Errorf("%s: %s\nfix: %s\nwant %s: %s\nfix: %s", f.Rule, f.Message, f.Fix, test.rule, test.message, test.fix)
			}
		})
	}
}
