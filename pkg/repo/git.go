package repo

import (
	"fmt"
	"sort"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Git reports whether the tree lies in a git repository.
func (t *Tree) Git() bool { return t.repo != nil }

// Head returns the id of the commit that is checked out, or a *NotARepositoryError.
func (t *Tree) Head() (string, error) {
	if t.repo == nil {
		return "", &NotARepositoryError{Dir: t.Dir}
	}
	ref, err := t.repo.Head()
	if err != nil {
		return "", fmt.Errorf("reading HEAD of %s: %w", t.Dir, err)
	}
	return ref.Hash().String(), nil
}

// HasCommit reports whether the commit exists in the local object database.
func (t *Tree) HasCommit(id string) bool {
	if t.repo == nil || !plumbing.IsHash(id) {
		return false
	}
	_, err := t.repo.CommitObject(plumbing.NewHash(id))
	return err == nil
}

// Remotes returns the URLs of the repository's remotes, sorted and without repetition; nil
// outside git.
func (t *Tree) Remotes() []string {
	if t.repo == nil {
		return nil
	}
	remotes, err := t.repo.Remotes()
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	var urls []string
	for _, r := range remotes {
		for _, u := range r.Config().URLs {
			if !seen[u] {
				seen[u] = true
				urls = append(urls, u)
			}
		}
	}
	sort.Strings(urls)
	return urls
}

// Dirty lists the files below the tree's root that differ from HEAD, untracked ones among them,
// sorted. It is nil for a clean work tree, and for a tree that was read from a commit.
func (t *Tree) Dirty() ([]string, error) {
	if t.repo == nil {
		return nil, &NotARepositoryError{Dir: t.Dir}
	}
	if t.Revision != "" {
		return nil, nil
	}
	wt, err := t.repo.Worktree()
	if err != nil {
		return nil, fmt.Errorf("opening the work tree of %s: %w", t.Dir, err)
	}
	root := osfs.New("/")
	for _, load := range []func() ([]gitignore.Pattern, error){
		func() ([]gitignore.Pattern, error) { return gitignore.LoadSystemPatterns(root) },
		func() ([]gitignore.Pattern, error) { return gitignore.LoadGlobalPatterns(root) },
	} {
		// A user without such a file, or with one that cannot be read, ignores nothing more.
		if ps, err := load(); err == nil {
			wt.Excludes = append(wt.Excludes, ps...)
		}
	}
	status, err := wt.Status()
	if err != nil {
		return nil, fmt.Errorf("comparing the work tree of %s with HEAD: %w", t.Dir, err)
	}
	var paths []string
	for name, s := range status {
		if s.Worktree == git.Unmodified && s.Staging == git.Unmodified {
			continue
		}
		if rel, ok := t.below(name); ok {
			paths = append(paths, rel)
		}
	}
	sort.Strings(paths)
	return paths, nil
}
