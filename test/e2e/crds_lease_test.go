package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/resume"
)

// TestE2ECrdsCommandIsInterruptedAndKeptOut: a lease that someone else holds, an operator that does
// not answer, Ctrl-C in the middle, and a kill; the run after them finishes.
func TestE2ECrdsCommandIsInterruptedAndKeptOut(t *testing.T) {
	e := newCrdsEnv(t)
	e.push(shapes())
	e.waitAllStuck()

	ada := &resume.ClusterLease{Client: e.Dynamic(), Namespace: "flux-system", Holder: "ada@box/1"}
	must(t, ada.Acquire(t.Context()))
	if written := e.audited(func() { e.command().exits(t, 2, "another run is at work: ada@box/1, since 20", "--take-over") }); len(written) != 0 {
		t.Errorf("kept out, it wrote: %v", written)
	}
	e.command("--dry-run").exits(t, 0, "ConstraintTemplate/musthaveowner", "created (dry run)")
	must(t, ada.Release(t.Context()))

	interrupted := e.interrupt(syscall.SIGINT)
	interrupted.exits(t, 130, "nothing was rolled back", "still stuck")
	if leaseExists(t, e.Cluster) {
		t.Error("the lease outlived Ctrl-C")
	}
	// A run that finds its trigger there writes nothing, and so holds nothing: give it something to do.
	must(t, e.Dynamic().Resource(schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}).
		Namespace("certs").Delete(t.Context(), "cert-manager", metav1.DeleteOptions{}))
	e.interrupt(syscall.SIGKILL)
	if !leaseExists(t, e.Cluster) {
		t.Fatal("SIGKILL came before the lease was taken")
	}
	late := e.command("--timeout", "1s", "--take-over")
	late.exits(t, 1, "still waiting for MustHaveOwner (constraints.gatekeeper.sh/v1beta1)", "still stuck")
	if leaseExists(t, e.Cluster) {
		t.Error("the lease that was taken over is still there")
	}

	e.runStandins()
	last := e.command()
	last.exits(t, 0)
	e.waitReady(wedgedTiers()...)
	e.nothingOfOurs(e.triggersLive()...)
	if writes := writesOf(t, e.Cluster, func() { e.command().exits(t, 0, "nothing to do") }); len(writes) != 0 {
		t.Errorf("the run after it wrote: %v", writes)
	}
}

// interrupt ends a run by a signal once it has written something.
func (e *crdsEnv) interrupt(signal os.Signal) outcome {
	e.t.Helper()
	binary, err := buildOnce()
	must(e.t, err)
	cmd := exec.CommandContext(e.t.Context(), binary, "crds", "--path", e.path)
	cmd.Dir, cmd.Env = e.repo.Dir, append(os.Environ(), "KUBECONFIG="+e.Kubeconfig())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	must(e.t, cmd.Start())
	for range 600 {
		if leaseExists(e.t, e.Cluster) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second) // the first write follows the lease; its operator never answers
	must(e.t, cmd.Process.Signal(signal))
	_ = cmd.Wait() // its exit code is what counts
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	e.t.Logf("standup crds, ended by %s: exit %d\n%s%s", signal, o.code, o.stderr, o.stdout)
	if strings.Contains(o.stderr, "another run") {
		e.t.Error("it was kept out")
	}
	return o
}
