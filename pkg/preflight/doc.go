// Package preflight looks at a cluster before anything is done to it: is the API there, is Flux
// there and alive, may this user do what the run needs, is the revision the expected one, which
// webhooks would refuse everything. It is a package of its own, beside pkg/wait, because its noun is
// another: wait looks at tiers over time, preflight looks at the cluster once, with clients that wait
// has no use for, and knows nothing of a graph.
//
//	report, err := preflight.Run(ctx, clients, preflight.Options{Access: needed})
//	if report.Failed() { … }
//
// Every check is a value; what cannot be told is [Unknown] and never a failure. Nothing is written:
// access reviews are questions that the API server answers and does not keep.
package preflight
