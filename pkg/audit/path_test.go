package audit_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProviderDownstreamShowsTheWayBack wants every edge on the way from the provider's tier to the tier
// that needs it, with the place to look at.
func TestProviderDownstreamShowsTheWayBack(t *testing.T) {
	for name, want := range map[string][]string{
		"provider-downstream": {
			"operators/prometheus.yaml:10 HelmRelease/default/prometheus",
			"cluster/tiers.yaml:16 flux-system/operators needs flux-system/settings",
		},
		"provider-downstream-roundabout": {
			"operators/prometheus.yaml:10 HelmRelease/default/prometheus",
			"cluster/tiers.yaml:16 flux-system/operators needs flux-system/web",
			"web/web.yaml:1 flux-system/web needs flux-system/settings: Deployment/default/web needs ConfigMap/default/web",
		},
	} {
		result, _ := unpack(t, filepath.Join("testdata", name+".txtar")).audit(t)
		var got []string
		for _, at := range result.Findings[0].Related {
			got = append(got, fmt.Sprintf("%s:%d %s", at.File, at.Line, at.Note))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestEveryUnknownVariableIsNamed wants one run to tell of all that has to be mended.
func TestEveryUnknownVariableIsNamed(t *testing.T) {
	result, _ := unpack(t, filepath.Join("testdata", "unknown-variable-twice.txtar")).audit(t)
	f := result.Findings[0]
	want := "flux-system/apps cannot be built: ${shape} in ConfigMap/default/app: nothing that Kustomization/flux-system/apps substitutes from defines it, and it has no default; and 1 more of the kind"
	if f.Message != want {
		t.Errorf("message:\n%s", f.Message)
	}
	if len(f.Related) != 1 || f.Related[0].Line != 9 {
		t.Errorf("related: %+v", f.Related)
	}
}
