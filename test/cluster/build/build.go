package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options of Ensure. The zero value builds every component into the default
// cache, for the repository around the current directory.
type Options struct {
	// Components to have; all where empty.
	Components []Component
	// Cache overrides $STANDUP_TEST_CACHE and the user's cache directory.
	Cache string
	// Modules overrides the directory that holds the nested modules.
	Modules string
	// Progress is called while something is built or waited for, from one
	// goroutine; never when everything is in the cache.
	Progress func(Event)
}

// Step is what an Event reports.
type Step int

// The steps of a build.
const (
	Waiting  Step = iota // another builder holds the module's lock
	Started              // a binary's build begins
	Running              // a binary's build goes on, every ten seconds
	Finished             // a binary is in the cache
)

// Event reports progress on binary N of M.
type Event struct {
	Step      Step
	Component Component
	N, M      int
	Elapsed   time.Duration
}

const progressEvery = 10 * time.Second

// Ensure returns the binaries of the wanted components, building those that the
// cache lacks. Builds run one after another and stop when ctx ends. A failed
// build's error carries the compiler's output.
func Ensure(ctx context.Context, o Options) (*Binaries, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	b := &builder{Options: o, out: &Binaries{paths: map[Component]string{}, assets: map[string]string{}}}
	var wanted []target
	for _, m := range modules() {
		t, err := b.target(m)
		if err != nil {
			return nil, err
		}
		if len(t.components) > 0 {
			wanted = append(wanted, t)
			b.total += len(t.missing())
		}
	}
	for _, t := range wanted {
		if err := b.ensure(ctx, t); err != nil {
			return nil, err
		}
	}
	return b.out, nil
}

func (o Options) complete() (Options, error) {
	if len(o.Components) == 0 {
		o.Components = All()
	}
	for _, c := range o.Components {
		if !slices.Contains(All(), c) {
			return o, fmt.Errorf("building %q: no such component", c)
		}
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	var err error
	if o.Modules == "" {
		if o.Modules, err = ModulesDir("."); err != nil {
			return o, err
		}
	}
	if o.Cache == "" {
		if o.Cache, err = DefaultCache(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// DefaultCache is $STANDUP_TEST_CACHE, or standup-test in the user's cache
// directory.
func DefaultCache() (string, error) {
	if dir := os.Getenv("STANDUP_TEST_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a cache directory (or set STANDUP_TEST_CACHE): %w", err)
	}
	return filepath.Join(dir, "standup-test"), nil
}

type builder struct {
	Options
	out   *Binaries
	done  int
	total int
}

// ensure completes one module's directory in the cache. Nothing is locked when
// nothing is missing, the usual case.
func (b *builder) ensure(ctx context.Context, t target) error {
	if !t.complete() {
		unlock, err := b.lock(ctx, t)
		if err != nil {
			return err
		}
		defer unlock()
	}
	for _, c := range t.components {
		if !exists(t.binary(c)) {
			b.done++
			if err := b.build(ctx, t, c); err != nil {
				return err
			}
		}
		b.out.paths[c] = t.binary(c)
	}
	for _, a := range t.assets {
		if !exists(t.asset(a)) {
			if err := copyAsset(ctx, t, a); err != nil {
				return err
			}
		}
		b.out.assets[a.module+"/"+a.dir] = t.asset(a)
	}
	return nil
}

func (b *builder) lock(ctx context.Context, t target) (func(), error) {
	if err := os.MkdirAll(filepath.Join(t.dir, "bin"), 0o755); err != nil {
		return nil, fmt.Errorf("making the cache of %s: %w", t.name, err)
	}
	begin := time.Now()
	waiting := func() {
		b.Progress(Event{Step: Waiting, Component: t.components[0], N: b.done + 1, M: b.total, Elapsed: time.Since(begin)})
	}
	return lockFile(ctx, filepath.Join(t.dir, "lock"), waiting)
}

// build compiles one binary beside its place and moves it there.
func (b *builder) build(ctx context.Context, t target, c Component) error {
	event := Event{Step: Started, Component: c, N: b.done, M: max(b.total, b.done)}
	b.Progress(event)
	tmp := t.binary(c) + ".tmp"
	var output bytes.Buffer
	cmd := goCommand(ctx, t.source, "build", "-mod=readonly", "-buildvcs=false", "-ldflags", t.ldflags, "-o", tmp, t.packages[c])
	cmd.Stdout, cmd.Stderr = &output, &output
	begin := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			event.Step, event.Elapsed = Running, time.Since(begin)
			b.Progress(event)
		case err := <-ended:
			if ctx.Err() != nil {
				return fmt.Errorf("building %s: %w", c, context.Cause(ctx))
			}
			if err != nil {
				return fmt.Errorf("building %s: %w\n%s", c, err, bytes.TrimSpace(output.Bytes()))
			}
			if err := os.Rename(tmp, t.binary(c)); err != nil {
				return fmt.Errorf("building %s: %w", c, err)
			}
			event.Step, event.Elapsed = Finished, time.Since(begin)
			b.Progress(event)
			return nil
		}
	}
}

// goCommand runs the go command on a nested module, whatever flags and
// workspace the outer one runs with, and without a C compiler.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// copyAsset copies the YAML files of a dependency's directory into the cache.
func copyAsset(ctx context.Context, t target, a asset) error {
	out, err := goCommand(ctx, t.source, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", a.module).Output()
	if err != nil {
		return fmt.Errorf("finding the module %s: %w", a.module, err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(a.dir))
	tmp := t.asset(a) + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("copying %s: no YAML files (%v)", from, err)
	}
	for _, f := range files {
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("copying %s: %w", f, err)
		}
		if err := os.WriteFile(filepath.Join(tmp, filepath.Base(f)), data, 0o644); err != nil {
			return fmt.Errorf("copying %s: %w", f, err)
		}
	}
	return os.Rename(tmp, t.asset(a))
}

// Printer reports progress as one line an event.
func Printer(w io.Writer) func(Event) {
	return func(e Event) {
		elapsed := e.Elapsed.Round(time.Second)
		switch e.Step {
		case Waiting:
			_, _ = fmt.Fprintf(w, "waiting %s for another build of %s\n", elapsed, e.Component)
		case Started:
			_, _ = fmt.Fprintf(w, "building %s (%d of %d)\n", e.Component, e.N, e.M)
		case Running:
			_, _ = fmt.Fprintf(w, "building %s (%d of %d), %s\n", e.Component, e.N, e.M, elapsed)
		case Finished:
			_, _ = fmt.Fprintf(w, "built %s (%d of %d) in %s\n", e.Component, e.N, e.M, elapsed)
		}
	}
}
