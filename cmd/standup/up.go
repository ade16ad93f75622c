package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagTakeOver = "take-over"
	flagOnly     = "only"
	flagExcept   = "except"
	flagUntil    = "until"
	flagInclude  = "include-suspended-in-git"

	flagResetHelm   = "reset-helm"
	flagForceHelm   = "force-helm"
	flagTierTimeout = "tier-timeout"
)

func (a *app) upCommand() *cli.Command {
	return &cli.Command{
		Name:  "up",
		Usage: "bring the cluster up: check, free what is stuck, resume, wait",
		Description: `Brings every tier to Ready in the order of git, as fast as Flux can go. Suspended tiers are resumed
when all they need is ready; tiers that Flux has turned away are nudged at the right moment instead
of 30 seconds later; a tier that no pass could ever apply is freed first. Where nobody is known to
bring a kind, that cannot be told beforehand: once Flux has failed for it and nothing else moves that
could bring it, all of the tier whose kinds exist is applied, so that a release in it can bring it.

Safe to interrupt and to run again: everything it knows is in git and on the cluster. Where nothing
is left to do, nothing is written.

   standup up --path clusters/prod
   standup up --path clusters/prod --dry-run               what would be done, and deleted
   standup up --path clusters/prod --until platform-config
   standup up --path clusters/prod -o json`,
		Flags:  flags(resumeFlags(), kindFlags()),
		Action: func(c *cli.Context) error { return a.bringUp(c, true) },
	}
}

func (a *app) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:  "resume",
		Usage: "resume and nudge the tiers in the order of git, and wait for them",
		Description: `What up does, without freeing tiers that are stuck for want of a kind: it writes to nothing but
spec.suspend and the reconcile annotation of Flux's own objects.

   standup resume --path clusters/prod
   standup resume --path clusters/prod --only apps-vms`,
		Flags:  resumeFlags(),
		Action: func(c *cli.Context) error { return a.bringUp(c, false) },
	}
}

func resumeFlags() []cli.Flag {
	return flags(gitFlags(), clusterFlags(), []cli.Flag{
		namespaceFlag(), outputFlag(eventFormats()...),
		timeoutFlag("how long the whole run may take", "what Flux itself allows along the critical path"),
		boolFlag(flagFailFast, "stop at the first failure that only a change in git can mend"),
		boolFlag(flagInclude, "also resume what git itself suspends; the parent's next pass suspends it again"),
		boolFlag(flagResetHelm, "reset HelmReleases whose retries are exhausted, once a run"),
		boolFlag(flagForceHelm, "force an install or upgrade of HelmReleases whose retries are exhausted, once a run"),
		durationFlag(flagTierTimeout, "how long one tier may take from the moment it could start", "Flux's own timeout for it"),
		boolFlag(flagTakeOver, "take the lease from another run"),
		dryRunFlag(),
	}, selectionFlags(), commonFlags())
}

// selectionFlags leave tiers out.
func selectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: flagOnly, Usage: "only these `TIER`s", EnvVars: env(flagOnly)},
		&cli.StringSliceFlag{Name: flagExcept, Usage: "all but these `TIER`s", EnvVars: env(flagExcept)},
		&cli.StringSliceFlag{Name: flagUntil, Usage: "these `TIER`s and all that they need", EnvVars: env(flagUntil)},
	}
}

func selection(c *cli.Context) resume.Selection {
	return resume.Selection{Only: keys(c, flagOnly), Except: keys(c, flagExcept), Until: keys(c, flagUntil)}
}

// lease keeps two runs from working on one cluster.
func (s *session) lease(c *cli.Context) *resume.ClusterLease {
	return &resume.ClusterLease{Client: s.Dynamic, Namespace: s.namespace, Holder: holder(), TakeOver: c.Bool(flagTakeOver)}
}

// bringUp is `standup up` and, without freeing, `standup resume`.
func (a *app) bringUp(c *cli.Context, free bool) error {
	p, err := a.newPrinter(c)
	if err != nil {
		return err
	}
	defer p.Close()
	s, err := a.open(c, free || c.Bool(flagDryRun))
	if err != nil {
		return err
	}
	if err := s.checkRevision(c.Context); err != nil {
		return err
	}
	checks, err := a.preflight(c, s, free)
	if err != nil {
		return err
	}
	options := resume.Options{
		Rules: checks.Rules, Workers: checks.Workers,
		Graph: s.graph, FailFast: c.Bool(flagFailFast), Timeout: c.Duration(flagTimeout),
		IncludeSuspendedInGit: c.Bool(flagInclude), ResetHelm: c.Bool(flagResetHelm), ForceHelm: c.Bool(flagForceHelm), TierTimeout: c.Duration(flagTierTimeout),
		Selection: selection(c), Lease: s.lease(c),
	}
	var kinds crds.Plan
	if free {
		if kinds, err = a.freeing(c, s, &options, p); err != nil {
			return err
		}
	}
	if c.Bool(flagDryRun) {
		return a.plan(c, s, options, kinds)
	}
	if !c.Bool(flagQuiet) {
		if err := report.Unknown(a.stderr, kinds, s.namespace); err != nil {
			return err
		}
	}
	live := resume.NewCluster(s.Dynamic, resume.Watched(s.graph))
	return s.end(c.Context, p, resume.Run(c.Context, live, options, p.Resume))
}

// plan prints what a run would do.
func (a *app) plan(c *cli.Context, s *session, options resume.Options, kinds crds.Plan) error {
	snapshot, err := s.snapshot(c.Context)
	if err != nil {
		return err
	}
	plan, err := resume.Plan(c.Context, options, snapshot, time.Now())
	if err != nil {
		return err
	}
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewPlanDocument(plan, kinds))
	}
	return report.Plan(a.stdout, plan, kinds, s.namespace)
}

// end shows how a run ended and turns its error into the command's.
func (s *session) end(ctx context.Context, p printer, runErr error) error {
	late, ok := errors.AsType[*resume.NotReadyError](runErr)
	if runErr != nil && !ok {
		return runErr
	}
	// Also after Ctrl-C the reader is told what is pending: that takes a few requests.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	var snapshot flux.Snapshot
	var err error
	if ok {
		snapshot = late.Snapshot
	} else if snapshot, err = s.snapshot(ctx); err != nil {
		return err
	}
	statuses, causes, err := s.diagnose(ctx, snapshot)
	if err != nil {
		return err
	}
	s.refused.explain(causes, s.graph.Entry)
	if err := p.End(statuses, causes); err != nil {
		return err
	}
	if ok {
		return notReady{late}
	}
	return nil
}

// keys reads tiers from a flag: namespace/name, or a name in Flux's namespace.
func keys(c *cli.Context, flag string) []tiers.Key {
	var out []tiers.Key
	for _, text := range c.StringSlice(flag) {
		out = append(out, parseKey(text, c.String(flagNamespace)))
	}
	return out
}

// holder names this run in the lease.
func holder() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s@%s/%d", name, host, os.Getpid())
}
