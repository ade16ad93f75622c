package cluster_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cluster/build"
)

// shared is the one full cluster that most tests of this package use.
type shared struct {
	once sync.Once
	c    *cluster.Cluster
	err  error
}

var full shared

func (s *shared) get(t *testing.T) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	s.once.Do(func() {
		begin := time.Now()
		s.c, s.err = cluster.Start(context.Background(), cluster.Options{Progress: build.Printer(os.Stderr)})
		fmt.Fprintf(os.Stderr, "the full cluster started in %.1f s\n", time.Since(begin).Seconds())
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.c
}

func TestMain(m *testing.M) {
	if os.Getenv("CLUSTER_TEST_VICTIM") != "" {
		os.Exit(victim())
	}
	code := m.Run()
	if full.c != nil {
		if err := full.c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
