// Package audit proves from git alone that a cluster can come up from cold, and says what keeps it
// from doing so. It replays the rules by which Flux applies the tiers of a graph over an empty
// cluster, to a fixed point: what is left can never come up, and has a first cause.
//
//	graph, err := tiers.Load(ctx, src, tiers.Options{Objects: true})
//	result := audit.Run(graph, audit.Options{Catalogue: catalogue})
//	for _, f := range result.Findings { … }
//
// What the package takes for granted: an operator whose objects are applied does its work, a
// workload becomes healthy, a source can be fetched, and what git does not show (another
// repository, a chart's own templates) is in order. A kind, a namespace, a ConfigMap or a Secret
// that nothing in git makes is taken to be there before Flux: it is listed, and never an error.
package audit
