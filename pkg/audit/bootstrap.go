package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
)

// declaredKind is a kind, or with an empty Kind a whole group, that a bootstrap step brings.
type declaredKind struct {
	schema.GroupKind
	entry Entry
}

// LoadConfig reads the configuration at the top of a tree, with the CRDs and charts that it points
// to. A tree without one gives nil and no error. extra are more catalogue sources than the embedded
// one; the same catalogue must be used for the providers.
//
// Errors: *ConfigError, joined where there are several.
func LoadConfig(files fs.FS, catalogue *crds.Catalogue) (*Config, error) {
	data, err := fs.ReadFile(files, ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(files, otherConfigFile); err == nil {
			return nil, fmt.Errorf("reading %s: its name has to be %s", otherConfigFile, ConfigFile)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ConfigFile, err)
	}
	c, err := ParseConfig(ConfigFile, data)
	if err != nil {
		return nil, err
	}
	errs := []error{c.addPlatform(catalogue)}
	for _, e := range c.Before.CRDs {
		errs = append(errs, c.addCRDs(files, e))
	}
	for _, e := range c.Before.Helmfile {
		errs = append(errs, c.addHelmfile(files, e, catalogue))
	}
	return c, errors.Join(errs...)
}

func (c *Config) fail(e Entry, format string, args ...any) error {
	return &ConfigError{Path: c.Path, Line: e.Line, Message: fmt.Sprintf(format, args...)}
}

// addPlatform declares the kinds that the catalogue knows of the platform.
func (c *Config) addPlatform(catalogue *crds.Catalogue) error {
	e := c.Before.Platform
	if e.Value == "" {
		return nil
	}
	var names []string
	for _, p := range catalogue.Platforms {
		names = append(names, p.Name)
		if !strings.EqualFold(p.Name, e.Value) {
			continue
		}
		for _, creation := range p.Creates {
			for _, k := range creation.Kinds {
				c.declared = append(c.declared, declaredKind{schema.GroupKind{Group: creation.Group, Kind: strings.TrimSuffix(k.Kind, "*")}, e})
			}
		}
		return nil
	}
	return c.fail(e, "platform: the catalogue does not know %q, only %s", e.Value, strings.Join(names, ", "))
}

// addCRDs declares the kinds of every CRD in a file, or in the YAML files below a folder.
func (c *Config) addCRDs(files fs.FS, e Entry) error {
	found := 0
	err := fs.WalkDir(files, path.Clean(e.Value), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isYAML(name) {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		kinds, err := definitions(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, gk := range kinds {
			c.declared = append(c.declared, declaredKind{gk, e})
			found++
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.fail(e, "crds: %s does not exist", e.Value)
	case err != nil:
		return c.fail(e, "crds: %v", err)
	case found == 0:
		return c.fail(e, "crds: there is no CustomResourceDefinition in %s", e.Value)
	}
	return nil
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// definitions lists the kinds that the CRDs of a file define.
func definitions(data []byte) ([]schema.GroupKind, error) {
	var out []schema.GroupKind
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc struct {
			Kind string `yaml:"kind"`
			Spec struct {
				Group string `yaml:"group"`
				Names struct {
					Kind string `yaml:"kind"`
				} `yaml:"names"`
			} `yaml:"spec"`
		}
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var wrong *yaml.TypeError
		if errors.As(err, &wrong) {
			continue // something else than a CRD, with other fields of these names
		}
		if err != nil {
			return nil, err
		}
		if doc.Kind == "CustomResourceDefinition" && doc.Spec.Names.Kind != "" {
			out = append(out, schema.GroupKind{Group: doc.Spec.Group, Kind: doc.Spec.Names.Kind})
		}
	}
}

// addHelmfile declares the API groups of the charts that a helmfile installs, as far as the
// catalogue knows them. Only the names of the charts are read.
func (c *Config) addHelmfile(files fs.FS, e Entry, catalogue *crds.Catalogue) error {
	data, err := fs.ReadFile(files, path.Clean(e.Value))
	if errors.Is(err, fs.ErrNotExist) {
		return c.fail(e, "helmfile: %s does not exist", e.Value)
	}
	if err != nil {
		return c.fail(e, "helmfile: %v", err)
	}
	charts, _, err := helmfileCharts(data)
	if err != nil {
		return c.fail(e, "helmfile: %s: %v", e.Value, err)
	}
	if len(charts) == 0 {
		return c.fail(e, "helmfile: there is no release in %s", e.Value)
	}
	c.declared = append(c.declared, broughtBy(charts, e, catalogue)...)
	return nil
}

// broughtBy lists the kinds that come with charts of these names, as far as the catalogue knows.
func broughtBy(charts []string, e Entry, catalogue *crds.Catalogue) []declaredKind {
	named := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(charts, name) })
	}
	var out []declaredKind
	for _, known := range catalogue.Charts {
		if !named(known.Charts) {
			continue
		}
		for _, kind := range known.Brings() {
			kind.Kind = strings.TrimSuffix(kind.Kind, "*")
			out = append(out, declaredKind{kind, e})
		}
	}
	for _, operator := range catalogue.Operators {
		if operator.Startup == nil || !named(operator.Startup.Charts) {
			continue
		}
		for _, creation := range operator.Creates {
			if creation.Group != "" {
				out = append(out, declaredKind{schema.GroupKind{Group: creation.Group}, e})
			}
		}
	}
	return out
}

// Step is a file in the repository that looks like a step before Flux, and the kinds it would bring.
// Nobody has said that it is one: what it brings makes a verdict doubtful, and no more.
type Step struct {
	File  string
	kinds []declaredKind
	// releases are the names of what it installs: a HelmRelease of that name takes over later.
	releases []string
}

// FindSteps looks through a tree for helmfiles, templates among them. What is no YAML even without its
// templates, and folders whose name says that they are laid aside, are passed over.
func FindSteps(files fs.FS, catalogue *crds.Catalogue) []Step {
	var out []Step
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is no step
		}
		if d.IsDir() {
			if base := strings.TrimPrefix(d.Name(), "."); slices.Contains([]string{"git", "archive", "node_modules"}, base) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains(name, "helmfile") || !isYAML(strings.TrimSuffix(name, ".gotmpl")) {
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		charts, releases, _ := helmfileCharts(data)
		if len(releases) > 0 {
			out = append(out, Step{File: name, kinds: broughtBy(charts, Entry{Value: name}, catalogue), releases: releases})
		}
		return nil
	})
	return out
}

// brings reports whether the step would bring a kind that tiers get in one of these ways.
func (s Step) brings(gk schema.GroupKind, supplies []supply) bool {
	return slices.ContainsFunc(s.kinds, func(d declaredKind) bool { return d.covers(gk) }) ||
		slices.ContainsFunc(supplies, func(by supply) bool {
			return by.item != nil && isRelease(by.item.gk) && slices.Contains(s.releases, by.item.GetName())
		})
}

// stepBefore says that a file looks like a step before Flux which brings the kind of an object; empty if
// none does.
func (w *world) stepBefore(it *item) string {
	for _, s := range w.steps {
		if s.brings(it.gk, w.supplies[kindRef(it.ref.cluster, it.gk)]) {
			return fmt.Sprintf("%s looks like a step before Flux that brings the kind; if it is, declare it in %s under beforeFlux.helmfile", s.File, ConfigFile)
		}
	}
	return ""
}

// helmfileCharts lists the base names of the charts of a helmfile's releases, and the names of the
// releases. Templates are taken out first. A release whose chart is written with one, or inherited,
// most likely bears its name.
func helmfileCharts(data []byte) (charts, releases []string, err error) {
	data = templateLine.ReplaceAll(data, nil)
	data = template.ReplaceAll(data, []byte("_"))
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc struct {
			Releases []struct {
				Name  string `yaml:"name"`
				Chart string `yaml:"chart"`
			} `yaml:"releases"`
		}
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return charts, releases, nil
		}
		if err != nil {
			return nil, nil, err
		}
		for _, r := range doc.Releases {
			name := path.Base(strings.TrimSuffix(r.Chart, "/"))
			if r.Chart == "" || strings.Contains(name, "_") {
				name = r.Name
			}
			if name != "" {
				charts = append(charts, name)
			}
			if r.Name != "" {
				releases = append(releases, r.Name)
			}
		}
	}
}

// What a helmfile's templates look like: a line of their own, and a part of a line.
var (
	templateLine = regexp.MustCompile(`(?m)^\s*\{\{.*\}\}\s*$`)
	template     = regexp.MustCompile(`\{\{.*?\}\}`)
)

// covers reports whether a declared group covers another one: equal, or "*.x" and below x.
func (d declaredKind) covers(gk schema.GroupKind) bool {
	if d.Kind != "" && d.Kind != gk.Kind {
		return false
	}
	if suffix, ok := strings.CutPrefix(d.Group, "*"); ok {
		return strings.HasSuffix(gk.Group, suffix)
	}
	return d.Group == gk.Group
}
