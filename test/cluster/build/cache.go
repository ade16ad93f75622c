package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// target is a module, the components wanted of it, and its place in the cache.
type target struct {
	module
	source     string
	dir        string
	components []Component
}

// target hashes what the module's binaries are made from into its directory's
// name.
func (b *builder) target(m module) (target, error) {
	t := target{module: m, source: filepath.Join(b.Modules, m.name)}
	for _, c := range All() {
		if _, ok := m.packages[c]; ok && slices.Contains(b.Components, c) {
			t.components = append(t.components, c)
		}
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH, m.ldflags, m.assets)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(t.source, name))
		if err != nil {
			return t, fmt.Errorf("reading the module of %s: %w", m.name, err)
		}
		sum.Write(data)
	}
	t.dir = filepath.Join(b.Cache, m.name+"-"+hex.EncodeToString(sum.Sum(nil))[:16])
	return t, nil
}

func (t target) binary(c Component) string { return filepath.Join(t.dir, "bin", string(c)) }

func (t target) asset(a asset) string {
	return filepath.Join(t.dir, strings.ReplaceAll(filepath.Base(a.module)+"/"+a.dir, "/", "_"))
}

func (t target) missing() []Component {
	var out []Component
	for _, c := range t.components {
		if !exists(t.binary(c)) {
			out = append(out, c)
		}
	}
	return out
}

func (t target) complete() bool {
	return len(t.missing()) == 0 && !slices.ContainsFunc(t.assets, func(a asset) bool { return !exists(t.asset(a)) })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

const lockPoll = 500 * time.Millisecond

// lockFile takes an exclusive lock, which the kernel releases when the holder
// ends in whatever way. While another holds it, waiting is called now and then.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	var said time.Time
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if time.Since(said) >= progressEvery {
			said = time.Now()
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
