package render

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/standup-sh/standup/pkg/repo"
)

// mount is where a source's root lies in the names that kustomize sees. It must not be "/", which
// the generated resource paths are cut from.
const mount = "/artifact"

// Source is the content of one Flux artifact: a folder of a tree, without what source-controller
// leaves out of the archive. It caches what it reads and may be used concurrently.
type Source struct {
	tree *repo.Tree
	dir  string

	factory   *resource.Factory
	patterns  func() (ignoreRules, error)
	files     sync.Map // folder → *kustFile
	manifests sync.Map // repository path → *manifestFile
	patches   sync.Map // text → *patchText
}

// NewSource gives the artifact of the folder dir of tree. ignore is the source's spec.ignore, in
// .gitignore syntax.
//
// Which files are left out follows source-controller's gitrepository_controller.go and
// fluxcd/pkg/artifact/storage SourceIgnoreFilter: version control files always; images, archives
// and CI files only where neither a .sourceignore file nor spec.ignore says anything.
func NewSource(tree *repo.Tree, dir, ignore string) (*Source, error) {
	dir = path.Clean(dir)
	if e, err := tree.Stat(dir); err != nil {
		return nil, err
	} else if !e.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	s := &Source{tree: tree, dir: dir, factory: newFactory()}
	s.patterns = sync.OnceValues(func() (ignoreRules, error) { return s.readPatterns(ignore) })
	return s, nil
}

// Tree returns the tree the source is a folder of.
func (s *Source) Tree() *repo.Tree { return s.tree }

// Dir returns the repository-relative folder that is the artifact's root; "." for the whole tree.
func (s *Source) Dir() string { return s.dir }

// FS returns the artifact's files as an fs.FS rooted at the artifact's root, without those that are
// left out of it. Symbolic links are listed, not followed.
func (s *Source) FS() fs.FS { return artifactFS{s} }

type artifactFS struct{ src *Source }

func (f artifactFS) Open(name string) (fs.File, error) {
	full := path.Join(f.src.dir, name)
	if !f.src.isDir(full) && !f.src.isFile(full) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f.src.tree.FS().Open(full)
}

func (f artifactFS) ReadDir(name string) ([]fs.DirEntry, error) {
	full := path.Join(f.src.dir, name)
	entries, err := fs.ReadDir(f.src.tree.FS(), full)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() && f.src.ignored(path.Join(full, e.Name()), false)
	}), err
}

// Resolve returns the repository-relative folder that a Kustomization's spec.path names: clamped
// to the source's root, as the controller does with securejoin.SecureJoin.
func (s *Source) Resolve(specPath string) string {
	return path.Join(s.dir, path.Clean("/"+strings.ReplaceAll(specPath, "\\", "/")))
}

// Exists reports whether the artifact holds a folder at the repository-relative path.
func (s *Source) Exists(dir string) bool {
	e, err := s.tree.Stat(dir)
	return err == nil && e.IsDir()
}

// ignoreRules are the patterns of what is left out of an artifact.
type ignoreRules struct {
	patterns []gitignore.Pattern
	// standard says that they are source-controller's own, which need not be tried on most names.
	standard bool
}

func (s *Source) readPatterns(ignore string) (ignoreRules, error) {
	ps, err := s.ignoreFiles(s.dir, nil)
	if err != nil {
		return ignoreRules{}, err
	}
	if ignore != "" {
		ps = append(ps, sourceignore.ReadPatterns(strings.NewReader(ignore), nil)...)
	}
	if len(ps) == 0 {
		ps = append(sourceignore.VCSPatterns(nil), sourceignore.DefaultPatterns(nil)...)
		return ignoreRules{patterns: ps, standard: true}, nil
	}
	return ignoreRules{patterns: append(sourceignore.VCSPatterns(nil), ps...)}, nil
}

// ordinary reports whether none of source-controller's own patterns can match: they name hidden
// files, images, archives, and three CI files.
func ordinary(rel string) bool {
	switch path.Ext(rel) {
	case ".yaml", ".yml", ".json":
	default:
		return false
	}
	base := path.Base(rel)
	return rel[0] != '.' && !strings.Contains(rel, "/.") && base != "appveyor.yml" && base != "cloudbuild.yaml" &&
		!strings.HasPrefix(base, "codeship-") && !strings.Contains(rel, ".jpg") && !strings.Contains(rel, ".png") &&
		!strings.Contains(rel, ".gif") && !strings.Contains(rel, ".zip") && !strings.Contains(rel, ".tar.gz") &&
		!strings.Contains(rel, ".jpeg") && !strings.Contains(rel, ".wmv") && !strings.Contains(rel, ".flv")
}

// ignoreFiles reads the .sourceignore files below dir, each scoped to its own folder.
func (s *Source) ignoreFiles(dir string, domain []string) ([]gitignore.Pattern, error) {
	entries, err := s.tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ps []gitignore.Pattern
	for _, e := range entries {
		if e.Name == sourceignore.IgnoreFile && e.Mode == 0 {
			data, err := s.tree.ReadFile(path.Join(dir, e.Name))
			if err != nil {
				return nil, err
			}
			ps = append(ps, sourceignore.ReadPatterns(bytes.NewReader(data), domain)...)
		}
	}
	for _, e := range entries {
		if e.IsDir() {
			sub := append(append([]string(nil), domain...), e.Name)
			more, err := s.ignoreFiles(path.Join(dir, e.Name), sub)
			if err != nil {
				return nil, err
			}
			ps = append(ps, more...)
		}
	}
	return ps, nil
}

// ignored reports whether the repository path is left out of the artifact.
func (s *Source) ignored(name string, dir bool) bool {
	rel, ok := s.rel(name)
	if !ok || rel == "." {
		return false
	}
	rules, err := s.patterns()
	if err != nil || (rules.standard && ordinary(rel)) {
		return false
	}
	ps := rules.patterns
	elems := strings.Split(rel, "/")
	for i := len(ps) - 1; i >= 0; i-- {
		if m := ps[i].Match(elems, dir); m != gitignore.NoMatch {
			return m == gitignore.Exclude
		}
	}
	return false
}

// rel turns a repository path into one relative to the source's root.
func (s *Source) rel(name string) (string, bool) {
	name = path.Clean(name)
	if s.dir == "." {
		return name, name != ".." && !strings.HasPrefix(name, "../")
	}
	if name == s.dir {
		return ".", true
	}
	return strings.CutPrefix(name, s.dir+"/")
}

// within reports whether the repository path lies in the artifact.
func (s *Source) within(name string) bool {
	_, ok := s.rel(name)
	return ok
}

// isFile and isDir describe a repository path as the artifact holds it.
func (s *Source) isFile(name string) bool {
	if !s.within(name) {
		return false
	}
	e, err := s.tree.Stat(name)
	return err == nil && !e.IsDir() && !s.ignored(name, false)
}

func (s *Source) isDir(name string) bool {
	if !s.within(name) {
		return false
	}
	e, err := s.tree.Stat(name)
	return err == nil && e.IsDir()
}
