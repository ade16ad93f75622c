package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/standup-sh/standup/test/cluster/internal/proc"
)

const (
	readyPoll    = 50 * time.Millisecond
	readyTimeout = 2 * time.Minute
	stopGrace    = 20 * time.Second
	startTries   = 5
	tailLines    = 25
)

// part is one component's state: its extra flags, its ports, fixed once it has
// started, and its process. One at a time starts or ends it.
type part struct {
	mu      sync.Mutex
	extra   []string
	ports   ports
	process *proc.Process
}

func (p *part) running() bool {
	if p.process == nil {
		return false
	}
	select {
	case <-p.process.Ended():
		return false
	default:
		return true
	}
}

func (p *part) end(how func(*proc.Process) error) error {
	if !p.running() {
		return nil
	}
	return how(p.process)
}

// NotStartedError says which component did not become ready, why, and how its
// log ends.
type NotStartedError struct {
	Component Component
	Err       error
	LogTail   string
}

func (e *NotStartedError) Error() string {
	return fmt.Sprintf("starting %s: %v; its log ends:\n%s", e.Component, e.Err, e.LogTail)
}

func (e *NotStartedError) Unwrap() error { return e.Err }

var errEnded = errors.New("it ended before it was ready")

// StartComponent starts a component that was stopped, killed or has ended by
// itself, on the ports it had, and returns when it is ready. It does nothing for
// one that runs.
func (c *Cluster) StartComponent(ctx context.Context, name Component) error {
	return c.startUntil(ctx, name, healthURL)
}

// startUntil starts a component and returns when what health names is good.
func (c *Cluster) startUntil(ctx context.Context, name Component, health func(Component, ports) string) error {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	return c.start(ctx, name, part, health)
}

// awaitReady waits for a component that was started before it was quite ready.
func (c *Cluster) awaitReady(ctx context.Context, name Component) error {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	if err := c.waitReady(ctx, part, healthURL(name, part.ports)); err != nil {
		return &NotStartedError{Component: name, Err: err, LogTail: c.LogTail(name, tailLines)}
	}
	return nil
}

// Stop asks a component to end and returns when it has; one that takes longer
// than 20 s is killed.
func (c *Cluster) Stop(name Component) error {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.end(func(p *proc.Process) error { return p.Stop(stopGrace) })
}

// Kill ends a component with SIGKILL.
func (c *Cluster) Kill(name Component) error {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	return part.end((*proc.Process).Kill)
}

// Restart stops a component and starts it again.
func (c *Cluster) Restart(ctx context.Context, name Component) error {
	if err := c.Stop(name); err != nil {
		return err
	}
	return c.StartComponent(ctx, name)
}

// SetFlags replaces the extra flags of a component. They take effect when it is
// next started.
func (c *Cluster) SetFlags(name Component, flags ...string) {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	part.extra = slices.Clone(flags)
}

// PID is the process id of a component that runs, 0 of one that does not.
func (c *Cluster) PID(name Component) int {
	part := c.parts[name]
	part.mu.Lock()
	defer part.mu.Unlock()
	if !part.running() {
		return 0
	}
	return part.process.PID()
}

// LogPath is the file that a component's output is appended to.
func (c *Cluster) LogPath(name Component) string {
	return filepath.Join(c.dir, "logs", string(name)+".log")
}

// LogTail is the end of a component's log.
func (c *Cluster) LogTail(name Component, lines int) string {
	data, err := os.ReadFile(c.LogPath(name))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// start runs a component and waits for it. Only a component that never ran
// before may move to other ports.
func (c *Cluster) start(ctx context.Context, name Component, part *part, health func(Component, ports) string) error {
	if part.running() {
		return nil
	}
	if c.binaries.Path(name) == "" {
		return fmt.Errorf("starting %s: not among the components this cluster was started with", name)
	}
	known := part.ports != nil
	for try := 1; ; try++ {
		if !known {
			p, err := pickPorts(name)
			if err != nil {
				return err
			}
			part.ports = p
		}
		if err := c.fork(name, part); err != nil {
			return err
		}
		err := c.waitReady(ctx, part, health(name, part.ports))
		if err == nil {
			return nil
		}
		_ = part.end((*proc.Process).Kill)
		failed := &NotStartedError{Component: name, Err: err, LogTail: c.LogTail(name, tailLines)}
		if known || try == startTries || !errors.Is(err, errEnded) || !portTaken(failed.LogTail) {
			return failed
		}
	}
}

func (c *Cluster) fork(name Component, part *part) error {
	args, err := c.arguments(name, part.ports)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	log, err := os.OpenFile(c.LogPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	part.process, err = c.spawner.Start(proc.Command{
		Path: c.binaries.Path(name), Args: slices.Concat(args, part.extra),
		Env: c.environment(name), Dir: c.dir, Log: log,
	})
	return err
}

// waitReady polls a component's health until it is good, the process ends, ctx
// ends or two minutes have passed.
func (c *Cluster) waitReady(ctx context.Context, part *part, url string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("it is not ready after %s", readyTimeout))
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if healthy(ctx, c.health, url, c.authority.tokens[adminUser]) {
			return nil
		}
		select {
		case <-part.process.Ended():
			return fmt.Errorf("%w (%v)", errEnded, part.process.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// healthClient asks components that made their certificates themselves.
func healthClient() *http.Client {
	return &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
}

func healthy(ctx context.Context, client *http.Client, url, token string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	if strings.HasPrefix(url, "https:") && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}
