package verdicts

import (
	"context"
	"fmt"
	"os"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Audit writes the repository into an empty folder and says what git alone tells of it: the result,
// and for every tier whether it comes up.
func (r *Repository) Audit(ctx context.Context, dir string) (*audit.Result, map[string]bool, error) {
	if err := os.CopyFS(dir, r.Files); err != nil {
		return nil, nil, fmt.Errorf("writing repository %d: %w", r.Seed, err)
	}
	tree, err := repo.Open(dir, "")
	if err != nil {
		return nil, nil, err
	}
	graph, err := tiers.Load(ctx, tree, tiers.Options{Path: Entry, Objects: true})
	if err != nil {
		return nil, nil, fmt.Errorf("repository %d: %w", r.Seed, err)
	}
	catalogue, err := crds.LoadCatalogue(crds.Source{Name: r.Namespace, Data: r.Catalogue})
	if err != nil {
		return nil, nil, fmt.Errorf("repository %d: %w", r.Seed, err)
	}
	// The charts come from a repository that git does not show.
	config, err := audit.ParseConfig(audit.ConfigFile, []byte("beforeFlux:\n  objects: [HelmRepository/"+r.Namespace+"/elsewhere]\n"))
	if err != nil {
		return nil, nil, fmt.Errorf("repository %d: %w", r.Seed, err)
	}
	result := audit.Run(graph, audit.Options{Providers: crds.Providers(graph, catalogue, nil, nil), Config: config})
	up := map[string]bool{}
	for _, t := range graph.Tiers {
		up[t.Name] = true
	}
	for _, k := range result.Stuck {
		up[k.Name] = false
	}
	return result, up, nil
}
