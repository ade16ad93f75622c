package verdicts

import (
	"context"
	"fmt"
	"os"
	"strings"

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
	sources := map[string]string{}
	for _, name := range r.Sources {
		sources[name] = "."
	}
	graph, err := tiers.Load(ctx, tree, tiers.Options{Path: Entry, Objects: true, Sources: sources})
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

// Before is what the audit takes to be on the cluster before Flux, because nothing in the repository makes
// it, as manifests: namespaces and CRDs before what needs them. It fails where that cannot be brought.
func (r *Repository) Before(result *audit.Result) ([]string, error) {
	var first, then []string
	for _, a := range result.Assumed {
		form, what, isKind := strings.Cut(a.What, " ")
		parts := strings.Split(a.What, "/")
		switch {
		case isKind && form == "kind":
			kind, group, _ := strings.Cut(what, ".")
			first = append(first, definition(CRD{group, kind}))
		case len(parts) == 2 && parts[0] == "Namespace":
			first = append(first, namespace(parts[1]))
		case len(parts) == 2 && parts[0] == "CustomResourceDefinition":
			first = append(first, r.ignored)
		case len(parts) == 3 && parts[0] == "ConfigMap":
			then = append(then, configMap(parts[2], parts[1]))
		case len(parts) == 3 && parts[0] == "Secret":
			then = append(then, secret(parts[2], parts[1]))
		case len(parts) == 3 && parts[0] == "GitRepository":
			then = append(then, source(parts[2], parts[1], r.url))
		default:
			return nil, fmt.Errorf("repository %d: the audit takes %s to be there, of which nobody knows how it comes about", r.Seed, a.What)
		}
	}
	return append(first, then...), nil
}
