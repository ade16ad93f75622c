package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/wait"
)

func (a *app) statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "print the state of every tier, and the first cause of what is not ready",
		Description: `Reads the tiers from git and their state from the cluster, once, and writes nothing. For whatever is
not ready it names the first cause, what it holds up, and the command that helps.

   standup status --path clusters/prod
   standup status --path clusters/prod -o json | jq '.causes[].summary'`,
		Flags:  flags(gitFlags(), clusterFlags(), []cli.Flag{namespaceFlag(), outputFlag("text", "json", "yaml")}, commonFlags()),
		Action: a.status,
	}
}

func (a *app) status(c *cli.Context) error {
	s, err := a.openToSee(c)
	if err != nil {
		return err
	}
	snapshot, err := s.snapshot(c.Context)
	if err != nil {
		return err
	}
	statuses, causes, err := s.diagnose(c.Context, snapshot)
	if err != nil {
		return err
	}
	switch format := c.String(flagOutput); format {
	case "text":
		p := &textPrinter{lines: report.Lines{Namespace: s.namespace}, stdout: a.stdout, stderr: a.stderr}
		err = p.End(statuses, causes)
	case "json":
		err = report.JSON(a.stdout, report.NewStatusDocument(statuses, causes))
	case "yaml":
		err = report.YAML(a.stdout, report.NewStatusDocument(statuses, causes))
	default:
		err = &report.FormatError{Format: format, Known: []string{"text", "json", "yaml"}}
	}
	if err != nil {
		return err
	}
	for _, status := range statuses {
		if !status.Settled() {
			return notReady{errSilent}
		}
	}
	return nil
}

// snapshot reads the tiers' live objects once.
func (s *session) snapshot(ctx context.Context) (flux.Snapshot, error) {
	return wait.Look(ctx, s.Dynamic, wait.WatchOptions{Sources: wait.SourceKinds(s.graph)})
}

// diagnose says where every tier stands and, after a closer look at the cluster, why.
func (s *session) diagnose(ctx context.Context, snapshot flux.Snapshot) ([]wait.TierStatus, []wait.Diagnosis, error) {
	now := time.Now()
	causes, err := wait.Explain(ctx, s.clients(), s.graph, snapshot, now)
	if err != nil {
		return nil, nil, err
	}
	return wait.Status(s.graph, snapshot, now), causes, nil
}
