// Package model is kustomize-controller and its API server in virtual time: an event queue, workers,
// requeues, the gap between the patch of the conditions and that of the rest of the status, staged
// applies with missing kinds, health checks that poll, parents that create children. It exists to run
// thousands of graphs and faults in seconds; the end-to-end tests hold it to the real controllers.
//
// It takes flux.Rules for what a dependency is, and its own code for everything else.
package model
