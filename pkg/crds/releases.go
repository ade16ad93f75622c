package crds

import (
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Release is an object of a graph that installs a Helm chart: Flux's HelmRelease or k3s's HelmChart.
type Release struct {
	Object render.Object
	Tier   tiers.Key
	// Chart is the chart's name, "" when the object that names it is not in git.
	Chart string
	// Values are the release's values as far as git has them, merged as helm-controller does.
	Values map[string]any
	// Opaque says that some of the values are not in git, or only encrypted.
	Opaque bool
	// FromSecrets says that values come from Secrets, so that nothing derived from them may be shown.
	FromSecrets bool
	// SkipFolder says that the chart's crds folder is not installed.
	SkipFolder bool
	// Suspended says that nothing is installed.
	Suspended bool
}

// Releases lists the releases of a graph, in tier order. Objects that Flux skips are left out.
func Releases(graph *tiers.Graph) []Release {
	index := indexObjects(graph)
	var all []Release
	for _, t := range graph.Tiers {
		for _, o := range t.Objects {
			r, ok := releaseOf(o, index)
			if !ok || flux.Skipped(o.Unstructured, nil) {
				continue
			}
			all = append(all, Release{
				Object: o, Tier: t.Key, Chart: r.chart, Values: r.values, Opaque: r.opaque,
				FromSecrets: r.secret, SkipFolder: r.skipFolder, Suspended: r.suspended,
			})
		}
	}
	return all
}
