// Command standup brings a Flux-managed Kubernetes cluster up from cold, in the order its own git
// says; proves beforehand that it can come up; and frees it when it is stuck.
//
// This package parses flags, calls the libraries under pkg, prints what they return and decides
// the exit code. It is the only place that knows of urfave/cli, zap, os.Exit and os.Stdout.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// gcPercent lets the heap grow to four times what is in use between two garbage collections: most
// commands read a repository, print, and end before there is much to collect.
const gcPercent = 300

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(os.Args))
}

// run is main without os.Exit, so that testscript can run it in the test binary.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends the work in an orderly way; from then on the default handlers stand
	// again, so that a second one kills.
	context.AfterFunc(ctx, stop)
	return newApp(os.Stdout, os.Stderr).run(ctx, args)
}
