package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// load builds the graph of a folder, with its objects.
func load(t *testing.T, dir, path string) *tiers.Graph {
	t.Helper()
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := tiers.Load(t.Context(), tree, tiers.Options{Path: path, Objects: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run audits a graph with the embedded catalogue.
func run(t *testing.T, g *tiers.Graph, o audit.Options) *audit.Result {
	t.Helper()
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	o.Providers = crds.Providers(g, catalogue, nil, nil)
	return audit.Run(g, o)
}

// lines writes findings one a line, for comparison.
func lines(list []audit.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s %s:%d: %s\n", f.Severity, f.Rule, f.Tier, f.At.File, f.At.Line, f.Message)
	}
	return b.String()
}
