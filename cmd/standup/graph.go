package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

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

// entryPath is the name in the tree of a folder given as an entry path. It is one from the top of the
// repository; where there is no such folder, it may be one as the shell completes it, from the current
// folder or from /. A lone dot is the current folder to all who type it, unless --repo names another.
func entryPath(c *cli.Context, tree *repo.Tree, given string) string {
	here := path.Clean(given) == "." && given != "" && !c.IsSet(flagRepo)
	if e, err := tree.Stat(path.Clean(strings.TrimPrefix(filepath.ToSlash(given), "/"))); given == "" || err == nil && e.IsDir() && !here {
		return given
	}
	full, err := filepath.Abs(given)
	if err != nil {
		return given
	}
	rel, err := filepath.Rel(realPath(tree.Dir), realPath(full))
	if err != nil || !filepath.IsLocal(rel) {
		return given
	}
	return filepath.ToSlash(rel)
}

// realPath is a path without links, as far as it exists.
func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// loadOptions are what the flags say about reading the graph.
func loadOptions(c *cli.Context, tree *repo.Tree) (tiers.Options, error) {
	options := tiers.Options{
		Path: entryPath(c, tree, c.String(flagPath)), Root: c.String(flagRoot), AllowRemoteBases: c.Bool(flagRemoteBases),
		Sources: map[string]string{}, Vars: map[string]string{},
	}
	if file := c.String(flagVarsFile); file != "" {
		vars, err := readVars(file)
		if err != nil {
			return options, err
		}
		options.Vars = vars
	}
	for flag, into := range map[string]map[string]string{flagVar: options.Vars, flagSource: options.Sources} {
		for _, pair := range c.StringSlice(flag) {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return options, &UsageError{Message: fmt.Sprintf("--%s %q is not of the form %s", flag, pair, pairForm(flag))}
			}
			into[key] = value
		}
	}
	return options, nil
}

// loadGraph reads the graph that the flags name, from git alone.
func loadGraph(c *cli.Context, objects bool) (*repo.Tree, *tiers.Graph, error) {
	tree, err := openRepo(c)
	if err != nil {
		return nil, nil, err
	}
	options, err := loadOptions(c, tree)
	if err != nil {
		return nil, nil, err
	}
	options.Objects, options.HelmReleases = objects, c.Bool(flagHelmReleases)
	graph, err := tiers.Load(c.Context, tree, options)
	return tree, graph, err
}

func pairForm(flag string) string {
	if flag == flagSource {
		return "Kind/namespace/name=DIR"
	}
	return "NAME=VALUE"
}

// readVars reads a YAML or JSON mapping of variables, or a dotenv-like file of NAME=VALUE lines.
func readVars(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading --%s: %w", flagVarsFile, err)
	}
	var values map[string]any
	if yaml.Unmarshal(data, &values) == nil {
		vars := make(map[string]string, len(values))
		for name, value := range values {
			switch value.(type) {
			case map[string]any, []any:
				return nil, fmt.Errorf("reading %s: %s is not a plain value", file, name)
			}
			vars[name] = fmt.Sprint(value)
		}
		return vars, nil
	}
	vars := map[string]string{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("reading %s:%d: neither a YAML mapping nor NAME=VALUE", file, number)
		}
		vars[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return vars, nil
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
