// Package cold puts a test cluster where a disaster leaves it: an empty control plane, a
// repository on its git server, and Flux pointed at it, as `flux bootstrap` does last. What happens
// from there is what tests, the demo and the benchmarks look at.
//
//	clone, err := cold.HomeNetwork(ctx, c, homenetwork.Wedged, "prod")
//	// clone is a local git clone to run standup in
package cold

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/homenetwork"
)

// Repository is a repository that was pushed to a cluster's git server.
type Repository struct {
	Name string
	// Dir is a local clone whose HEAD is what was last pushed.
	Dir string
}

// Push makes tree the content of the repository name on the cluster's git server and brings a
// local clone of it up to date.
func Push(ctx context.Context, c *cluster.Cluster, name string, tree fs.FS, message string) (Repository, error) {
	r := Repository{Name: name, Dir: filepath.Join(c.Dir(), "clones", name)}
	if _, err := c.Git.Push(ctx, name, tree, message); err != nil {
		return r, err
	}
	if _, err := os.Stat(r.Dir); err == nil {
		return r, git(ctx, r.Dir, "pull", "--quiet", "--ff-only")
	}
	return r, git(ctx, "", "clone", "--quiet", "--branch", cluster.Branch, c.Git.URL(name), r.Dir)
}

// HomeNetwork pushes the home network, with its sync object pointing at the cluster's git server,
// creates the decryption key that its README asks for, and points Flux at clusters/<entry>.
func HomeNetwork(ctx context.Context, c *cluster.Cluster, state homenetwork.State, entry string) (Repository, error) {
	const name = "home-network"
	r, err := PushHomeNetwork(ctx, c, state)
	if err != nil {
		return r, err
	}
	key, err := homenetwork.AgeKey(entry)
	if err != nil {
		return r, err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"namespace": "flux-system", "name": "sops-age"},
		"stringData": map[string]any{homenetwork.AgeSecretKey: string(key)},
	}}
	if err := c.ApplyObject(ctx, secret); err != nil {
		return r, err
	}
	return r, c.Sync(ctx, cluster.Sync{Repo: name, Path: "clusters/" + entry})
}

// PushHomeNetwork pushes a state of the home network as the repository's next commit.
func PushHomeNetwork(ctx context.Context, c *cluster.Cluster, state homenetwork.State) (Repository, error) {
	const name = "home-network"
	dir, err := os.MkdirTemp(c.Dir(), name)
	if err != nil {
		return Repository{}, err
	}
	if err := homenetwork.Write(dir, state); err != nil {
		return Repository{}, err
	}
	if err := homenetwork.SetSourceURL(dir, c.Git.URL(name)); err != nil {
		return Repository{}, err
	}
	return Push(ctx, c, name, os.DirFS(dir), string(state))
}

// git runs git without the configuration of whoever runs the test.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}
