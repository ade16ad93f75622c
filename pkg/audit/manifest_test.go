package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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
