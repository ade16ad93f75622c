// Command demo shows, on a real control plane, a cold cluster that Flux alone cannot bring up and
// standup can: the home network in its wedged state. `make demo` runs it. Nothing is left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cluster/build"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/homenetwork"
	"github.com/standup-sh/standup/test/standin/cdi"
)

const entry = "prod"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	patience := flag.Duration("patience", 2*time.Minute, "how long to watch Flux alone at the most")
	flag.Parse()
	err := (&demo{out: os.Stdout, patience: *patience}).run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type demo struct {
	out      io.Writer
	patience time.Duration
	cluster  *cluster.Cluster
	clone    string
	binary   string
}

// say prints a line of the story.
func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, "\n# "+format+"\n", args...) }

func (d *demo) run(ctx context.Context) error {
	d.say("Starting a control plane: etcd, Kubernetes, Flux's controllers, a git server.")
	c, err := cluster.Start(ctx, cluster.Options{Progress: build.Printer(d.out)})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	d.cluster = c
	if err := d.buildStandup(ctx); err != nil {
		return err
	}
	operator, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _ = cdi.Run(operator, c.RESTConfig(), cdi.Options{}, nil) }()

	d.say("Pushing the home network, with the wedge in it, and pointing Flux at clusters/%s.", entry)
	repository, err := cold.HomeNetwork(ctx, c, homenetwork.Wedged, entry)
	if err != nil {
		return err
	}
	d.clone = repository.Dir
	if err := d.watchFluxAlone(ctx); err != nil {
		return err
	}
	return d.standUp(ctx)
}

// watchFluxAlone prints what Flux says until it has run into the wedge twice.
func (d *demo) watchFluxAlone(ctx context.Context) error {
	d.say("Flux alone. It will get as far as platform-config and no further, however long one waits.")
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	stuck := func(s cold.TierState) bool { return strings.Contains(s.Message, "no matches for kind") }
	err := cold.Watch(ctx, d.cluster, func(s cold.TierState) bool {
		fmt.Fprintf(d.out, "  %-20s %-5s %s\n", s.Name, s.Ready, firstLine(s.Message))
		return stuck(s)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("watching Flux alone: it did not report the missing kind within %s", d.patience)
	}
	return err
}

func (d *demo) standUp(ctx context.Context) error {
	d.say("standup, in a clone of the same repository.")
	if err := d.standup(ctx, "up"); err != nil {
		return err
	}
	d.say("Every tier, as the cluster has it now.")
	if err := d.standup(ctx, "status"); err != nil {
		return err
	}
	d.say("Once more: there is nothing left to do, and nothing is written.")
	mark, err := d.cluster.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.standup(ctx, "up"); err != nil {
		return err
	}
	entries, err := d.cluster.Audit.Since(ctx, mark)
	if err != nil {
		return err
	}
	writes := cluster.Select(cluster.Writes(entries), cluster.ByUserAgent("standup/"))
	d.say("The API server's audit log counts %d writes by standup in that second run.", len(writes))
	for _, w := range writes {
		fmt.Fprintln(d.out, " ", w)
	}
	if len(writes) > 0 {
		return errors.New("the second run wrote to the cluster")
	}
	return nil
}

// standup runs the binary the way its reader would, in the clone, and shows the command.
func (d *demo) standup(ctx context.Context, args ...string) error {
	args = append(args, "--path", "clusters/"+entry)
	fmt.Fprintf(d.out, "$ standup %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Dir = d.clone
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig())
	cmd.Stdout, cmd.Stderr = d.out, d.out
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("standup %s: %w", args[0], err)
	}
	fmt.Fprintf(d.out, "(exit 0 after %s)\n", time.Since(begin).Round(100*time.Millisecond))
	return nil
}

func (d *demo) buildStandup(ctx context.Context) error {
	d.binary = filepath.Join(d.cluster.Dir(), "standup")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", d.binary, "github.com/standup-sh/standup/cmd/standup")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building standup: %w: %s", err, out)
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
