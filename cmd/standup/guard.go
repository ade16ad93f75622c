package main

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/resume"
)

const releaseTimeout = 5 * time.Second

// guard holds the lease from a run's first write to its end. A run that writes nothing takes none.
type guard struct {
	// ctx ends with the command's, and when the lease is lost.
	ctx   context.Context
	lease *resume.ClusterLease

	cancel  context.CancelCauseFunc
	renewer sync.WaitGroup
}

func (s *session) newGuard(c *cli.Context) *guard {
	g := &guard{lease: s.lease(c)}
	g.ctx, g.cancel = context.WithCancelCause(c.Context)
	return g
}

// begin takes the lease, and keeps it from then on. On a cluster that has no namespace for Flux yet
// it lies in kube-system: that keeps two such runs apart, and no other can be at work before Flux.
func (g *guard) begin(ctx context.Context) error {
	namespaces := g.lease.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := namespaces.Get(ctx, g.lease.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		g.lease.Namespace = metav1.NamespaceSystem
	}
	if err := g.lease.Acquire(ctx); err != nil {
		return err
	}
	g.renewer.Go(g.renew)
	return nil
}

// renew ends the run when someone else has taken the lease over. Any other failure is tried again
// at the next turn.
func (g *guard) renew() {
	ticker := time.NewTicker(resume.RenewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-ticker.C:
		}
		if err := g.lease.Renew(g.ctx); is[*resume.HeldError](err) {
			g.cancel(err)
			return
		}
	}
}

// end gives the lease up, also when the command was interrupted. lost says who has taken it over
// meanwhile.
func (g *guard) end() (lost, err error) {
	cause := context.Cause(g.ctx)
	g.cancel(nil)
	g.renewer.Wait()
	if held, ok := errors.AsType[*resume.HeldError](cause); ok {
		return held, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), releaseTimeout)
	defer cancel()
	return nil, g.lease.Release(ctx)
}
