package repo

import (
	"io/fs"
	"path"
	"sort"
	"strings"
)

// File is a file or folder of a tree.
type File struct {
	Tree *Tree
	Name string
	// Dir says that it is a folder.
	Dir bool
}

// Compose makes a tree of files of other trees under new names, as a generated artifact is. The
// folders above a file come of themselves. The result has the Dir, Revision and remotes of base.
func Compose(base *Tree, files map[string]File) *Tree {
	t := &Tree{Revision: base.Revision, Dir: base.Dir, Prefix: base.Prefix, repo: base.repo}
	t.origins, t.base = map[string]string{}, base
	c := composed{files: map[*node]File{}}
	t.store = c
	t.root = folder("")
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		f := files[name]
		t.origins[path.Clean(name)] = f.Name
		at := t.root
		elems := split(path.Clean("/" + name))
		for i, e := range elems {
			kid := at.kids[e]
			if kid == nil {
				full := strings.Join(elems[:i+1], "/")
				kid = folder(full)
				kid.Name = e
				if i == len(elems)-1 && !f.Dir {
					kid = &node{Entry: Entry{Name: e}, path: full}
					c.files[kid] = f
				}
				at.kids[e] = kid
				if _, ok := t.origins[full]; !ok && f.Name != "." {
					// The folder that the first file in it is from.
					t.origins[full] = parent(f.Name, len(elems)-1-i)
				}
			}
			at = kid
		}
	}
	return t
}

// parent is the folder that many levels above name.
func parent(name string, levels int) string {
	for range levels {
		name = path.Dir(name)
	}
	return name
}

// folder is a node whose listing is complete.
func folder(name string) *node {
	n := &node{Entry: Entry{Name: path.Base(name), Mode: fs.ModeDir}, path: name, kids: map[string]*node{}}
	n.list.Do(func() {})
	return n
}

// composed reads the files of a composed tree where they really are.
type composed struct{ files map[*node]File }

func (c composed) children(*node) ([]*node, error) { return nil, nil }

func (c composed) content(n *node) ([]byte, error) {
	f := c.files[n]
	return f.Tree.ReadFile(f.Name)
}

// Composed reports whether the tree was made of files of others, so that a file's name in it need not be
// the name it really has.
func (t *Tree) Composed() bool { return t.base != nil }

// Origin returns the name that a file or folder really has: where a link leads, or what a composed
// tree copied. Names that do not exist are returned as they are.
func (t *Tree) Origin(name string) string {
	if o, ok := t.origins[path.Clean(name)]; ok {
		return o
	}
	if r, err := t.Resolve(name); err == nil {
		return r
	}
	return name
}

// ReadOrigin returns the content of a file by the name Origin gives.
func (t *Tree) ReadOrigin(name string) ([]byte, error) {
	if t.base != nil {
		return t.base.ReadFile(name)
	}
	return t.ReadFile(name)
}

// FromFiles makes a tree of files in memory, which lies in no git repository.
func FromFiles(files map[string][]byte) *Tree {
	t := &Tree{root: folder("")}
	c := memory{}
	t.store = c
	for name, data := range files {
		at, elems := t.root, split(path.Clean("/"+name))
		for i, e := range elems {
			kid := at.kids[e]
			if kid == nil {
				kid = folder(strings.Join(elems[:i+1], "/"))
				kid.Name = e
				if i == len(elems)-1 {
					kid = &node{Entry: Entry{Name: e}, path: kid.path}
					c[kid] = data
				}
				at.kids[e] = kid
			}
			if !kid.IsDir() {
				break
			}
			at = kid
		}
	}
	return t
}

type memory map[*node][]byte

func (m memory) children(*node) ([]*node, error) { return nil, nil }

func (m memory) content(n *node) ([]byte, error) { return m[n], nil }
