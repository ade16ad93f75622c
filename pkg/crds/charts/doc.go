// Package charts finds out which kinds the Helm charts of releases define, by fetching and rendering
// them as Flux would: HelmRepositories over HTTP and OCI, OCIRepositories, charts in git; with the
// release's values; the crds folder and templates alike.
//
//	result, err := charts.Render(ctx, charts.Options{Graph: graph, Tree: tree})
//	providers := crds.Providers(graph, catalogue, nil, result.Rendered)
//
// Charts of a fixed version are kept in a cache on disk and not fetched again. A chart that cannot
// be had or rendered is a problem of its release, not an error of the call: what the catalogue says
// about it still counts.
//
// Limits: post-renderers are not run, dependencies of a chart in git count only as far as they are
// vendored, and credentials are those of the user's container configuration: Secrets are not read.
package charts
