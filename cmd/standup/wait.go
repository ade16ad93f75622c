package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/wait"
)

const flagFailFast = "fail-fast"

func (a *app) waitCommand() *cli.Command {
	return &cli.Command{
		Name:  "wait",
		Usage: "wait until every tier is Ready at its source's revision, and write nothing",
		Description: `Watches the tiers with one list and one watch a kind. Says what changes as it changes, and in the
end, if not everything is ready, the first cause of what is not.

   standup wait --path clusters/prod
   standup wait --path clusters/prod --timeout 20m --fail-fast -o json`,
		Flags: flags(gitFlags(), clusterFlags(), []cli.Flag{
			namespaceFlag(), outputFlag(eventFormats()...),
			timeoutFlag("how long to wait", "what Flux itself allows along the critical path"),
			boolFlag(flagFailFast, "stop at the first failure that only a change in git can mend"),
		}, commonFlags()),
		Action: a.wait,
	}
}

func (a *app) wait(c *cli.Context) error {
	p, err := a.newPrinter(c)
	if err != nil {
		return err
	}
	defer p.Close()
	s, err := a.openToSee(c)
	if err != nil {
		return err
	}
	var summary *wait.Summary
	err = wait.Run(c.Context, s.clients(), wait.Options{Graph: s.graph, Timeout: c.Duration(flagTimeout), FailFast: c.Bool(flagFailFast)}, func(e wait.Event) {
		if end, ok := e.(wait.Summary); ok {
			summary = &end
			return
		}
		p.Wait(e)
	})
	if summary != nil {
		if perr := p.End(summary.Statuses, summary.Causes); perr != nil {
			return perr
		}
	}
	if late, ok := errors.AsType[*wait.NotReadyError](err); ok {
		return notReady{late}
	}
	return err
}
