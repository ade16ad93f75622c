package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/standup-sh/standup/test/cluster"
)

// buildOnce compiles the command once for all tests of the package.
var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "standup-e2e")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "standup")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/standup-sh/standup/cmd/standup").CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return binary, nil
})

// outcome is what one run of the command printed and how it ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// standup runs the real command in a folder, as its user would, against a cluster.
func standup(t *testing.T, c *cluster.Cluster, dir string, args ...string) outcome {
	t.Helper()
	return standupWith(t, c.Kubeconfig(), dir, args...)
}

func standupWith(t *testing.T, kubeconfig, dir string, args ...string) outcome {
	t.Helper()
	binary, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("standup %s: exit %d\n%s%s", strings.Join(args, " "), o.code, o.stderr, o.stdout)
	return o
}

// writesOf are the writes that standup made to a cluster while do ran.
func writesOf(t *testing.T, c *cluster.Cluster, do func()) []cluster.Entry {
	t.Helper()
	mark, err := c.Audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do()
	entries, err := c.Audit.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Select(cluster.Writes(entries), cluster.ByUserAgent("standup/"))
}
