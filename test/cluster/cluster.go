package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/standup-sh/standup/test/cluster/build"
	"github.com/standup-sh/standup/test/cluster/internal/proc"
)

// Cluster is a running control plane. Its methods may be called from several
// goroutines.
type Cluster struct {
	// Git serves the repositories that Flux reads.
	Git *GitServer
	// Audit reads who asked the API server for what.
	Audit *AuditLog

	options   Options
	dir       string
	lock      *os.File
	binaries  *build.Binaries
	spawner   *proc.Spawner
	authority *authority
	health    *http.Client
	parts     map[Component]*part
	config    *rest.Config
	dynamic   dynamic.Interface
	mapper    *resettableMapper
	leases    leases
	closing   sync.Once
}

// Start builds what the cache lacks, starts the components and returns when all
// are ready, with Flux's CRDs established and the namespace flux-system there.
// ctx governs the start only. On an error nothing is left running. Close the
// cluster in the end.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	binaries, err := build.Ensure(ctx, build.Options{Components: o.Components, Cache: o.Cache, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options: o, binaries: binaries,
		spawner: proc.NewSpawner(), health: healthClient(), parts: map[Component]*part{},
	}
	for _, name := range build.All() {
		c.parts[name] = &part{extra: o.Flags[name]}
	}
	if err := c.bringUp(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) bringUp(ctx context.Context) (err error) {
	if c.dir, c.lock, err = newStateDir(c.options.Dir); err != nil {
		return err
	}
	if c.authority, err = newAuthority(filepath.Join(c.dir, "pki")); err != nil {
		return err
	}
	if c.Git, err = newGitServer(filepath.Join(c.dir, "git"), c.LogPath("git-server")); err != nil {
		return err
	}
	if err := c.StartComponent(ctx, Etcd); err != nil {
		return err
	}
	if err := c.startUntil(ctx, APIServer, servingURL); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	// The workloads' controllers need no CRD, so they start beside the CRDs.
	workloads := c.startAll(ctx, ControllerManager, Scheduler, Kwok)
	err = c.installFlux(ctx)
	if err == nil {
		err = <-c.startAll(ctx, SourceController, KustomizeController)
	}
	if err = errors.Join(err, <-workloads); err != nil {
		return err
	}
	if c.wants(Kwok) {
		if err := c.createNode(ctx); err != nil {
			return err
		}
	}
	if err := c.awaitReady(ctx, APIServer); err != nil {
		return err
	}
	return c.keepLeases(ctx)
}

func (c *Cluster) wants(name Component) bool { return c.binaries.Path(name) != "" }

// startAll starts those of the components that are wanted, at the same time, and
// sends one error when all have started or failed.
func (c *Cluster) startAll(ctx context.Context, names ...Component) <-chan error {
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		if c.wants(name) {
			group.Go(func() { errs[i] = c.StartComponent(ctx, name) })
		}
	}
	done := make(chan error, 1)
	go func() {
		group.Wait()
		done <- errors.Join(errs...)
	}()
	return done
}

// connect writes the kubeconfigs and makes the administrator's clients.
func (c *Cluster) connect() error {
	if err := c.authority.tokenKubeconfig(c.Kubeconfig(), c.ServerURL(), adminUser); err != nil {
		return err
	}
	for name, user := range users() {
		if err := c.authority.tokenKubeconfig(c.componentKubeconfig(name), c.ServerURL(), user); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	// Tests must not be slowed down by client-side throttling.
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "standup-test-cluster"
	config.WarningHandler = rest.NoWarnings{}
	c.config = config
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.mapper, err = newMapper(config); err != nil {
		return err
	}
	c.Audit = newAuditLog(c.auditPath(), config)
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig, readable by its
// owner only.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// RESTConfig is a copy of the administrator's client configuration, without
// client-side throttling to speak of.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Dynamic is the administrator's client for any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// ServerURL is the API server's address.
func (c *Cluster) ServerURL() string { return "https://" + c.parts[APIServer].ports.addr("serve") }

// Dir is the cluster's state directory.
func (c *Cluster) Dir() string { return c.dir }

// Close ends every component at once, without their leave since their state dies
// with them, and removes the state directory. It may be called again.
func (c *Cluster) Close() error {
	var errs []error
	c.closing.Do(func() {
		c.leases.stop()
		// What writes goes before what it writes to.
		for _, name := range []Component{
			KustomizeController, SourceController, Kwok, Scheduler, ControllerManager, APIServer, Etcd,
		} {
			errs = append(errs, c.Kill(name))
		}
		if c.Git != nil {
			errs = append(errs, c.Git.close())
		}
		c.spawner.Close()
		if c.lock != nil {
			errs = append(errs, releaseState(c.dir, c.lock, c.options.Keep))
		}
	})
	return errors.Join(errs...)
}
