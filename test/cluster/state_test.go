package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStateOfKilledOwnersIsSweptAndNoOther(t *testing.T) {
	parent := t.TempDir()
	dir := func(name string, locked bool, age time.Duration) string {
		path := filepath.Join(parent, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if locked {
			if err := os.WriteFile(filepath.Join(path, stateLock), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	orphaned := dir(statePrefix+"orphaned", true, time.Hour)
	fresh := dir(statePrefix+"fresh", true, 0)
	kept := dir(statePrefix+"kept", false, time.Hour)
	foreign := dir("something-else", true, time.Hour)

	live, lock, err := newStateDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(live, at, at); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	if exists(orphaned) {
		t.Error("the state of a killed owner is still there")
	}
	for _, path := range []string{fresh, kept, foreign, live} {
		if !exists(path) {
			t.Errorf("%s was swept away", filepath.Base(path))
		}
	}
	if err := releaseState(live, lock, true); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	if !exists(live) {
		t.Error("state that was kept on purpose was swept away")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
