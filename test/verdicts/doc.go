// Package verdicts makes small random Flux repositories, so that what standup concludes from git can
// be compared with what Flux's own controllers do with them. Kinds come from CRDs in git, from
// charts, or from operators that register them after a trigger; edges, waits, suspensions, namespaces
// and variables are thrown in at random, sane or not, and so are sources, health checks, expressions and
// objects that Flux is told to leave alone.
//
//	r := verdicts.Generate(seed, url)
//	result, err := r.Audit(ctx, dir)   // what git says
//
// On a cluster, a Standin takes the part of helm-controller and of the operators. It knows nothing of
// pkg/audit: it reads the API, and does what the real ones would. What the audit takes to be there
// before Flux, because nothing in git makes it, Before brings.
package verdicts
