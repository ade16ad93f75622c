package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

func (a *app) suspendCommand() *cli.Command {
	return &cli.Command{
		Name:  "suspend",
		Usage: "suspend the tiers, those that nothing needs first",
		Description: `Suspends in the reverse of the order that git gives, wave by wave. What was suspended is remembered
nowhere but on the cluster: standup resume resumes every tier that git itself does not suspend.

   standup suspend --path clusters/prod --only apps-vms
   standup suspend --path clusters/prod --except cilium`,
		Flags: flags(gitFlags(), clusterFlags(), []cli.Flag{namespaceFlag(), outputFlag(eventFormats()...)}, selectionFlags(),
			[]cli.Flag{boolFlag(flagTakeOver, "take the lease from another run"), dryRunFlag()}, commonFlags()),
		Action: a.suspend,
	}
}

func (a *app) suspend(c *cli.Context) error {
	p, err := a.newPrinter(c)
	if err != nil {
		return err
	}
	defer p.Close()
	s, err := a.openToSee(c)
	if err != nil {
		return err
	}
	options := resume.Options{Graph: s.graph, Selection: selection(c), Lease: s.lease(c)}
	if c.Bool(flagDryRun) {
		return a.planSuspend(c, s, options)
	}
	live := resume.NewCluster(s.Dynamic, wait.WatchOptions{Sources: wait.SourceKinds(s.graph)})
	suspended := 0
	err = resume.SuspendTiers(c.Context, live, options, func(e resume.Event) {
		if e.Kind == resume.EventAction {
			suspended++
		}
		p.Resume(e)
	})
	p.Close()
	if err == nil && suspended == 0 {
		a.progress(c, nothingToSuspend)
	}
	return err
}

const nothingToSuspend = "nothing to do: each of the tiers is suspended already, or not on the cluster"

// planSuspend prints which tiers would be suspended, in the order in which they would be.
func (a *app) planSuspend(c *cli.Context, s *session, options resume.Options) error {
	snapshot, err := s.snapshot(c.Context)
	if err != nil {
		return err
	}
	plan, err := resume.PlanSuspend(options, snapshot)
	if err != nil {
		return err
	}
	if c.String(flagOutput) == "json" {
		return report.JSON(a.stdout, report.NewPlanDocument(plan, crds.Plan{}))
	}
	if len(plan) == 0 {
		_, err := fmt.Fprintln(a.stdout, nothingToSuspend)
		return err
	}
	return report.Plan(a.stdout, plan, crds.Plan{}, s.namespace)
}
