package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/test/cluster"
)

func TestComponentsStopAndStartAgain(t *testing.T) {
	begin := time.Now()
	c := cluster.New(t, cluster.Options{
		Components: cluster.Flux(),
		Flags:      map[cluster.Component][]string{cluster.KustomizeController: {"--concurrent=8"}},
	})
	t.Logf("Flux alone started in %.1f s", time.Since(begin).Seconds())
	ctx := within(t, 3*time.Minute)

	before := c.PID(cluster.KustomizeController)
	c.SetFlags(cluster.KustomizeController, "--requeue-dependency=5s")
	if err := c.Restart(ctx, cluster.KustomizeController); err != nil {
		t.Fatal(err)
	}
	if after := c.PID(cluster.KustomizeController); after == 0 || after == before {
		t.Errorf("process %d after, %d before the restart", after, before)
	}

	// What is written survives the API server and etcd.
	if err := c.Apply(ctx, configMap("kept", "yes")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []cluster.Component{cluster.APIServer, cluster.Etcd} {
		if err := c.Kill(name); err != nil {
			t.Fatal(err)
		}
		if c.PID(name) != 0 {
			t.Errorf("%s runs after Kill", name)
		}
	}
	maps := c.Dynamic().Resource(configMaps).Namespace("default")
	if _, err := maps.Get(ctx, "kept", metav1.GetOptions{}); err == nil {
		t.Error("the API answers without its server")
	}
	for _, name := range []cluster.Component{cluster.Etcd, cluster.APIServer} {
		if err := c.StartComponent(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := maps.Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	// Flux, restarted once and through an outage, still works.
	if _, err := c.Git.Push(ctx, "r", tree(map[string]string{"a/cm.yaml": configMap("r", "1")}), "r"); err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(ctx, cluster.Sync{Repo: "r", Path: "a", Name: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx, "flux-system", "r"); err != nil {
		t.Fatal(err)
	}
}

func TestStartSaysWhyAComponentFails(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	_, err := cluster.Start(t.Context(), cluster.Options{
		Components: cluster.API(),
		Flags:      map[cluster.Component][]string{cluster.Etcd: {"--no-such-flag"}},
	})
	var failed *cluster.NotStartedError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want a NotStartedError", err)
	}
	if failed.Component != cluster.Etcd || !strings.Contains(failed.Error(), "no-such-flag") {
		t.Errorf("got %v, want etcd's own words", failed)
	}
}

func TestOptionsNameWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name    string
		options cluster.Options
		want    string
	}{
		{"no etcd", cluster.Options{Components: []cluster.Component{cluster.APIServer}}, "starting a cluster without etcd: every cluster needs it"},
		{"flags of an absent component", cluster.Options{
			Components: cluster.API(), Flags: map[cluster.Component][]string{cluster.Kwok: {"-v=5"}},
		}, "setting flags of kwok: not among the components"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := cluster.Start(t.Context(), test.options)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
