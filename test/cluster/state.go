package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	statePrefix = "standup-cluster-"
	stateLock   = "lock"
	// staleAfter keeps the sweep away from a directory whose owner has not locked
	// it yet.
	staleAfter = time.Minute
)

// newStateDir makes a locked directory for one cluster, after removing those
// whose owners were killed.
func newStateDir(parent string) (dir string, lock *os.File, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	if dir, err = os.MkdirTemp(parent, statePrefix); err != nil {
		return "", nil, fmt.Errorf("making the cluster's directory: %w", err)
	}
	if lock, err = os.OpenFile(filepath.Join(dir, stateLock), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return "", nil, fmt.Errorf("locking the cluster's directory: %w", err)
	}
	for _, sub := range []string{"logs", "pki", "tmp", "home", "users", "git", "artifacts"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return "", nil, fmt.Errorf("making the cluster's directory: %w", err)
		}
	}
	return dir, lock, nil
}

// sweep removes the state that clusters left behind whose process was killed:
// nobody holds their lock any more. It is best effort.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, statePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, stateLock), os.O_RDWR, 0)
		if err != nil {
			continue // kept on purpose, or not ours
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}

// releaseState removes the directory, or, to keep it, only its lock.
func releaseState(dir string, lock *os.File, keep bool) error {
	defer func() { _ = lock.Close() }()
	if keep {
		return os.Remove(filepath.Join(dir, stateLock))
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the cluster's directory: %w", err)
	}
	return nil
}
