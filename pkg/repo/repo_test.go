package repo

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// gitIn runs git in a folder, without the user's configuration.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is not installed, and these tests compare with it")
	}
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, data string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// twoCommits makes a repository with a tag on its first commit, and returns both commits.
func twoCommits(t *testing.T) (dir, first, second string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "fleet/a.yaml", "one\n")
	write(t, dir, "other.yaml", "outside\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "first")
	gitIn(t, dir, "tag", "-a", "v1", "-m", "v1")
	first = gitIn(t, dir, "rev-parse", "HEAD")
	write(t, dir, "fleet/a.yaml", "two\n")
	gitIn(t, dir, "commit", "-qam", "second")
	return dir, first, gitIn(t, dir, "rev-parse", "HEAD")
}

func open(t *testing.T, dir, ref string) *Tree {
	t.Helper()
	tree, err := Open(dir, ref)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func read(t *testing.T, tree *Tree, name string) string {
	t.Helper()
	data, err := tree.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOpenReadsAnyRevisionInAnyKindOfClone(t *testing.T) {
	dir, first, second := twoCommits(t)
	write(t, dir, "fleet/a.yaml", "changed\n")

	bare := filepath.Join(t.TempDir(), "bare.git")
	gitIn(t, dir, "clone", "-q", "--bare", dir, bare)
	gitIn(t, bare, "pack-refs", "--all")
	gitIn(t, bare, "gc", "-q")
	linked := filepath.Join(t.TempDir(), "linked")
	gitIn(t, dir, "worktree", "add", "-q", "--detach", linked, first)

	for _, c := range []struct{ name, dir, ref, want, revision string }{
		{"work tree", dir, "", "changed\n", ""},
		{"branch", dir, "main", "two\n", second},
		{"HEAD", dir, "HEAD", "two\n", second},
		{"parent", dir, "HEAD~1", "one\n", first},
		{"annotated tag", dir, "v1", "one\n", first},
		{"commit", dir, first, "one\n", first},
		{"abbreviated commit", dir, first[:9], "one\n", first},
		{"bare, packed refs", bare, "v1", "one\n", first},
		{"bare, branch", bare, "main", "two\n", second},
		{"linked work tree", linked, "", "one\n", ""},
		{"linked work tree, branch", linked, "main", "two\n", second},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := open(t, c.dir, c.ref)
			if got := read(t, tree, "fleet/a.yaml"); got != c.want || tree.Revision != c.revision {
				t.Errorf("read %q at revision %q, want %q at %q", got, tree.Revision, c.want, c.revision)
			}
		})
	}
}

func TestOpenRootsATreeBelowTheTop(t *testing.T) {
	dir, first, _ := twoCommits(t)
	for _, ref := range []string{"", first} {
		tree := open(t, filepath.Join(dir, "fleet"), ref)
		if tree.Prefix != "fleet" {
			t.Errorf("prefix %q", tree.Prefix)
		}
		if _, err := tree.ReadFile("a.yaml"); err != nil {
			t.Error(err)
		}
		if _, err := tree.ReadFile("../other.yaml"); err == nil {
			t.Error("read a file above the root")
		}
	}
}

func TestOpenErrors(t *testing.T) {
	plain := t.TempDir()
	write(t, plain, "a.yaml", "plain\n")
	if got := read(t, open(t, plain, ""), "a.yaml"); got != "plain\n" {
		t.Errorf("read %q", got)
	}
	var none *NotARepositoryError
	if _, err := Open(plain, "main"); !errors.As(err, &none) {
		t.Errorf("a revision of a plain folder: %v", err)
	}
	if _, err := Toplevel(plain); !errors.As(err, &none) {
		t.Errorf("the top of a plain folder: %v", err)
	}
	if _, err := Open(filepath.Join(plain, "absent"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	dir, first, _ := twoCommits(t)
	var unknown *UnknownRevisionError
	if _, err := Open(dir, "v2"); !errors.As(err, &unknown) || unknown.Ref != "v2" {
		t.Errorf("a revision that does not exist: %v", err)
	}
	write(t, dir, "new/a.yaml", "new\n")
	if _, err := Open(filepath.Join(dir, "new"), first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that did not exist then: %v", err)
	}
	bare := filepath.Join(t.TempDir(), "bare.git")
	gitIn(t, dir, "clone", "-q", "--bare", dir, bare)
	if _, err := Open(bare, ""); err == nil || !strings.Contains(err.Error(), "name a revision") {
		t.Errorf("the work tree of a bare clone: %v", err)
	}
}

func TestToplevelFindsTheTopFromBelow(t *testing.T) {
	dir, _, _ := twoCommits(t)
	top, err := Toplevel(filepath.Join(dir, "fleet"))
	if err != nil || top != dir {
		t.Errorf("top %q, error %v, want %q", top, err, dir)
	}
}

func TestDirtyNamesWhatDiffersBelowTheRoot(t *testing.T) {
	dir, first, _ := twoCommits(t)
	tree := open(t, dir, "")
	if paths, err := tree.Dirty(); err != nil || len(paths) > 0 {
		t.Errorf("clean work tree: %v %v", paths, err)
	}
	write(t, dir, "fleet/a.yaml", "changed\n")
	write(t, dir, "fleet/new.yaml", "new\n")
	write(t, dir, "other.yaml", "changed too\n")
	write(t, dir, ".gitignore", "*.log\n")
	write(t, dir, "fleet/x.log", "ignored\n")
	gitIn(t, dir, "add", ".gitignore")
	paths, err := open(t, dir, "").Dirty()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{".gitignore", "fleet/a.yaml", "fleet/new.yaml", "other.yaml"}, paths); d != "" {
		t.Error(d)
	}
	paths, err = open(t, filepath.Join(dir, "fleet"), "").Dirty()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a.yaml", "new.yaml"}, paths); d != "" {
		t.Error(d)
	}
	if paths, err := open(t, dir, first).Dirty(); err != nil || paths != nil {
		t.Errorf("a commit: %v %v", paths, err)
	}
}

func TestHeadCommitsAndRemotes(t *testing.T) {
	dir, first, second := twoCommits(t)
	gitIn(t, dir, "remote", "add", "origin", "git@git.example.com:fleet.git")
	gitIn(t, dir, "remote", "add", "mirror", "https://git.example.com/fleet")
	tree := open(t, dir, "")
	if head, err := tree.Head(); err != nil || head != second {
		t.Errorf("HEAD %q %v, want %q", head, err, second)
	}
	if !tree.HasCommit(first) || tree.HasCommit(strings.Repeat("0", 40)) || tree.HasCommit("main") {
		t.Error("HasCommit is wrong")
	}
	if d := cmp.Diff([]string{"git@git.example.com:fleet.git", "https://git.example.com/fleet"}, tree.Remotes()); d != "" {
		t.Error(d)
	}
	if !tree.Git() {
		t.Error("not in git")
	}
}

func TestLinksAreFollowedInsideTheTreeOnly(t *testing.T) {
	dir, _, _ := twoCommits(t)
	outside := t.TempDir()
	write(t, outside, "secret", "secret\n")
	for name, target := range map[string]string{
		"in": "fleet/a.yaml", "dir": "fleet", "fleet/up": "../other.yaml", "chain": "in", "loop": "loop",
		"out": "../out", "abs": filepath.Join(outside, "secret"), "sneaky": "fleet/../../x",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "links")
	for _, ref := range []string{"", "HEAD"} {
		tree := open(t, dir, ref)
		for name, want := range map[string]string{
			"in": "two\n", "dir/a.yaml": "two\n", "fleet/up": "outside\n", "dir/up": "outside\n", "chain": "two\n",
		} {
			if got := read(t, tree, name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if real, err := tree.Resolve("dir/up"); err != nil || real != "other.yaml" {
			t.Errorf("dir/up resolves to %q %v", real, err)
		}
		var outsideErr *OutsideError
		for _, name := range []string{"out", "abs", "sneaky"} {
			if _, err := tree.ReadFile(name); !errors.As(err, &outsideErr) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := tree.ReadFile("loop"); err == nil {
			t.Error("read an endless link")
		}
		if e, err := tree.Lstat("in"); err != nil || e.Mode&fs.ModeSymlink == 0 {
			t.Errorf("in is %v %v", e, err)
		}
	}
}

func TestWorkTreeLeavesOutWhatGitIgnores(t *testing.T) {
	dir, _, _ := twoCommits(t)
	write(t, dir, "fleet/tracked.secret.yaml", "tracked\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "tracked")
	write(t, dir, ".gitignore", "*.secret.yaml\n/vendor/\n")
	write(t, dir, "fleet/.gitignore", "!keep.secret.yaml\n")
	write(t, dir, "fleet/b.secret.yaml", "ignored\n")
	write(t, dir, "fleet/keep.secret.yaml", "kept\n")
	write(t, dir, "vendor/x.yaml", "ignored\n")
	for _, root := range []string{"", "fleet"} {
		tree := open(t, filepath.Join(dir, root), "")
		sub := "."
		if root == "" {
			sub = "fleet"
			if _, err := tree.Stat("vendor"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("vendor: %v", err)
			}
		}
		entries, err := tree.ReadDir(sub)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		if d := cmp.Diff([]string{".gitignore", "a.yaml", "keep.secret.yaml", "tracked.secret.yaml"}, names); d != "" {
			t.Error(d)
		}
	}
}

func TestFSBehavesAsOne(t *testing.T) {
	dir, _, second := twoCommits(t)
	for _, tree := range []*Tree{
		open(t, dir, ""), open(t, dir, second),
		FromFiles(map[string][]byte{"fleet/a.yaml": []byte("x"), "other.yaml": nil}),
		Compose(open(t, dir, second), map[string]File{
			"fleet/a.yaml": {Tree: open(t, dir, second), Name: "other.yaml"}, "other.yaml": {Tree: open(t, dir, second), Name: "other.yaml"},
		}),
	} {
		if err := fstest.TestFS(tree.FS(), "fleet/a.yaml", "other.yaml"); err != nil {
			t.Error(err)
		}
	}
}

func TestComposedTreeKnowsWhereItsFilesAreFrom(t *testing.T) {
	base := FromFiles(map[string][]byte{"apps/base/a.yaml": []byte("a"), "apps/base/b/c.yaml": []byte("c")})
	tree := Compose(base, map[string]File{
		"x":          {Tree: base, Name: "apps/base", Dir: true},
		"x/a.yaml":   {Tree: base, Name: "apps/base/a.yaml"},
		"y/z/c.yaml": {Tree: base, Name: "apps/base/b/c.yaml"},
	})
	for name, want := range map[string]string{"x/a.yaml": "apps/base/a.yaml", "x": "apps/base", "y/z": "apps/base/b", "absent": "absent"} {
		if got := tree.Origin(name); got != want {
			t.Errorf("%s is from %s, want %s", name, got, want)
		}
	}
	if got := read(t, tree, "y/z/c.yaml"); got != "c" {
		t.Errorf("read %q", got)
	}
	if data, err := tree.ReadOrigin("apps/base/a.yaml"); err != nil || string(data) != "a" {
		t.Errorf("read %q %v by its real name", data, err)
	}
}
