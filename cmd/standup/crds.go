package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/crds/charts"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagList      = "list"
	flagCold      = "cold"
	flagBundle    = "bundle"
	flagCharts    = "charts"
	flagCatalogue = "catalogue"
	flagDir       = "dir"
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
   standup crds --path clusters/prod --cold           every CRD of git first, on a bare cluster
   standup crds export --context healthy --dir crds   CRDs that nobody applied, as files for git
   standup crds --path clusters/prod --bundle crds    create those of them that are missing`,
		Flags: flags(gitFlags(), clusterFlags(), []cli.Flag{
			boolFlag(flagList, "print where every kind comes from, from git alone"),
			boolFlag(flagCold, "create every CRD of git, and with --charts of charts, before Flux comes to it"),
			stringFlag(flagBundle, "", "`DIR` of CRDs to create where they are missing; what exists is never touched"),
			boolFlag(flagCharts, "fetch the charts of HelmReleases, over the network, to see which kinds they bring"),
			sliceFlag(flagCatalogue, "`FILE` that extends the catalogue of operators and charts"),
			namespaceFlag(), outputFlag("text", "json"), dryRunFlag(),
			timeoutFlag("how long a kind may take to appear, and a pass to end", "5m"),
		}, commonFlags()),
		Action:      a.crds,
		Subcommands: []*cli.Command{a.exportCommand()},
	}
}

func (a *app) crds(c *cli.Context) error {
	if format := c.String(flagOutput); format != "text" && format != "json" {
		return &report.FormatError{Format: format, Known: []string{"text", "json"}}
	}
	catalogue, err := loadCatalogue(c)
	if err != nil {
		return err
	}
	if c.Bool(flagList) {
		return a.listKinds(c, catalogue)
	}
	s, err := a.open(c, true)
	if err != nil {
		return err
	}
	if err := s.checkRevision(c.Context); err != nil {
		return err
	}
	options := crds.Options{Graph: s.graph, Catalogue: catalogue, Timeout: c.Duration(flagTimeout), DryRun: c.Bool(flagDryRun)}
	rendered, err := a.renderCharts(c, s.tree, s.graph)
	if err != nil {
		return err
	}
	if rendered != nil {
		options.Rendered = rendered.Rendered
	}
	if dir := c.String(flagBundle); dir != "" {
		if options.Bundle, err = crds.LoadBundle(os.DirFS(dir)); err != nil {
			return err
		}
	}
	events := func(crds.Event) {}
	if c.String(flagOutput) == "text" {
		events = a.newTextPrinter(c).CRDs
	}
	result, runErr := s.free(c, options, rendered, events)
	return errors.Join(crdsError(runErr), a.printCRDs(c, result, runErr))
}

// free creates ahead what --cold and --bundle ask for, and then frees what is stuck.
func (s *session) free(c *cli.Context, options crds.Options, rendered *charts.Result, events func(crds.Event)) (crds.Result, error) {
	var ahead []crds.Outcome
	if c.Bool(flagCold) {
		var definitions []crds.ChartDefinition
		if rendered != nil {
			definitions = rendered.Definitions()
		}
		outcome, err := crds.ApplyCold(c.Context, s.crdsClients(), definitions, options, events)
		ahead = append(ahead, outcome)
		if err != nil {
			return crds.Result{Outcomes: ahead}, err
		}
	}
	if options.Bundle != nil {
		outcome, err := crds.ApplyBundle(c.Context, s.crdsClients(), options.Bundle, options, events)
		ahead = append(ahead, outcome)
		if err != nil {
			return crds.Result{Outcomes: ahead}, err
		}
	}
	if c.Bool(flagCold) {
		// On a bare cluster nothing else can be done yet; up frees what is stuck when its turn comes.
		return crds.Result{Outcomes: ahead}, nil
	}
	result, err := crds.Run(c.Context, s.crdsClients(), options, events)
	result.Outcomes = append(ahead, result.Outcomes...)
	return result, err
}

func (a *app) printCRDs(c *cli.Context, result crds.Result, runErr error) error {
	dryRun := c.Bool(flagDryRun)
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewCRDsDocument(result, dryRun))
	}
	if runErr != nil && len(result.Outcomes)+len(result.NotYet) == 0 {
		return nil
	}
	return report.CRDs(a.stdout, result, dryRun, c.String(flagNamespace))
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
	var kinds *crds.Rendered
	if rendered != nil {
		kinds = rendered.Rendered
	}
	providers := crds.Providers(graph, catalogue, nil, kinds)
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewProvidersDocument(providers))
	}
	return report.Providers(a.stdout, providers, c.String(flagNamespace))
}

// loadCatalogue is the embedded catalogue and what --catalogue adds to it.
func loadCatalogue(c *cli.Context) (*crds.Catalogue, error) {
	var extra []crds.Source
	for _, file := range c.StringSlice(flagCatalogue) {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading --%s: %w", flagCatalogue, err)
		}
		extra = append(extra, crds.Source{Name: file, Data: data})
	}
	return crds.LoadCatalogue(extra...)
}

// renderCharts fetches and renders the charts if --charts allows it; nil otherwise.
func (a *app) renderCharts(c *cli.Context, tree *repo.Tree, graph *tiers.Graph) (*charts.Result, error) {
	if !c.Bool(flagCharts) {
		return nil, nil //nolint:nilnil // not asked for
	}
	cache, err := charts.DefaultCache()
	if err != nil {
		return nil, err
	}
	a.progress(c, "fetching and rendering charts")
	result, err := charts.Render(c.Context, charts.Options{Graph: graph, Tree: tree, Cache: cache, Client: http.DefaultClient})
	if err != nil {
		return nil, err
	}
	for _, r := range result.Releases {
		if r.Err != nil {
			a.progress(c, "warning: %s: %v", r.Object.ID(), r.Err)
		}
	}
	return result, nil
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
