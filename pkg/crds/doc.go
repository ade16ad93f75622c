// Package crds says where every kind that the tiers use comes from, and frees a tier that is stuck
// because a kind is missing.
//
// Flux dry-runs every object of a tier before it applies any. A tier that holds both a custom
// resource and what makes its kind appear (a HelmRelease whose chart has the CRD, an operator's own
// object after which the operator registers more CRDs) therefore never gets anywhere on a cold
// cluster. [Providers] names what brings each kind, on what evidence; [NewPlan] says which kinds a
// cluster lacks and what can be done about each, without asking anyone; [Free] makes the next pass
// of one tier succeed; [Run] does that for all tiers.
//
//	catalogue, err := crds.DefaultCatalogue()
//	served, err := crds.Discover(discoveryClient)
//	plan := crds.NewPlan(graph, served, catalogue, crds.PlanOptions{Snapshot: snapshot})
//	if plan.Stuck(key) {
//		outcome, err := crds.Free(ctx, clients, key, crds.Options{Graph: graph, Catalogue: catalogue}, emit)
//	}
//
// What cannot be read from git, from the cluster or from a rendered chart comes from a catalogue of
// known operators and charts ([LoadCatalogue]). It is graded, and a kind that it does not know is
// unknown, never an error.
package crds
