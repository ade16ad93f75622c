package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cluster/build"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/homenetwork"
	"github.com/standup-sh/standup/test/standin/cdi"
)

// bench runs cold starts, one cluster at a time.
type bench struct {
	limit  time.Duration
	log    io.Writer
	dir    string
	binary string
	// keep, if set, is the folder that gets the events of standup and the logs of the cluster.
	keep string
}

// build compiles standup once, outside every measurement.
func (b *bench) build(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "coldstart"); err != nil {
		return err
	}
	b.binary = filepath.Join(b.dir, "standup")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "github.com/standup-sh/standup/cmd/standup").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building standup: %w: %s", err, out)
	}
	return nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// row is one scenario's results.
type row struct {
	scenario scenario
	// took is the time from Flux seeing the repository to every tier being Ready, by way.
	took map[string]time.Duration
	// floor is the critical path of the tiers' own times in the run of standup, work their sum.
	floor, work time.Duration
}

func (b *bench) scenario(ctx context.Context, s scenario, ways []string) (row, error) {
	r := row{scenario: s, took: map[string]time.Duration{}}
	for _, way := range ways {
		fmt.Fprintf(b.log, "%s, %s: ", s.name, way)
		took, times, err := b.once(ctx, s, way)
		if err != nil {
			fmt.Fprintln(b.log)
			return r, fmt.Errorf("%s: %w", way, err)
		}
		fmt.Fprintf(b.log, "%.1f s\n", took.Seconds())
		r.took[way] = took
		if way == "standup" {
			r.floor, r.work = times.criticalPath(), times.total()
		}
	}
	return r, nil
}

// once brings a scenario up on a fresh cluster in one way.
func (b *bench) once(ctx context.Context, s scenario, way string) (time.Duration, *reconcileTimes, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Progress: build.Printer(b.log)})
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = c.Close() }()
	go func() { _ = cdi.Run(ctx, c.RESTConfig(), cdi.Options{}, nil) }()
	if err := working(ctx, c); err != nil {
		return 0, nil, err
	}
	repository, path, err := bootstrap(ctx, c, s)
	if err != nil {
		return 0, nil, err
	}
	begin := time.Now()
	switch way {
	case "alone":
	case "script":
		err = script(ctx, c, s)
	case "standup":
		err = b.standup(ctx, c, s, repository, path)
	default:
		err = fmt.Errorf("there is no way %q", way)
	}
	if err != nil {
		return 0, nil, err
	}
	if err := allReady(ctx, c, s.tiers); err != nil {
		return 0, nil, err
	}
	took := time.Since(begin)
	if err := b.keepLogs(c, s.name+"-"+way); err != nil {
		return 0, nil, err
	}
	times, err := readTimes(ctx, c)
	return took, times, err
}

// working waits until Flux's controllers take objects from their queues, some time after they call
// themselves healthy: their own start belongs to no way of bringing tiers up.
func working(ctx context.Context, c *cluster.Cluster) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		for _, name := range []cluster.Component{cluster.SourceController, cluster.KustomizeController} {
			log, err := os.ReadFile(c.LogPath(name))
			if err != nil || !bytes.Contains(log, []byte("Starting workers")) {
				return false, err
			}
		}
		return true, nil
	})
}

// bootstrap pushes the scenario and points Flux at it.
func bootstrap(ctx context.Context, c *cluster.Cluster, s scenario) (cold.Repository, string, error) {
	if s.tree == nil {
		r, err := cold.HomeNetwork(ctx, c, homenetwork.Repaired, "prod")
		return r, "clusters/prod", err
	}
	r, err := cold.Push(ctx, c, "bench", s.tree, s.name)
	if err != nil {
		return r, entry, err
	}
	return r, entry, c.Sync(ctx, cluster.Sync{Repo: r.Name, Path: entry})
}

func (b *bench) standup(ctx context.Context, c *cluster.Cluster, s scenario, r cold.Repository, path string) error {
	cmd := exec.CommandContext(ctx, b.binary, "up", "--repo", r.Dir, "--path", path, "--quiet", "-o", "json")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("standup up: %w: %s", err, out)
	}
	if b.keep == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(b.keep, s.name+"-events.jsonl"), out, 0o600)
}

// keepLogs copies the cluster's logs, the audit log among them, to a folder of that name.
func (b *bench) keepLogs(c *cluster.Cluster, name string) error {
	if b.keep == "" {
		return nil
	}
	return os.CopyFS(filepath.Join(b.keep, name), os.DirFS(filepath.Join(c.Dir(), "logs")))
}

// allReady waits until n Kustomizations are Ready.
func allReady(ctx context.Context, c *cluster.Cluster, n int) error {
	ready := map[string]bool{}
	return cold.Watch(ctx, c, func(s cold.TierState) bool {
		ready[s.String()] = s.Ready == "True"
		count := 0
		for _, ok := range ready {
			if ok {
				count++
			}
		}
		return count == n
	})
}
