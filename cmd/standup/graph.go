package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// openRepo opens what --repo and --ref name: by default the top of the git work tree around the
// current folder, as it stands on disk.
func openRepo(c *cli.Context) (*repo.Tree, error) {
	dir := c.String(flagRepo)
	if dir == "" {
		top, err := repo.Toplevel(".")
		if err != nil {
			return nil, err
		}
		dir = top
	}
	return repo.Open(dir, c.String(flagRef))
}

// loadOptions are what the flags say about reading the graph.
func loadOptions(c *cli.Context) tiers.Options {
	return tiers.Options{Path: c.String(flagPath)}
}

// hasErrors reports whether a problem of severity error is among them.
func hasErrors(problems []tiers.Problem) bool {
	for _, p := range problems {
		if p.Severity == tiers.Error {
			return true
		}
	}
	return false
}

// parseKey reads a tier as people write it: namespace/name, or a name in the default namespace.
func parseKey(text, namespace string) tiers.Key {
	if ns, name, ok := strings.Cut(text, "/"); ok {
		return tiers.Key{Namespace: ns, Name: name}
	}
	return tiers.Key{Namespace: namespace, Name: text}
}
