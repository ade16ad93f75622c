package main

import (
	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/report"
)

func (a *app) runbookCommand() *cli.Command {
	return &cli.Command{
		Name:  "runbook",
		Usage: "print a recovery runbook for this repository, as Markdown",
		Description: `Writes down what to do when the cluster has to come up from nothing: the commands, the order that git
gives, what gates and what may lag, and how long Flux's own timeouts allow it to take. Keep it beside
the repository and print it anew when the graph changes.

   standup runbook --path clusters/prod > docs/recovery.md`,
		Flags:  flags(gitFlags(), []cli.Flag{namespaceFlag()}, commonFlags()),
		Action: a.runbook,
	}
}

func (a *app) runbook(c *cli.Context) error {
	_, graph, err := loadGraph(c, false)
	if err != nil {
		return err
	}
	return report.Runbook(a.stdout, graph, c.String(flagNamespace))
}
