package repo

import (
	"bytes"
	"path"
	"strings"
	"sync"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// ignored knows which files of a work tree git leaves alone: those that .gitignore files name and
// that are not tracked all the same. They are in no commit, so Flux never sees them.
type ignored struct {
	repo *git.Repository
	// prefix is where the tree's root lies in the repository.
	prefix string
	// read returns a file of the work tree; nil if there is none.
	read func(name string) []byte

	once    sync.Once
	tracked map[string]bool

	mu       sync.Mutex
	patterns map[string][]gitignore.Pattern
}

// drop takes the ignored entries out of a folder's listing.
func (g *ignored) drop(dir string, kids []*node) []*node {
	full := path.Join(g.prefix, dir)
	ps := g.patternsOf(full)
	if len(ps) == 0 {
		return kids
	}
	m := gitignore.NewMatcher(ps)
	kept := kids[:0]
	for _, k := range kids {
		name := path.Join(full, k.Name)
		// Hardly a name is not tracked, and patterns are dear.
		if g.isTracked(name) || !m.Match(strings.Split(name, "/"), k.IsDir()) {
			kept = append(kept, k)
		}
	}
	return kept
}

// patternsOf collects the .gitignore files from the top of the repository down to a folder.
func (g *ignored) patternsOf(dir string) []gitignore.Pattern {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.collect(dir)
}

func (g *ignored) collect(dir string) []gitignore.Pattern {
	if ps, ok := g.patterns[dir]; ok {
		return ps
	}
	var ps []gitignore.Pattern
	var domain []string
	if dir != "" {
		parent := path.Dir(dir)
		if parent == "." {
			parent = ""
		}
		ps = append(ps, g.collect(parent)...)
		domain = strings.Split(dir, "/")
	}
	for _, line := range bytes.Split(g.read(path.Join(dir, ".gitignore")), []byte("\n")) {
		text := strings.TrimSuffix(string(line), "\r")
		if strings.TrimSpace(text) != "" && text[0] != '#' {
			ps = append(ps, gitignore.ParsePattern(text, domain))
		}
	}
	g.patterns[dir] = ps
	return ps
}

// isTracked reports whether the index holds a file, or a file below a folder.
func (g *ignored) isTracked(name string) bool {
	g.once.Do(func() {
		g.tracked = map[string]bool{}
		index, err := g.repo.Storer.Index()
		if err != nil {
			return
		}
		for _, e := range index.Entries {
			for p := e.Name; p != "." && !g.tracked[p]; p = path.Dir(p) {
				g.tracked[p] = true
			}
		}
	})
	return g.tracked[name]
}
