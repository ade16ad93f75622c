package audit_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
)

// TestSplitTierKeepsWhatConcernsItsObjects wants the tier that a finding proposes to put the objects into
// the same namespace, with the same variables.
func TestSplitTierKeepsWhatConcernsItsObjects(t *testing.T) {
	result, _ := unpack(t, filepath.Join("testdata", "same-pass-chart-target-namespace.txtar")).audit(t)
	want := `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps-config
  namespace: flux-system
spec:
  dependsOn:
    - name: apps
  interval: 10m
  retryInterval: 1m
  path: ./apps-config
  prune: true
  wait: true
  sourceRef:
    kind: GitRepository
    name: flux-system
  decryption:
    provider: sops
    secretRef:
      name: age-key
  postBuild:
    substitute:
      colour: green
  targetNamespace: streams
`
	if d := cmp.Diff(want, result.Findings[0].FixYAML); d != "" {
		t.Error(d)
	}
}

// TestSplitTierIsRetriedSoon looks at a tier without retryInterval: the one split off has one, because its
// first pass may come a moment before the kind exists.
func TestSplitTierIsRetriedSoon(t *testing.T) {
	result, _ := repository(t, map[string]string{
		"cluster/tiers.yaml": strings.Replace(tier("apps", ""), "  retryInterval: 1m\n", "", 1),
		"apps/cdi.yaml":      "apiVersion: cdi.kubevirt.io/v1beta1\nkind: CDI\nmetadata: {name: cdi}\n---\napiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: fast}\n",
	}).audit(t)
	n := slices.IndexFunc(result.Findings, func(f audit.Finding) bool { return f.Rule == "same-pass-second-order" })
	if n < 0 {
		t.Fatalf("found\n%s", lines(result.Findings))
	}
	if got := result.Findings[n].FixYAML; !strings.Contains(got, "  interval: 10m\n  retryInterval: 1m\n") {
		t.Error(got)
	}
}
