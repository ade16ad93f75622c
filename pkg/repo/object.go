package repo

import (
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// objects reads a tree out of git's object database.
type objects struct {
	// mu serialises reads: go-git's object storage shares file handles and caches.
	mu sync.Mutex
	db storer.EncodedObjectStorer
}

func (o *objects) children(n *node) ([]*node, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tree, err := object.GetTree(o.db, plumbing.Hash(n.id))
	if err != nil {
		return nil, fmt.Errorf("reading git tree %s: %w", plumbing.Hash(n.id), err)
	}
	kids := make([]*node, 0, len(tree.Entries))
	for _, e := range tree.Entries {
		kid := &node{Entry: Entry{Name: e.Name}, id: [20]byte(e.Hash)}
		switch e.Mode {
		case filemode.Dir:
			kid.Mode = fs.ModeDir
		case filemode.Symlink:
			kid.Mode = fs.ModeSymlink
		case filemode.Submodule:
			// An unpopulated submodule is an empty folder.
			kid.Mode = fs.ModeDir
			kid.list.Do(func() {})
		}
		kids = append(kids, kid)
	}
	return kids, nil
}

func (o *objects) content(n *node) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	blob, err := object.GetBlob(o.db, plumbing.Hash(n.id))
	if err != nil {
		return nil, fmt.Errorf("reading %s from git object %s: %w", n.path, plumbing.Hash(n.id), err)
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading %s from git object %s: %w", n.path, plumbing.Hash(n.id), err)
	}
	data, err := io.ReadAll(r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return data, err
}
