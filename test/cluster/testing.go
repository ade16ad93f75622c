package cluster

import (
	"os"
	"testing"

	"github.com/standup-sh/standup/test/cluster/build"
)

// New starts a cluster for one test and closes it at the test's end. It skips
// the test under -short. When the test fails, the ends of the components' logs
// are logged; with STANDUP_TEST_KEEP set, the state directory is kept and named.
//
// Packages with many tests share one cluster: they call Start in TestMain.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	if o.Progress == nil {
		o.Progress = build.Printer(os.Stderr)
	}
	o.Keep = o.Keep || os.Getenv("STANDUP_TEST_KEEP") != ""
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range c.options.Components {
				t.Logf("the log of %s ends:\n%s", name, c.LogTail(name, tailLines))
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if o.Keep {
			t.Log("the cluster's state is kept in", c.Dir())
		}
	})
	return c
}
