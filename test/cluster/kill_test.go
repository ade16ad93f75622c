package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standup-sh/standup/test/cluster"
)

// victim is the process that TestNoProcessOutlivesAKilledOwner kills: it starts
// a cluster, prints its processes and waits.
func victim() int {
	c, err := cluster.Start(context.Background(), cluster.Options{
		Components: cluster.Flux(), Dir: os.Getenv("CLUSTER_TEST_VICTIM"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, name := range cluster.Flux() {
		fmt.Print(c.PID(name), " ")
	}
	fmt.Println()
	select {}
}

func TestNoProcessOutlivesAKilledOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	dir := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "CLUSTER_TEST_VICTIM="+dir)
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, field := range strings.Fields(line) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Fatalf("process %d does not run before its owner is killed", pid)
		}
		pids = append(pids, pid)
	}
	if len(pids) != len(cluster.Flux()) {
		t.Fatalf("got processes %v of %v", pids, cluster.Flux())
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("process %d outlives its owner", pid)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // no /proc here
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
