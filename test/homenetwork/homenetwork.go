// Package homenetwork hands out the GitOps repository of testdata/home-network
// in its two states, repaired and wedged, and the throw-away keys that belong to
// it. It only reads files that are embedded in the binary.
//
//	dir := t.TempDir()
//	err := homenetwork.Write(dir, homenetwork.Wedged)
//	err = homenetwork.SetSourceURL(dir, "http://127.0.0.1:3000/home-network")
package homenetwork

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/standup-sh/standup/testdata"
)

// State says which version of the repository is meant.
type State string

const (
	// Repaired has the StorageProfiles in a tier of their own and comes up cold.
	Repaired State = "repaired"
	// Wedged has them beside the CDI object, in platform-config, and does not.
	Wedged State = "wedged"
)

// SourceURL is the address that the repository's own GitRepository names. No
// server answers there: see SetSourceURL.
const SourceURL = "https://git.home.example/home-network"

// AgeSecretKey is the key under which the Secret flux-system/sops-age holds what
// AgeKey returns. kustomize-controller takes keys that end in .agekey for age's.
const AgeSecretKey = "age.agekey"

// FS returns the repository's files in the given state, with paths relative to
// its root. Wedged is made of the repaired tree and what home-network-wedged
// replaces, adds and removes.
func FS(state State) (fs.FS, error) {
	tree := fstest.MapFS{}
	if err := layOver(tree, "home-network"); err != nil {
		return nil, err
	}
	switch state {
	case Repaired:
		return tree, nil
	case Wedged:
		if err := remove(tree, "home-network-wedged/removed.txt"); err != nil {
			return nil, err
		}
		return tree, layOver(tree, "home-network-wedged/overlay")
	default:
		return nil, fmt.Errorf("reading the home network: no state %q", state)
	}
}

// layOver adds the files below root to tree, replacing those of the same path.
func layOver(tree fstest.MapFS, root string) error {
	return fs.WalkDir(testdata.HomeNetwork, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := testdata.HomeNetwork.ReadFile(name)
		if err != nil {
			return err
		}
		tree[strings.TrimPrefix(name, root+"/")] = &fstest.MapFile{Data: data, Mode: 0o644}
		return nil
	})
}

// remove takes the paths that list names, one a line, out of tree. A path that
// is not there is an error, so that the list cannot rot.
func remove(tree fstest.MapFS, list string) error {
	data, err := testdata.HomeNetwork.ReadFile(list)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		gone := strings.TrimSpace(line)
		found := false
		for name := range tree {
			if name == gone || strings.HasPrefix(name, gone+"/") {
				delete(tree, name)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("reading %s: %s is not in the repaired tree", list, gone)
		}
	}
	return nil
}

// Write writes the repository in the given state into the folder dir, making it
// if need be, and deletes what only the other state has. So writing one state
// over the other in a git work tree leaves the change that a commit of the repair
// would record. Files that belong to neither state are left alone.
func Write(dir string, state State) error {
	tree, err := FS(state)
	if err != nil {
		return err
	}
	if err := deleteOthers(dir, tree); err != nil {
		return err
	}
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

// deleteOthers deletes from dir the files of any state that tree does not have.
func deleteOthers(dir string, tree fs.FS) error {
	for _, state := range []State{Repaired, Wedged} {
		other, err := FS(state)
		if err != nil {
			return err
		}
		err = fs.WalkDir(other, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if _, err := fs.Stat(tree, name); err == nil {
				return nil
			}
			err = os.Remove(filepath.Join(dir, filepath.FromSlash(name)))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetSourceURL makes the GitRepository of every cluster in dir name url instead
// of SourceURL. A cluster applies its own sync object, so the address in git has
// to be the one it can reach.
func SetSourceURL(dir, url string) error {
	syncs, err := filepath.Glob(filepath.Join(dir, "clusters", "*", "flux-system", "gotk-sync.yaml"))
	if err != nil {
		return err
	}
	if len(syncs) == 0 {
		return fmt.Errorf("setting the source URL: %s holds no clusters/*/flux-system/gotk-sync.yaml", dir)
	}
	for _, name := range syncs {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Contains(data, []byte(SourceURL)) {
			return fmt.Errorf("setting the source URL: %s does not name %s", name, SourceURL)
		}
		if err := os.WriteFile(name, bytes.ReplaceAll(data, []byte(SourceURL), []byte(url)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// AgeKey returns the throw-away age key of a cluster, dev or prod, as the Secret
// flux-system/sops-age holds it under AgeSecretKey.
func AgeKey(cluster string) ([]byte, error) {
	return testdata.HomeNetwork.ReadFile(path.Join("home-network-keys", cluster+".agekey"))
}
