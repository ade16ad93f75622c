package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// NotARepositoryError says that a folder lies in no git repository where one was needed.
type NotARepositoryError struct{ Dir string }

func (e *NotARepositoryError) Error() string {
	return fmt.Sprintf("%s: not a git repository, nor below one", e.Dir)
}

// UnknownRevisionError says that a revision does not exist in the repository.
type UnknownRevisionError struct {
	Dir, Ref string
	Err      error
}

func (e *UnknownRevisionError) Error() string {
	return fmt.Sprintf("%s: revision %q does not exist in this repository", e.Dir, e.Ref)
}

// Unwrap returns git's own error.
func (e *UnknownRevisionError) Unwrap() error { return e.Err }

// Open reads the folder dir as a Tree rooted there, which may lie below the top of its
// repository. With an empty ref that is what the disk holds now, and dir may be a plain folder
// without git; with a ref (a branch, tag, full or abbreviated commit id, HEAD~2 and the like) it is
// that revision of the same folder, and dir may be a bare clone or a linked work tree.
//
// Errors: *NotARepositoryError, *UnknownRevisionError, or one that satisfies
// errors.Is(err, fs.ErrNotExist) when the folder does not exist.
func Open(dir, ref string) (*Tree, error) {
	abs, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	r, top, err := openGit(abs)
	if err != nil {
		return nil, err
	}
	t := &Tree{Dir: abs, repo: r}
	if r != nil {
		if t.Prefix, err = prefix(top, abs); err != nil {
			return nil, err
		}
	}
	if ref != "" {
		if r == nil {
			return nil, &NotARepositoryError{Dir: abs}
		}
		return t, t.checkout(ref)
	}
	if r != nil && isBare(r, abs) {
		return nil, fmt.Errorf("%s: a bare repository has no work tree; name a revision", abs)
	}
	d := disk{dir: abs}
	if r != nil {
		d.ignored = &ignored{repo: r, prefix: t.Prefix, patterns: map[string][]gitignore.Pattern{}, read: func(name string) []byte {
			data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
			if err != nil {
				return nil
			}
			return data
		}}
	}
	t.store = d
	t.root = &node{Entry: Entry{Name: ".", Mode: fs.ModeDir}}
	return t, nil
}

// Toplevel returns the top of the git work tree around dir, or the bare clone that dir is.
// The error is a *NotARepositoryError where there is none.
func Toplevel(dir string) (string, error) {
	abs, err := realDir(dir)
	if err != nil {
		return "", err
	}
	r, top, err := openGit(abs)
	if err != nil {
		return "", err
	}
	if r == nil {
		return "", &NotARepositoryError{Dir: abs}
	}
	return top, nil
}

// At opens another revision of the same folder; "" is the work tree.
func (t *Tree) At(ref string) (*Tree, error) { return Open(t.Dir, ref) }

func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: not a folder", abs)
	}
	return abs, nil
}

// openGit finds the repository around dir: nil without an error when there is none.
func openGit(dir string) (*git.Repository, string, error) {
	for top := dir; ; {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			r, err := git.PlainOpenWithOptions(top, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
			if err == nil || !errors.Is(err, git.ErrRepositoryNotExists) {
				return r, top, wrapOpen(top, err)
			}
		}
		if looksBare(top) {
			r, err := git.PlainOpen(top)
			if err == nil || !errors.Is(err, git.ErrRepositoryNotExists) {
				return r, top, wrapOpen(top, err)
			}
		}
		parent := filepath.Dir(top)
		if parent == top {
			return nil, "", nil
		}
		top = parent
	}
}

func wrapOpen(dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("opening git repository %s: %w", dir, err)
}

func looksBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func isBare(r *git.Repository, dir string) bool {
	_, err := r.Worktree()
	return errors.Is(err, git.ErrIsBareRepository) && looksBare(dir)
}

func prefix(top, dir string) (string, error) {
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return "", err
	}
	if looksBare(top) || rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}

// checkout points the tree at a revision in the object database.
func (t *Tree) checkout(ref string) error {
	hash, err := t.repo.ResolveRevision(plumbing.Revision(ref))
	if err != nil {
		return &UnknownRevisionError{Dir: t.Dir, Ref: ref, Err: err}
	}
	commit, err := t.repo.CommitObject(*hash)
	if err != nil {
		return &UnknownRevisionError{Dir: t.Dir, Ref: ref, Err: err}
	}
	tree, err := commit.Tree()
	if err != nil {
		return fmt.Errorf("reading the tree of commit %s: %w", hash, err)
	}
	if t.Prefix != "" {
		if tree, err = tree.Tree(t.Prefix); err != nil {
			return fmt.Errorf("reading %s at commit %s: %w", t.Prefix, hash, fs.ErrNotExist)
		}
	}
	t.Revision = hash.String()
	t.store = &objects{db: t.repo.Storer}
	t.root = &node{Entry: Entry{Name: ".", Mode: fs.ModeDir}, id: [20]byte(tree.Hash)}
	return nil
}

// below strips the tree's prefix from a path of the repository.
func (t *Tree) below(name string) (string, bool) {
	if t.Prefix == "" {
		return name, true
	}
	return strings.CutPrefix(name, t.Prefix+"/")
}
