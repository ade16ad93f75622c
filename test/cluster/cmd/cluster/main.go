// Command cluster keeps a real control plane running until Ctrl-C, or for as
// long as the command after its flags runs, and cleans up after itself.
//
//	go run ./test/cluster/cmd/cluster                      # until Ctrl-C
//	go run ./test/cluster/cmd/cluster -build-only          # fill the cache
//	go run ./test/cluster/cmd/cluster -- standup status    # around one command
//
// The command gets KUBECONFIG and STANDUP_GIT_URL, the address that repositories
// can be pushed to under any name given with -push.
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
	"strings"
	"syscall"
	"time"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cluster/build"
	"github.com/standup-sh/standup/test/standin/cdi"
)

type options struct {
	buildOnly bool
	fluxOnly  bool
	keep      bool
	standIns  bool
	quiet     bool
	push      string
	sync      string
	command   []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	code, err := serve(ctx, o, stdout, stderr)
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintln(stderr, "cluster:", err)
		return 1
	}
	return code
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.buildOnly, "build-only", false, "build the binaries into the cache and end")
	flags.BoolVar(&o.fluxOnly, "flux-only", false, "leave out what pods need: kube-controller-manager, kube-scheduler, kwok")
	flags.BoolVar(&o.standIns, "standins", false, "run the stand-in cdi-operator")
	flags.BoolVar(&o.keep, "keep", false, "keep the state directory")
	flags.BoolVar(&o.quiet, "quiet", false, "print nothing but errors and the command's own output")
	flags.StringVar(&o.push, "push", "", "`name=directory` to push to the git server")
	flags.StringVar(&o.sync, "sync", "", "entry `path` in the pushed repository that Flux shall apply")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.command = flags.Args()
	if o.sync != "" && o.push == "" {
		_, _ = fmt.Fprintln(stderr, "cluster: -sync needs -push")
		return o, flag.ErrHelp
	}
	return o, nil
}

func serve(ctx context.Context, o options, stdout, stderr io.Writer) (code int, err error) {
	progress := build.Printer(stderr)
	components := build.All()
	if o.fluxOnly {
		components = cluster.Flux()
	}
	if o.buildOnly {
		_, err := build.Ensure(ctx, build.Options{Components: components, Progress: progress})
		return 0, err
	}
	say := func(format string, args ...any) {
		if !o.quiet {
			_, _ = fmt.Fprintf(stderr, format+"\n", args...)
		}
	}
	say("starting the control plane")
	begin := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Components: components, Keep: o.keep, Progress: progress})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	say("ready after %.1f s", time.Since(begin).Seconds())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.standIns {
		done := make(chan error, 1)
		go func() { done <- cdi.Run(ctx, c.RESTConfig(), cdi.Options{}, nil) }()
		defer func() {
			cancel()
			<-done
		}()
	}
	if err := fill(ctx, c, o, say); err != nil {
		return 1, err
	}
	if len(o.command) > 0 {
		return around(ctx, c, o.command, stdout, stderr)
	}
	if !o.quiet {
		_, _ = fmt.Fprintf(stdout, "export KUBECONFIG=%s\nexport STANDUP_GIT_URL=%s\n", c.Kubeconfig(), c.Git.Base())
	}
	say("state and logs are in %s; Ctrl-C ends it all", c.Dir())
	<-ctx.Done()
	return 0, nil
}

func fill(ctx context.Context, c *cluster.Cluster, o options, say func(string, ...any)) error {
	if o.push == "" {
		return nil
	}
	repo, dir, ok := strings.Cut(o.push, "=")
	if !ok {
		return fmt.Errorf("reading -push %q: want name=directory", o.push)
	}
	sha, err := c.Git.Push(ctx, repo, os.DirFS(dir), "Push "+dir)
	if err != nil {
		return err
	}
	say("pushed %s to %s (%.12s)", dir, c.Git.URL(repo), sha)
	if o.sync == "" {
		return nil
	}
	say("Flux applies %s", o.sync)
	return c.Sync(ctx, cluster.Sync{Repo: repo, Path: o.sync})
}

// around runs one command against the cluster and returns its exit code.
func around(ctx context.Context, c *cluster.Cluster, command []string, stdout, stderr io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "STANDUP_GIT_URL="+c.Git.Base())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running %s: %w", command[0], err)
	}
	return 0, nil
}
