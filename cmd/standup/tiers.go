package main

import (
	"context"
	"errors"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagFromCluster  = "from-cluster"
	flagHelmReleases = "helmreleases"
	flagSelect       = "select"
	flagUpstreamOf   = "upstream-of"
	flagDownstreamOf = "downstream-of"
)

func (a *app) tiersCommand() *cli.Command {
	return &cli.Command{
		Name:  "tiers",
		Usage: "print the tiers and their order, from git alone",
		Description: `Renders the entry path the way kustomize-controller would, follows every Flux Kustomization it
finds, and prints them in an order in which each comes after all that it needs. Problems in git go
to stderr, or into the JSON document, and the page of HTML has them, too; one of severity error makes
the exit code 1.

   standup tiers --path clusters/prod              waves, gates, leaves, critical path
   standup tiers --path clusters/prod -o name      one a line, for scripts
   standup tiers --ref v1.4.0 -o mermaid           a picture of another revision
   standup tiers -o html > graph.html              one to look around in, with a browser
   standup tiers --upstream-of apps-vms            what must be ready before it
   standup tiers --from-cluster                    the same of the live objects`,
		Flags: flags(gitFlags(), []cli.Flag{
			boolFlag(flagFromCluster, "read the Kustomizations of a cluster instead of git"),
			boolFlag(flagHelmReleases, "show the HelmReleases of every tier"),
			sliceFlag(flagSelect, "only the tiers that fit the `PATTERN` (*, ?, [a-z]; with a slash: namespace/name)"),
			sliceFlag(flagUpstreamOf, "only the tiers that fit and all that they need"),
			sliceFlag(flagDownstreamOf, "only the tiers that fit and all that needs them"),
		}, clusterFlags(), []cli.Flag{namespaceFlag(), outputFlag(report.GraphFormats()...)}, commonFlags()),
		Action: a.tiers,
	}
}

func (a *app) tiers(c *cli.Context) error {
	graph, err := a.graph(c)
	if err != nil {
		return err
	}
	if graph, err = selectTiers(c, graph); err != nil {
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

// graph reads the graph from git, or from the cluster if --from-cluster says so.
func (a *app) graph(c *cli.Context) (*tiers.Graph, error) {
	if c.Bool(flagFromCluster) {
		if c.String(flagPath) != "" || c.String(flagRef) != "" || c.String(flagRepo) != "" {
			return nil, &UsageError{Message: "--from-cluster reads no git: leave out --repo, --path and --ref"}
		}
		k, err := a.connect(c)
		if err != nil {
			return nil, err
		}
		a.progress(c, "cluster %s (context %s)", k.Host, k.Context)
		if err := k.ping(c.Context); err != nil {
			return nil, err
		}
		return k.graph(c.Context)
	}
	_, graph, err := loadGraph(c, false)
	return graph, err
}

// graph reads the graph from the live Kustomizations.
func (k *cluster) graph(ctx context.Context) (*tiers.Graph, error) {
	list, err := k.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	items := make([]kustomizev1.Kustomization, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &items[i]); err != nil {
			return nil, err
		}
	}
	return tiers.FromCluster(items), nil
}

// selectTiers narrows the graph to what the flags name; several flags add up.
func selectTiers(c *cli.Context, graph *tiers.Graph) (*tiers.Graph, error) {
	var keys []tiers.Key
	chosen := false
	for flag, part := range map[string]func(...tiers.Key) *tiers.Graph{
		flagSelect: graph.Select, flagUpstreamOf: graph.UpstreamOf, flagDownstreamOf: graph.DownstreamOf,
	} {
		for _, pattern := range c.StringSlice(flag) {
			chosen = true
			found, err := graph.Match(pattern)
			if err == nil && len(found) == 0 {
				err = errors.New("no tier fits")
			}
			if err != nil {
				return nil, &UsageError{
					Message: "--" + flag + " " + pattern + ": " + err.Error(),
					Hint:    "standup tiers -o name lists the tiers; one outside Flux's namespace is written namespace/name",
				}
			}
			for _, t := range part(found...).Tiers {
				keys = append(keys, t.Key)
			}
		}
	}
	if !chosen {
		return graph, nil
	}
	return graph.Select(keys...), nil
}
