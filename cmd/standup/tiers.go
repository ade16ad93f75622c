package main

import (
	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

func (a *app) tiersCommand() *cli.Command {
	return &cli.Command{
		Name:  "tiers",
		Usage: "print the tiers and their order, from git alone",
		Description: `Renders the entry path the way kustomize-controller would, follows every Flux Kustomization it
finds, and prints them in an order in which each comes after all that it needs. Problems in git go
to stderr, or into the JSON document; one of severity error makes the exit code 1.

   standup tiers --path clusters/prod              waves, gates, leaves, critical path
   standup tiers --path clusters/prod -o name      one a line, for scripts
   standup tiers --ref v1.4.0 -o mermaid           a picture of another revision`,
		Flags:  flags(gitFlags(), []cli.Flag{namespaceFlag(), outputFlag(report.GraphFormats()...)}, commonFlags()),
		Action: a.tiers,
	}
}

func (a *app) tiers(c *cli.Context) error {
	tree, err := openRepo(c)
	if err != nil {
		return err
	}
	graph, err := tiers.Load(c.Context, tree, loadOptions(c))
	if err != nil {
		return err
	}
	format := c.String(flagOutput)
	if err := report.Graph(a.stdout, graph, report.GraphOptions{Format: format, Namespace: c.String(flagNamespace)}); err != nil {
		return err
	}
	if format != "json" && format != "yaml" {
		if err := report.Problems(a.stderr, graph.Problems); err != nil {
			return err
		}
	}
	if hasErrors(graph.Problems) {
		return notReady{errSilent}
	}
	return nil
}
