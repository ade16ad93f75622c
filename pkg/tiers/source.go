package tiers

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

// source is a Flux source object found in git.
type source struct {
	obj  render.Object
	tier Key
}

func isSource(group, kind string) bool {
	return group == "source.toolkit.fluxcd.io" &&
		slices.Contains([]string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}, kind)
}

func sourceID(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func (l *loader) addSource(s *state, o render.Object) {
	id := sourceID(o.GetKind(), o.GetNamespace(), o.GetName())
	if _, ok := l.sources[id]; !ok {
		l.sources[id] = &source{obj: o, tier: s.tier.Key}
	}
}

// contentOf returns the folder that holds a source's content; nil if that is not known (yet).
func (l *loader) contentOf(id string) *render.Source {
	if c, ok := l.contents[id]; ok {
		return c
	}
	if c := l.compose(id); c != nil {
		l.contents[id] = c
		return c
	}
	src := l.sources[id]
	if src == nil || src.obj.GetKind() != "GitRepository" {
		return nil
	}
	u, _, _ := unstructured.NestedString(src.obj.Object, "spec", "url")
	if !l.isThisRepo(u) {
		return nil
	}
	ignore, _, _ := unstructured.NestedString(src.obj.Object, "spec", "ignore")
	c, err := render.NewSource(l.tree, ".", ignore)
	if err != nil {
		return nil
	}
	l.contents[id] = c
	return c
}

// isThisRepo reports whether a source's URL is that of the repository being read: one of its
// remotes, or the URL of the source that the entry path itself is read from.
func (l *loader) isThisRepo(u string) bool {
	u = normalURL(u)
	if u == "" {
		return false
	}
	if src := l.sources[l.root.tier.Source]; src != nil {
		own, _, _ := unstructured.NestedString(src.obj.Object, "spec", "url")
		if normalURL(own) == u {
			return true
		}
	}
	return l.isRemote(u)
}

// isRemote reports whether a URL is that of a remote of the repository being read.
func (l *loader) isRemote(u string) bool {
	u = normalURL(u)
	return slices.ContainsFunc(l.tree.Remotes(), func(r string) bool { return normalURL(r) == u })
}

// normalURL brings the ways of writing one git URL to one: host/path, without scheme, user, port or .git.
func normalURL(raw string) string {
	raw = strings.TrimSuffix(strings.TrimSuffix(raw, "/"), ".git")
	if i := strings.Index(raw, "://"); i < 0 {
		if at := strings.Index(raw, "@"); at >= 0 {
			raw = raw[at+1:]
		}
		if host, rest, ok := strings.Cut(raw, ":"); ok {
			return strings.ToLower(host + "/" + strings.TrimPrefix(rest, "/"))
		}
		return strings.ToLower(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return strings.ToLower(u.Hostname() + u.Path)
}

// whyUnknown explains why a tier cannot be looked into.
func (l *loader) whyUnknown(id string) string {
	src := l.sources[id]
	switch {
	case id == "":
		return "it names no source"
	case src == nil:
		return "its source " + id + " is not in git"
	}
	if u, _, _ := unstructured.NestedString(src.obj.Object, "spec", "url"); u != "" {
		return "its source " + id + " is " + u
	}
	return "the content of its source " + id + " is not known"
}

// mapSources opens the folders of opts.Sources.
func (l *loader) mapSources() error {
	for id, dir := range l.opts.Sources {
		c, err := l.openDir(dir)
		if err != nil {
			return &SourceError{Source: id, Dir: dir, Err: err}
		}
		l.contents[id] = c
	}
	return nil
}

// openDir opens a folder of the tree, at the revision being read, or one elsewhere on disk.
func (l *loader) openDir(dir string) (*render.Source, error) {
	sub := path.Clean(filepath.ToSlash(dir))
	if filepath.IsAbs(dir) {
		rel, err := filepath.Rel(l.tree.Dir, dir)
		if err != nil {
			return nil, err
		}
		sub = filepath.ToSlash(rel)
	}
	if sub != ".." && !strings.HasPrefix(sub, "../") {
		return render.NewSource(l.tree, sub, "")
	}
	other, err := repo.Open(filepath.Join(l.tree.Dir, filepath.FromSlash(sub)), "")
	if err != nil {
		return nil, err
	}
	return render.NewSource(other, ".", "")
}
