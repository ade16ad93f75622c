package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	leaseRenewal  = 5 * time.Second
	leaseDuration = 35 * time.Second
	microTime     = "2006-01-02T15:04:05.000000Z07:00"
)

// leases keeps the Leases that Flux's controllers would hold as pods. They cannot
// themselves: outside of a pod they know no namespace to hold them in, so leader
// election is off. Each Lease is written as the user whose it is.
type leases struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// keepLeases writes the Leases of the Flux controllers that run and renews them,
// as their holders would, until stopped.
func (c *Cluster) keepLeases(ctx context.Context) error {
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.leases.cancel = cancel
	for _, name := range []Component{SourceController, KustomizeController} {
		if !c.wants(name) {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", c.componentKubeconfig(name))
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client for %s: %w", name, err)
		}
		if err := c.renewLease(ctx, client, name); err != nil {
			return err
		}
		c.leases.done.Go(func() { c.renewLoop(renewing, client, name) })
	}
	return nil
}

func (l *leases) stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.done.Wait()
}

// renewLoop misses a renewal while the API server is away, as its holder would.
func (c *Cluster) renewLoop(ctx context.Context, client dynamic.Interface, name Component) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			attempt, cancel := context.WithTimeout(ctx, leaseRenewal)
			_ = c.renewLease(attempt, client, name)
			cancel()
		}
	}
}

// renewLease renews nothing for a controller that does not run: its Lease
// expires.
func (c *Cluster) renewLease(ctx context.Context, client dynamic.Interface, name Component) error {
	pid := c.PID(name)
	if pid == 0 {
		return nil
	}
	gvk := schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	lease := object(gvk, fluxNamespace, string(name)+"-leader-election", map[string]any{
		"holderIdentity":       fmt.Sprintf("%s_%d", name, pid),
		"leaseDurationSeconds": int64(leaseDuration / time.Second),
		"renewTime":            time.Now().UTC().Format(microTime),
	})
	_, err := client.Resource(gvk.GroupVersion().WithResource("leases")).Namespace(fluxNamespace).
		Apply(ctx, lease.GetName(), lease, metav1.ApplyOptions{FieldManager: string(name), Force: true})
	if err != nil {
		return fmt.Errorf("%s: renewing: %w", objectName(lease), err)
	}
	return nil
}
