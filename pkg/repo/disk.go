package repo

import (
	"io/fs"
	"os"
	"path/filepath"
)

// disk reads a folder of the operating system. It is asked only for names whose links have been
// resolved by Tree, so it cannot be led out of its root.
type disk struct {
	dir string
	// ignored is nil outside git.
	ignored *ignored
}

func (d disk) full(n *node) string { return filepath.Join(d.dir, filepath.FromSlash(n.path)) }

func (d disk) children(n *node) ([]*node, error) {
	entries, err := os.ReadDir(d.full(n))
	if err != nil {
		return nil, err
	}
	kids := make([]*node, 0, len(entries))
	for _, e := range entries {
		mode := e.Type() & (fs.ModeDir | fs.ModeSymlink)
		if e.Name() == ".git" || (mode == 0 && !e.Type().IsRegular()) {
			continue
		}
		kids = append(kids, &node{Entry: Entry{Name: e.Name(), Mode: mode}})
	}
	if d.ignored != nil {
		kids = d.ignored.drop(n.path, kids)
	}
	return kids, nil
}

func (d disk) content(n *node) ([]byte, error) {
	if n.Mode&fs.ModeSymlink != 0 {
		target, err := os.Readlink(d.full(n))
		return []byte(filepath.ToSlash(target)), err
	}
	return os.ReadFile(d.full(n))
}
