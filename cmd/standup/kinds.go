package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/crds/charts"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

const (
	flagCharts    = "charts"
	flagCatalogue = "catalogue"
)

// kindFlags say what else is known of where kinds come from.
func kindFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag(flagCharts, "fetch the charts of HelmReleases, over the network, to see which kinds they bring"),
		sliceFlag(flagCatalogue, "`FILE` that extends the catalogue of operators and charts"),
	}
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

// renderCharts renders the charts that lie in the repository, and with --charts the others too.
func (a *app) renderCharts(c *cli.Context, tree *repo.Tree, graph *tiers.Graph) (*charts.Result, error) {
	if !c.Bool(flagCharts) {
		return charts.Render(c.Context, charts.Options{Graph: graph, Tree: tree, Offline: true})
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
