// Package wait watches tiers until they are ready, and says why those that are not are not.
//
// Its centre is pure: [Status] reads a graph and a snapshot of the cluster and says in which state
// every tier is; [Diagnose] walks from the tiers that are not ready to the first real causes. Around
// it stand two thin pieces of I/O: [Watch], which keeps a snapshot up to date with one list and one
// watch a kind, and [Gather], which reads the few objects, pods and events behind a cause. [Run] puts
// the four together and reports what changes as events.
//
//	err := wait.Run(ctx, clients, wait.Options{Graph: graph}, func(e wait.Event) { printer.Print(e) })
//	var notReady *wait.NotReadyError
//	if errors.As(err, &notReady) {
//		for _, d := range notReady.Diagnoses { … }
//	}
//
// Nothing here writes to the cluster, prints or logs. What the package knows of Flux it takes from
// pkg/flux and from the text of Flux's conditions; where a text is not understood, the diagnosis says
// so and shows the text itself, with what looks like a credential masked.
package wait
