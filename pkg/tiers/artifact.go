package tiers

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

// generated is an ExternalArtifact that an ArtifactGenerator in git makes.
type generated struct {
	generator *source
	sources   map[string]string // alias → source
	copies    []copyRule
}

type copyRule struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Exclude  []string `json:"exclude,omitempty"`
	Strategy string   `json:"strategy,omitempty"`
}

// artifactGenerator is the part of source-watcher's API that says what an artifact is made of.
type artifactGenerator struct {
	Sources []struct {
		Alias     string `json:"alias"`
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"sources"`
	Artifacts []struct {
		Name string     `json:"name"`
		Copy []copyRule `json:"copy"`
	} `json:"artifacts"`
}

// addGenerator takes up the artifacts of an ArtifactGenerator, each an ExternalArtifact in its
// namespace.
func (l *loader) addGenerator(s *state, o render.Object) {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	var ag artifactGenerator
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &ag); err != nil {
		l.problem(Problem{Rule: "invalid", Severity: Error, Tier: s.tier.Key, File: o.File, Line: o.Line, Message: o.ID() + ": " + oneLine(err)})
		return
	}
	src := &source{obj: o, tier: s.tier.Key}
	aliases := map[string]string{}
	for _, a := range ag.Sources {
		aliases[a.Alias] = sourceID(a.Kind, or(a.Namespace, o.GetNamespace()), a.Name)
		l.wanted.add(a.Kind, a.Name)
	}
	for _, a := range ag.Artifacts {
		id := sourceID("ExternalArtifact", o.GetNamespace(), a.Name)
		if _, ok := l.artifacts[id]; ok {
			continue
		}
		l.artifacts[id] = &generated{generator: src, sources: aliases, copies: a.Copy}
		if _, ok := l.sources[id]; !ok {
			l.sources[id] = src
		}
	}
}

// generatorSources lists the sources that an ArtifactGenerator reads.
func generatorSources(o render.Object) []string {
	list, _ := nested(o.Object, "spec")["sources"].([]any)
	var out []string
	for _, e := range list {
		m, _ := e.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		ns, _ := m["namespace"].(string)
		out = append(out, sourceID(kind, or(ns, o.GetNamespace()), name))
	}
	return out
}

// or returns the first text unless it is empty.
func or(text, standard string) string {
	if text == "" {
		return standard
	}
	return text
}

// compose builds the content of an ExternalArtifact; nil as long as one of its sources is not known.
func (l *loader) compose(id string) *render.Source {
	g := l.artifacts[id]
	if g == nil {
		return nil
	}
	files := map[string]repo.File{}
	for _, c := range g.copies {
		if c.Strategy == "Extract" {
			return nil // what an archive holds is not looked into
		}
		alias, from, _ := strings.Cut(strings.TrimPrefix(c.From, "@"), "/")
		src := l.contentOf(g.sources[alias])
		if src == nil {
			return nil
		}
		if err := copyInto(files, src, from, c); err != nil {
			o := g.generator.obj
			l.problem(Problem{Rule: "artifact", Severity: Error, Tier: g.generator.tier, File: o.File, Line: o.Line,
				Message: fmt.Sprintf("%s: copying %s to %s: %s", o.ID(), c.From, c.To, oneLine(err))})
		}
	}
	s, err := render.NewSource(repo.Compose(l.tree, files), ".", "")
	if err != nil {
		return nil
	}
	return s
}

// copyInto follows one copy rule the way source-watcher's internal/builder does, which is the way
// of cp: a folder goes under its own name, the matches of "folder/**" go without it, those of any
// other pattern keep their whole path.
func copyInto(files map[string]repo.File, src *render.Source, from string, c copyRule) error {
	to := strings.TrimPrefix(c.To, "@artifact/")
	fsys := src.FS()
	if !strings.ContainsAny(from, "*?[]") {
		from = path.Clean(from)
		info, err := fs.Stat(fsys, from)
		switch {
		case err != nil:
			return err
		case info.IsDir() || strings.HasSuffix(c.To, "/"):
			to = path.Join(to, path.Base(from))
		}
		return copyTree(files, src, from, path.Clean(to), c.Exclude)
	}
	matches, err := fs.Glob(fsys, from)
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return fmt.Errorf("no file matches")
	}
	for _, m := range matches {
		dest := m
		if dir, ok := strings.CutSuffix(from, "/**"); ok {
			dest = strings.TrimPrefix(m, dir+"/")
		}
		if err := copyTree(files, src, m, path.Join(to, dest), c.Exclude); err != nil {
			return err
		}
	}
	return nil
}

func copyTree(files map[string]repo.File, src *render.Source, from, to string, exclude []string) error {
	fsys := src.FS()
	return fs.WalkDir(fsys, from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
		if excluded(rel, d.Name(), exclude) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type()&^fs.ModeDir == 0 {
			files[path.Join(to, rel)] = repo.File{Tree: src.Tree(), Name: path.Join(src.Dir(), name), Dir: d.IsDir()}
		}
		return nil
	})
}

// excluded matches a path against patterns in which ** stands for any number of folders.
func excluded(rel, base string, patterns []string) bool {
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, "**/"); ok {
			if match, _ := path.Match(rest, base); match {
				return true
			}
			p = rest
		}
		if dir, ok := strings.CutSuffix(p, "/**"); ok && (rel == dir || strings.HasPrefix(rel, dir+"/")) {
			return true
		}
		if match, _ := path.Match(p, rel); match {
			return true
		}
	}
	return false
}
