package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
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
   standup crds --path clusters/prod`,
		Flags: flags(gitFlags(), clusterFlags(), []cli.Flag{
			namespaceFlag(), outputFlag("text", "json"), dryRunFlag(),
			timeoutFlag("how long a kind may take to appear, and a pass to end (default: 5m)"),
		}, commonFlags()),
		Action: a.crds,
	}
}

func (a *app) crds(c *cli.Context) error {
	format := c.String(flagOutput)
	if format != "text" && format != "json" {
		return &report.FormatError{Format: format, Known: []string{"text", "json"}}
	}
	s, err := a.open(c, true)
	if err != nil {
		return err
	}
	if err := s.checkRevision(c.Context); err != nil {
		return err
	}
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		return err
	}
	dryRun := c.Bool(flagDryRun)
	events := func(crds.Event) {}
	if format == "text" {
		events = a.newTextPrinter(c).CRDs
	}
	result, runErr := crds.Run(c.Context, s.crdsClients(), crds.Options{
		Graph: s.graph, Catalogue: catalogue, Timeout: c.Duration(flagTimeout), DryRun: dryRun,
	}, events)
	if format == "json" {
		err = report.JSON(a.stdout, report.NewCRDsDocument(result, dryRun))
	} else if runErr == nil || len(result.Outcomes)+len(result.NotYet) > 0 {
		err = report.CRDs(a.stdout, result, dryRun, s.namespace)
	}
	return errors.Join(crdsError(runErr), err)
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
		is[*crds.OrphanError], is[*crds.MissingKindError], is[*crds.RefusedBundleError], is[*crds.EncryptedError], is[*crds.UnknownProviderError], is[*crds.PassError],
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
