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
