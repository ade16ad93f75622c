package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"

	git "github.com/go-git/go-git/v5"
)

// maxLinks bounds how many symbolic links one name may pass through, as Linux does.
const maxLinks = 40

// OutsideError says that a symbolic link leads out of the tree.
type OutsideError struct {
	// Name is the link, Target what it holds.
	Name, Target string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s: the symbolic link to %s leads out of the tree", e.Name, e.Target)
}

// Tree is a folder of files at one moment. The zero value is not usable; Open makes one.
type Tree struct {
	// Revision is the commit the tree was read from; "" for the work tree or a plain folder.
	Revision string
	// Dir is the folder on disk that the tree's root stands for; for a bare clone the clone itself.
	Dir string
	// Prefix is where the root lies below the top of the git repository; "" at the top.
	Prefix string

	repo  *git.Repository
	store store
	root  *node
	// origins are the real names in a composed tree, base the tree they are names of.
	origins map[string]string
	base    *Tree
}

// Entry describes one name of a Tree.
type Entry struct {
	// Name is the last element of the path.
	Name string
	// Mode holds the type bits: fs.ModeDir, fs.ModeSymlink or none for a regular file.
	Mode fs.FileMode
}

// IsDir reports whether the entry is a folder.
func (e Entry) IsDir() bool { return e.Mode.IsDir() }

// node is one name of the tree with what has been read of it so far.
type node struct {
	Entry
	path string
	id   [20]byte

	list sync.Once
	kids map[string]*node
	err  error

	load sync.Once
	data []byte
	derr error
}

// store is where a tree's bytes come from.
type store interface {
	// children lists a folder in any order.
	children(n *node) ([]*node, error)
	// content returns the bytes of a file, or the target of a link.
	content(n *node) ([]byte, error)
}

func (t *Tree) children(n *node) (map[string]*node, error) {
	n.list.Do(func() {
		kids, err := t.store.children(n)
		if err != nil {
			n.err = err
			return
		}
		n.kids = make(map[string]*node, len(kids))
		for _, k := range kids {
			if k.Name == "" || k.Name == "." || k.Name == ".." || strings.Contains(k.Name, "/") {
				// No file system has such names, but a crafted git object may.
				continue
			}
			k.path = path.Join(n.path, k.Name)
			n.kids[k.Name] = k
		}
	})
	return n.kids, n.err
}

func (t *Tree) content(n *node) ([]byte, error) {
	n.load.Do(func() { n.data, n.derr = t.store.content(n) })
	return n.data, n.derr
}

// find walks to name. Links in the middle are always followed, one at the end only if follow is set.
func (t *Tree) find(name string, follow bool) (*node, error) {
	stack := []*node{t.root}
	rest := split(name)
	for links := 0; len(rest) > 0; {
		elem := rest[0]
		rest = rest[1:]
		if elem == ".." {
			if len(stack) == 1 {
				return nil, &OutsideError{Name: name, Target: ".."}
			}
			stack = stack[:len(stack)-1]
			continue
		}
		top := stack[len(stack)-1]
		if !top.IsDir() {
			return nil, notExist(name)
		}
		kids, err := t.children(top)
		if err != nil {
			return nil, err
		}
		next, ok := kids[elem]
		if !ok {
			return nil, notExist(name)
		}
		if next.Mode&fs.ModeSymlink == 0 || (len(rest) == 0 && !follow) {
			stack = append(stack, next)
			continue
		}
		if links++; links > maxLinks {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("too many levels of symbolic links")}
		}
		target, err := t.content(next)
		if err != nil {
			return nil, err
		}
		if rest, err = t.redirect(next, string(target), len(stack)-1, rest); err != nil {
			return nil, err
		}
	}
	return stack[len(stack)-1], nil
}

// redirect puts a link's target in front of what is left of a name.
func (t *Tree) redirect(link *node, target string, depth int, rest []string) ([]string, error) {
	if path.IsAbs(target) {
		return nil, &OutsideError{Name: link.path, Target: target}
	}
	elems := split(target)
	for _, e := range elems {
		if e != ".." {
			depth++
		} else if depth--; depth < 0 {
			return nil, &OutsideError{Name: link.path, Target: target}
		}
	}
	return append(elems, rest...), nil
}

// split breaks a name into elements. It keeps "..", which means the parent of what a link led to.
func split(name string) []string {
	var out []string
	for _, e := range strings.Split(name, "/") {
		if e != "" && e != "." {
			out = append(out, e)
		}
	}
	return out
}

func notExist(name string) error {
	return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadFile returns the content of a file. The caller must not change the bytes: they are shared.
// The error satisfies errors.Is(err, fs.ErrNotExist) where there is no such file.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	n, err := t.find(name, true)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return t.content(n)
}

// ReadDir lists a folder, sorted by name. Links are listed as links.
func (t *Tree) ReadDir(name string) ([]Entry, error) {
	n, err := t.find(name, true)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	kids, err := t.children(n)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(kids))
	for _, k := range kids {
		out = append(out, k.Entry)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Stat describes a name, following links.
func (t *Tree) Stat(name string) (Entry, error) { return t.stat(name, true) }

// Lstat describes a name; a link at its end is described itself.
func (t *Tree) Lstat(name string) (Entry, error) { return t.stat(name, false) }

func (t *Tree) stat(name string, follow bool) (Entry, error) {
	n, err := t.find(name, follow)
	if err != nil {
		return Entry{}, err
	}
	return n.Entry, nil
}

// Resolve returns the name with every symbolic link replaced by what it leads to.
func (t *Tree) Resolve(name string) (string, error) {
	n, err := t.find(name, true)
	if err != nil {
		return "", err
	}
	if n.path == "" {
		return ".", nil
	}
	return n.path, nil
}
