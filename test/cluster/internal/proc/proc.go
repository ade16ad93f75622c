// Package proc starts child processes that never outlive the program that
// started them, however that program ends.
//
// On Linux the kernel does it: every child asks for SIGKILL at its parent's
// death (Pdeathsig). The kernel's notion of a parent is the thread that forked,
// so a Spawner forks from one thread of its own that lasts as long as it does.
// Elsewhere each child runs under a small shell that kills it once a pipe held
// by this process closes.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Command says what to run. Env is the whole environment, nothing is inherited.
// Stdout and stderr both go to Log.
type Command struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	Log  *os.File
}

// Spawner forks from one dedicated thread. The zero value is not usable, see
// NewSpawner.
type Spawner struct {
	requests chan request
	close    sync.Once
}

type request struct {
	start func() error
	done  chan error
}

// NewSpawner starts the thread that will fork. Close it after the last child
// has ended: on Linux, closing it ends the children that still run.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request)}
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		for r := range s.requests {
			r.done <- r.start()
		}
	}()
	return s
}

// Close ends the forking thread.
func (s *Spawner) Close() { s.close.Do(func() { close(s.requests) }) }

// Process is one running child.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Start runs c and returns once it has been forked.
func (s *Spawner) Start(c Command) (*Process, error) {
	child, err := prepare(c)
	if err != nil {
		return nil, err
	}
	return s.fork(c, child)
}

func (s *Spawner) fork(c Command, child prepared) (*Process, error) {
	r := request{start: child.cmd.Start, done: make(chan error, 1)}
	s.requests <- r
	err := <-r.done
	closeAll(child.stdin)
	if err != nil {
		closeAll(child.guard)
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	p := &Process{cmd: child.cmd, ended: make(chan struct{})}
	go func() {
		p.err = child.cmd.Wait()
		closeAll(child.guard)
		close(p.ended)
	}()
	return p, nil
}

// prepared is a command ready to fork. Where the platform needs a guard, guard
// is the end of the pipe that this process must keep open, stdin the end that
// only the child needs.
type prepared struct {
	cmd          *exec.Cmd
	guard, stdin *os.File
}

// PID is the child's process id, which is also its process group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed once the child has been waited for.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err is how the child ended: nil while it runs and after exit code 0.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return p.err
	default:
		return nil
	}
}

// Kill ends the child and its group at once and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Stop asks the child to end and kills it when it has not after grace.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return p.Kill()
	}
}

func (p *Process) signal(sig syscall.Signal) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling %s (%d): %w", p.cmd.Path, p.PID(), err)
	}
	return nil
}

func closeAll(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
