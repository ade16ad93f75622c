package main

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagFrom    = "from"
	flagAgainst = "against-path"
)

func (a *app) diffCommand() *cli.Command {
	return &cli.Command{
		Name:  "diff",
		Usage: "say what a change to git would move, delete or reorder",
		Description: `Compares the graphs of two revisions: tiers, settings, edges and order; every object that changes
its tier, whether it is adopted or deleted and re-created, and what is lost in between; what must be
Ready on the target before the merge; and the commits by which nothing is deleted. With --context the
preconditions are checked on that cluster. With --against-path two entry paths of one revision are
compared instead: two clusters that ought to have the same graph.

   standup diff --from main                                          before a merge
   standup diff --from main --context prod                           and on the cluster
   standup diff --path clusters/dev --against-path clusters/prod     one graph everywhere

Exit code 1: data or other tiers' objects would be lost, a precondition does not hold, or two entry
paths differ.`,
		Flags: flags(gitFlags(), []cli.Flag{
			stringFlag(flagFrom, "HEAD", "git `REVISION` to start from; --ref names the other"),
			stringFlag(flagAgainst, "", "compare --path with this entry `PATH` instead of two revisions"),
			namespaceFlag(), outputFlag(report.DiffFormats()...),
		}, clusterFlags(), commonFlags()),
		Action: a.diff,
	}
}

func (a *app) diff(c *cli.Context) error {
	if c.IsSet(flagAgainst) {
		return a.diffPaths(c)
	}
	tree, err := openRepo(c)
	if err != nil {
		return err
	}
	old, err := tree.At(c.String(flagFrom))
	if err != nil {
		return fmt.Errorf("--%s: %w", flagFrom, err)
	}
	load, err := loadOptions(c, tree)
	if err != nil {
		return err
	}
	load.Objects = true
	after, err := tiers.Load(c.Context, tree, load)
	if err != nil {
		return err
	}
	before, err := tiers.Load(c.Context, old, load)
	if err != nil {
		return fmt.Errorf("at %s: %w", c.String(flagFrom), err)
	}
	d := diff.Compare(before, after)
	options := report.DiffOptions{Format: c.String(flagOutput), Namespace: c.String(flagNamespace), Before: before}
	if c.IsSet(flagContext) || c.IsSet(flagKubeconfig) {
		if options.Violations, err = a.checkPreconditions(c, d); err != nil {
			return err
		}
		options.Checked = true
	}
	if err := report.Diff(a.stdout, d, options); err != nil {
		return err
	}
	if len(options.Violations) > 0 || loses(d) {
		return notReady{errSilent}
	}
	return nil
}

// diffPaths compares two entry paths of one revision.
func (a *app) diffPaths(c *cli.Context) error {
	if c.String(flagPath) == "" {
		return &UsageError{Message: "--against-path needs --path"}
	}
	tree, err := openRepo(c)
	if err != nil {
		return err
	}
	load, err := loadOptions(c, tree)
	if err != nil {
		return err
	}
	load.Objects = true
	first, err := tiers.Load(c.Context, tree, load)
	if err != nil {
		return err
	}
	load.Path = entryPath(c, tree, c.String(flagAgainst))
	second, err := tiers.Load(c.Context, tree, load)
	if err != nil {
		return err
	}
	d := diff.CompareEntries(first, second)
	if err := report.Diff(a.stdout, d, report.DiffOptions{Format: c.String(flagOutput), Namespace: c.String(flagNamespace)}); err != nil {
		return err
	}
	if !d.SameGraph() {
		return notReady{errSilent}
	}
	return nil
}

// loses reports whether merging loses data or what other tiers own.
func loses(d *diff.Diff) bool {
	return slices.ContainsFunc(d.Moves, func(m diff.Move) bool { return m.Severity == tiers.Error }) ||
		slices.ContainsFunc(d.Losses, func(l diff.Loss) bool { return l.Severity == tiers.Error })
}

// checkPreconditions asks the cluster for the tiers that must be Ready.
func (a *app) checkPreconditions(c *cli.Context, d *diff.Diff) ([]diff.Violation, error) {
	k, err := a.connect(c)
	if err != nil {
		return nil, err
	}
	a.progress(c, "cluster %s (context %s)", k.Host, k.Context)
	if err := k.ping(c.Context); err != nil {
		return nil, err
	}
	live, err := liveTiers(c.Context, k)
	if err != nil {
		return nil, err
	}
	return diff.Check(d.Preconditions, live), nil
}

// liveTiers lists the Kustomizations of a cluster.
func liveTiers(ctx context.Context, k *cluster) (map[flux.Key]*kustomizev1.Kustomization, error) {
	list, err := k.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing Kustomizations: %w", err)
	}
	out := make(map[flux.Key]*kustomizev1.Kustomization, len(list.Items))
	for _, item := range list.Items {
		ks := &kustomizev1.Kustomization{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, ks); err != nil {
			return nil, fmt.Errorf("reading Kustomization/%s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		out[flux.Key{Namespace: ks.Namespace, Name: ks.Name}] = ks
	}
	return out, nil
}
