// Package resume brings tiers up in the order of their graph, as fast as Flux can, and takes them
// down again.
//
// Its centre is pure: a [Dispatcher] reads a snapshot of the cluster and says which objects to touch
// now, and which not to touch and why. Around it stands [Run], which watches, sends the patches
// and reports what happens as events:
//
//	cluster := resume.NewCluster(client, resume.Watched(graph))
//	err := resume.Run(ctx, cluster, resume.Options{Graph: graph}, func(e resume.Event) { printer.Print(e) })
//	var notReady *resume.NotReadyError
//	if errors.As(err, &notReady) { … }
//
// What it writes: a suspended object whose dependencies are ready gets one patch that takes suspend
// off and asks for a pass. A tier that Flux turned away at its dependencies gets one request for a
// pass when all of them satisfy Flux's whole rule. One that has just been created and could go gets
// one as well: its controller would leave it alone for a moment after adding the finalizer. A tier
// that failed for a reason that may heal gets further requests with back-off. A tier that is ready at
// its source's revision gets nothing. Where nothing fails that is at most two writes a tier, and none
// in a second run.
//
// Everything it needs to know is on the cluster: killed at any point and run again, it goes on.
//
// What it does not do: it does not apply manifests. Freeing a tier whose kinds can never appear by
// themselves is the caller's, behind [Options.Stuck], [Options.Suspected] and
// [Options.Free].
package resume
