package tiers

import (
	"context"
	"runtime"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// state is a tier while it is being discovered.
type state struct {
	tier *Tier
	// raw is the Kustomization as rendered, with the fields of its own API version.
	raw *unstructured.Unstructured
	// depth is the number of parents above it.
	depth int
	src   *render.Source
	res   *render.Result
	err   error
	built bool
	// look is the folder's build before anything was known of this Kustomization, where that serves it too.
	look *render.Result
}

// build renders tiers on all cores.
func (l *loader) build(ctx context.Context, batch []*state) error {
	opts := render.Options{Lookup: l.lookup, Vars: l.opts.Vars, AllowRemoteBases: l.opts.AllowRemoteBases}
	if !l.opts.Objects {
		opts.Want = l.wanted.want
	}
	work := make(chan *state, len(batch))
	for _, s := range batch {
		work <- s
	}
	close(work)
	return unlessDone(ctx, func() {
		var wg sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), len(batch)) {
			wg.Go(func() {
				for s := range work {
					s.build(ctx, opts)
				}
			})
		}
		wg.Wait()
	})
}

func (s *state) build(ctx context.Context, opts render.Options) {
	s.built = true
	switch {
	case s.look != nil:
		s.src.Finish(s.look, s.raw, opts)
		s.res, s.look = s.look, nil
	case s.src != nil:
		s.res, s.err = s.src.Build(ctx, s.raw, opts)
	}
}

// unlessDone waits for f, or for the end of ctx: kustomize cannot be interrupted, and an interrupted
// load is over whatever still becomes of its builds.
func unlessDone(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return ctx.Err()
}
