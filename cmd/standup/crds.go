package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagList   = "list"
	flagCold   = "cold"
	flagBundle = "bundle"
	flagDir    = "dir"
)

func (a *app) crdsCommand() *cli.Command {
	return &cli.Command{
		Name:  "crds",
		Usage: "free the tiers that are stuck for want of a kind",
		Description: `Compares the kinds that the tiers need with what the cluster serves. A tier that no pass can ever
apply, because what brings the kind is in the same pass, is freed: only the object that triggers
the missing CRD is applied, as Flux would apply it, and the tier is asked for its next pass.

Safe to run at any time, on any cluster: where nothing is stuck nothing is written.

   standup crds --path clusters/prod --dry-run        what would be written
   standup crds --path clusters/prod
   standup crds --path clusters/prod --list           where every kind comes from; needs no cluster
   standup crds --path clusters/prod --cold           every CRD of git first, on a cluster without Flux
   standup crds export --context healthy --dir crds   CRDs that nobody applied, as files for git
   standup crds --path clusters/prod --bundle crds    create those of them that are missing`,
		Flags: flags(gitFlags(), clusterFlags(), []cli.Flag{
			boolFlag(flagList, "print where every kind comes from, from git alone"),
			boolFlag(flagCold, "create every CRD of git, and with --charts of charts, before Flux comes to it"),
			stringFlag(flagBundle, "", "`DIR` of CRDs to create where they are missing; what exists is never touched"),
			namespaceFlag(), outputFlag("text", "json"), dryRunFlag(),
			boolFlag(flagTakeOver, "take the lease from another run"),
			timeoutFlag("how long a kind may take to appear, and a pass to end", "5m"),
		}, kindFlags(), commonFlags()),
		Action:      a.crds,
		Subcommands: []*cli.Command{a.exportCommand()},
	}
}

func (a *app) crds(c *cli.Context) error {
	catalogue, err := loadCatalogue(c)
	if err != nil {
		return err
	}
	if c.Bool(flagList) {
		return a.listKinds(c, catalogue)
	}
	options := crds.Options{Catalogue: catalogue, Timeout: c.Duration(flagTimeout), DryRun: c.Bool(flagDryRun), Cold: c.Bool(flagCold)}
	if dir := c.String(flagBundle); dir != "" {
		if options.Bundle, err = crds.LoadBundle(os.DirFS(dir)); err != nil {
			return fmt.Errorf("--%s %s: %w", flagBundle, dir, err)
		}
	}
	s, err := a.open(c, true)
	if err != nil {
		return err
	}
	if err := s.checkRevisionIfAny(c.Context, options); err != nil {
		return err
	}
	if err := a.warnUnbuilt(c, s.graph); err != nil {
		return err
	}
	rendered, err := a.renderCharts(c, s.tree, s.graph)
	if err != nil {
		return err
	}
	options.Rendered = rendered.Rendered
	if c.Bool(flagCharts) {
		options.Charts = rendered.Definitions()
	}
	options.Graph = s.graph
	return a.free(c, s, options)
}

// free runs pkg/crds under the lease, which is taken only if there is something to write.
func (a *app) free(c *cli.Context, s *session, options crds.Options) error {
	events := func(crds.Event) {}
	if c.String(flagOutput) == "text" {
		events = a.newTextPrinter(c).CRDs
	}
	guard := s.newGuard(c)
	options.Begin = guard.begin
	result, runErr := crds.Run(guard.ctx, s.crdsClients(), options, events)
	lost, releaseErr := guard.end()
	if releaseErr != nil {
		a.progress(c, "warning: %v", releaseErr)
	}
	if lost != nil {
		runErr = lost
	}
	return errors.Join(crdsError(runErr), a.printCRDs(c, result, runErr))
}

// checkRevisionIfAny is checkRevision, except that what goes ahead of Flux needs no Flux.
func (s *session) checkRevisionIfAny(ctx context.Context, options crds.Options) error {
	err := s.checkRevision(ctx)
	if is[*NotInstalledError](err) && (options.Cold || options.Bundle != nil) {
		return nil
	}
	return err
}

// warnUnbuilt tells what could not be read in git: what it holds is not known, and not created.
func (a *app) warnUnbuilt(c *cli.Context, graph *tiers.Graph) error {
	if c.Bool(flagQuiet) {
		return nil
	}
	return report.Problems(a.stderr, slices.DeleteFunc(slices.Clone(graph.Problems), func(p tiers.Problem) bool { return p.Severity != tiers.Error }))
}

func (a *app) printCRDs(c *cli.Context, result crds.Result, runErr error) error {
	dryRun := c.Bool(flagDryRun)
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewCRDsDocument(result, dryRun))
	}
	return report.CRDs(a.stdout, result, report.CRDsOptions{DryRun: dryRun, Failed: runErr != nil, Namespace: c.String(flagNamespace)})
}

// listKinds prints where every kind comes from. It asks no cluster.
func (a *app) listKinds(c *cli.Context, catalogue *crds.Catalogue) error {
	tree, graph, err := loadGraph(c, true)
	if err != nil {
		return err
	}
	rendered, err := a.renderCharts(c, tree, graph)
	if err != nil {
		return err
	}
	providers := crds.Providers(graph, catalogue, nil, rendered.Rendered)
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewProvidersDocument(providers))
	}
	return report.Providers(a.stdout, providers, c.String(flagNamespace))
}

func (a *app) exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write the CRDs that nobody applied on a healthy cluster into files for git",
		Description: `Learns from a healthy cluster which CRDs its controllers created at run time: those that neither
Flux, nor Helm, nor a person applied. Keep the files for a day on which their operator cannot run.

   standup crds export --context healthy --dir crds`,
		Flags: flags(clusterFlags(), []cli.Flag{
			stringFlag(flagDir, "crds", "`DIR` to write to; made if it is not there"), dryRunFlag(),
		}, commonFlags()),
		Action: a.export,
	}
}

func (a *app) export(c *cli.Context) error {
	k, err := a.connect(c)
	if err != nil {
		return err
	}
	a.progress(c, "cluster %s (context %s)", k.Host, k.Context)
	if err := k.ping(c.Context); err != nil {
		return err
	}
	exported, err := crds.Export(c.Context, k.APIExtensions)
	if err != nil {
		return err
	}
	dir := c.String(flagDir)
	if c.Bool(flagDryRun) {
		for _, e := range exported {
			fmt.Fprintln(a.stdout, filepath.Join(dir, e.File))
		}
		return nil
	}
	written, err := crds.WriteBundle(dir, exported)
	for _, file := range written {
		fmt.Fprintln(a.stdout, file)
	}
	a.progress(c, "%d CRDs that nobody applied, %d files written to %s", len(exported), len(written), dir)
	return err
}

// crdsError tells answers about the cluster from failures to get one.
func crdsError(err error) error {
	if err == nil {
		return nil
	}
	if stillStuck(err) {
		return notReady{err}
	}
	return err
}

// stillStuck reports whether an error says that tiers are not free, rather than that nothing could
// be found out or done.
func stillStuck(err error) bool {
	for _, is := range []func(error) bool{
		is[*crds.NotYetError], is[*crds.NotServedError], is[*crds.OperatorNotRunningError], is[*crds.TriggerFailedError],
		is[*crds.OrphanError], is[*crds.MissingKindError], is[*crds.RefusedBundleError], is[*crds.EncryptedError],
		is[*crds.UnknownProviderError], is[*crds.PassError],
	} {
		if is(err) {
			return true
		}
	}
	return false
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
