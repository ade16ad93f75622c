package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Branch is the one that Push writes to.
const Branch = "main"

// GitServer serves bare repositories over smart HTTP, reading and writing, on
// the loopback interface and without credentials.
type GitServer struct {
	dir    string
	git    string
	addr   string
	server *http.Server
	log    *os.File
}

func newGitServer(dir, logPath string) (*GitServer, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("starting the git server: %w", err)
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting the git server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("starting the git server: %w", err)
	}
	g := &GitServer{dir: dir, git: git, addr: listener.Addr().String(), log: log}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: "/", Dir: dir, Stderr: log,
		Env: append(g.environment(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1"),
	}
	g.server = &http.Server{Handler: whole(backend), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

// whole gives a request whose length is not announced, as git's are for large
// pushes, a length: CGI has no other way to tell where it ends.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		}
		next.ServeHTTP(w, r)
	})
}

// environment keeps the user's and the system's git configuration out.
func (g *GitServer) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
}

// Base is the address under which all repositories lie.
func (g *GitServer) Base() string { return "http://" + g.addr }

// URL is a repository's address, for a GitRepository or for git itself.
func (g *GitServer) URL(repo string) string { return g.Base() + "/" + repo + ".git" }

// Push makes tree the whole content of a repository's branch main, as one commit
// on top of those before, and returns its hash. The repository is made by the
// first push. Directories named .git are left out.
func (g *GitServer) Push(ctx context.Context, repo string, tree fs.FS, message string) (sha string, err error) {
	dir := filepath.Join(g.dir, repo+".git")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := g.create(ctx, dir); err != nil {
			return "", err
		}
	}
	const ref = "refs/heads/" + Branch
	_, err = g.run(ctx, dir, nil, "rev-parse", "--verify", "--quiet", ref)
	var stream bytes.Buffer
	if err := writeImport(&stream, tree, ref, message, err == nil); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", repo, err)
	}
	if _, err := g.run(ctx, dir, &stream, "fast-import", "--quiet", "--force"); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", repo, err)
	}
	out, err := g.run(ctx, dir, nil, "rev-parse", "--verify", ref)
	if err != nil {
		return "", fmt.Errorf("pushing to %s: %w", repo, err)
	}
	return strings.TrimSpace(out), nil
}

func (g *GitServer) create(ctx context.Context, dir string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + Branch, dir},
		{"--git-dir=" + dir, "config", "http.receivepack", "true"},
	} {
		if _, err := g.run(ctx, g.dir, nil, args...); err != nil {
			return fmt.Errorf("making the repository %s: %w", filepath.Base(dir), err)
		}
	}
	return nil
}

func (g *GitServer) run(ctx context.Context, dir string, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.git, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, g.environment(), stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// writeImport writes a git fast-import stream with one commit.
func writeImport(w *bytes.Buffer, tree fs.FS, ref, message string, hasParent bool) error {
	fmt.Fprintf(w, "commit %s\ncommitter standup <dev@standup.sh> %d +0000\ndata %d\n%s\n", ref, time.Now().Unix(), len(message), message)
	if hasParent {
		fmt.Fprintf(w, "from %s^0\n", ref)
	}
	fmt.Fprintln(w, "deleteall")
	return fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		mode, data, err := readEntry(tree, path, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "M %s inline %s\ndata %d\n", mode, strconv.Quote(path), len(data))
		w.Write(data)
		w.WriteByte('\n')
		return nil
	})
}

func readEntry(tree fs.FS, path string, d fs.DirEntry) (mode string, data []byte, err error) {
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := fs.ReadLink(tree, path)
		return "120000", []byte(target), err
	}
	data, err = fs.ReadFile(tree, path)
	if info, statErr := d.Info(); statErr == nil && info.Mode()&0o111 != 0 {
		return "100755", data, err
	}
	return "100644", data, err
}

func (g *GitServer) close() error {
	err := g.server.Close()
	return errors.Join(err, g.log.Close())
}
