// Command coldstart measures cold starts on a real control plane: Flux alone, a script that
// resumes one tier, waits and goes on, and standup. Every figure comes from a fresh cluster of its
// own, all from one run of this command. `make bench-coldstart` runs it.
//
//	go run ./test/coldstart -scenarios chain,home -ways alone,script,standup
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	names := flag.String("scenarios", strings.Join(scenarioNames(), ","), "which `scenarios` to run")
	ways := flag.String("ways", "alone,script,standup", "which `ways` to bring each up")
	limit := flag.Duration("limit", 15*time.Minute, "how long one cold start may take")
	keep := flag.String("keep", "", "empty `folder` for the events of standup and the logs of the clusters")
	flag.Parse()
	b := &bench{limit: *limit, log: os.Stderr, keep: *keep}
	defer b.close()
	if err := b.build(ctx); err != nil {
		return err
	}
	var rows []row
	for _, s := range scenarios() {
		if !slices.Contains(strings.Split(*names, ","), s.name) {
			continue
		}
		r, err := b.scenario(ctx, s, strings.Split(*ways, ","))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, r)
	}
	printTable(os.Stdout, rows)
	return nil
}
