package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain doubles as the parent that gets killed: it starts one child the way
// the variable says, prints the child's pid and waits for ever.
func TestMain(m *testing.M) {
	how := os.Getenv("PROC_TEST_PARENT")
	if how == "" {
		os.Exit(m.Run())
	}
	p, err := startSleep(how)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func startSleep(how string) (*Process, error) {
	c := Command{Path: "/bin/sh", Args: []string{"-c", "exec sleep 600"}, Env: os.Environ(), Log: os.Stderr}
	if how == "native" {
		return NewSpawner().Start(c)
	}
	child, err := guarded(c)
	if err != nil {
		return nil, err
	}
	return NewSpawner().fork(c, child)
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	for _, how := range []string{"native", "guarded"} {
		t.Run(how, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), "PROC_TEST_PARENT="+how)
			parent.Stderr = os.Stderr
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
			if !alive(pid) {
				t.Fatal("the child does not run before its parent is killed")
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			eventually(t, func() bool { return !alive(pid) })
		})
	}
}

func TestStopKillsAChildThatIgnoresTheRequest(t *testing.T) {
	s := NewSpawner()
	defer s.Close()
	ready := filepath.Join(t.TempDir(), "ready")
	p, err := s.Start(Command{
		Path: "/bin/sh", Args: []string{"-c", `trap "" TERM; : >"$0"; while :; do sleep 1; done`, ready},
		Env: os.Environ(), Log: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	exists(t, ready)
	if err := p.Stop(200 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if alive(p.PID()) {
		t.Error("still running after Stop")
	}
	if p.Err() == nil {
		t.Error("Err is nil after a kill")
	}
}

func TestGuardedChildStopsOnRequestWithItsOwnExitCode(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c := Command{
		Path: "/bin/sh", Args: []string{"-c", `trap "exit 7" TERM; : >"$0"; while :; do sleep 0.05; done`, ready},
		Env: os.Environ(), Log: os.Stderr,
	}
	child, err := guarded(c)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSpawner()
	defer s.Close()
	p, err := s.fork(c, child)
	if err != nil {
		t.Fatal(err)
	}
	exists(t, ready)
	if err := p.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Err()); got != "exit status 7" {
		t.Errorf("ended with %q, want the child's own exit status 7", got)
	}
}

func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // no /proc here
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// exists waits for the file that a child makes once it is ready for signals.
func exists(t *testing.T, file string) {
	t.Helper()
	eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Error("not within 5 s")
}
