package resume

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
)

// Run brings the selected tiers up and returns when all are ready, or when nothing more can be
// done. emit is called from the goroutine that called Run and must return quickly.
//
// Its errors: *NotReadyError when selected tiers are not ready in the end, also when ctx ends (then
// it wraps ctx's cause) or the time is up (then it wraps [ErrTimeout]); *HeldError when another run
// holds the lease; *WriteError when a write is refused for good; *UnknownTierError from the selection;
// and those of [Cluster].Watch. Tiers that git suspends are left, and are no error.
func Run(ctx context.Context, cluster Cluster, opts Options, emit func(Event)) error {
	dispatcher, err := NewDispatcher(opts)
	if err != nil {
		return err
	}
	r := &run{machine: newMachine(dispatcher, emit), cluster: cluster, results: make(chan result)}
	return r.loop(ctx)
}

// run carries out what a machine says.
type run struct {
	*machine
	cluster Cluster
	results chan result
	workers sync.WaitGroup
	leaseMu sync.Mutex // a Lease is used from one goroutine at a time
}

func (r *run) loop(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer r.workers.Wait()
	defer cancel()
	snapshots, watching := r.watch(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	renew := time.NewTicker(RenewEvery)
	defer renew.Stop()
	for {
		select {
		case <-parent.Done():
			return r.stop(parent, cancel, context.Cause(parent))
		case err := <-watching:
			if parent.Err() == nil {
				r.fatal = err
			}
			return r.stop(parent, cancel, err)
		case s := <-snapshots:
			r.observe(s, time.Now())
			r.drain(snapshots)
		case res := <-r.results:
			r.finish(res, time.Now())
			r.drain(snapshots)
		case <-renew.C:
			r.renewLease(ctx)
			continue
		case <-timer.C:
		}
		commands, wake, over := r.next(ctx, time.Now())
		if over {
			return r.stop(parent, cancel, nil)
		}
		for _, c := range commands {
			r.start(ctx, c)
		}
		if !wake.IsZero() {
			timer.Reset(max(time.Until(wake), time.Millisecond))
		}
	}
}

// drain takes in what else has come in meanwhile, so that one decision serves it all.
func (r *run) drain(snapshots <-chan flux.Snapshot) {
	for {
		select {
		case s := <-snapshots:
			r.observe(s, time.Now())
		case res := <-r.results:
			r.finish(res, time.Now())
		default:
			return
		}
	}
}

// watch hands over the latest snapshot only: what a slow decision misses, the next one has.
func (r *run) watch(ctx context.Context) (<-chan flux.Snapshot, <-chan error) {
	snapshots, failed := make(chan flux.Snapshot, 1), make(chan error, 1)
	r.workers.Go(func() {
		failed <- r.cluster.Watch(ctx, func(s flux.Snapshot) {
			select {
			case <-snapshots:
			default:
			}
			snapshots <- s // one slot, and this is the only sender
		})
	})
	return snapshots, failed
}

// start carries out a command and hands its result to the loop.
func (r *run) start(ctx context.Context, c command) {
	r.workers.Go(func() {
		res := result{command: c}
		switch {
		case c.lease:
			r.leaseMu.Lock()
			res.err = r.opts.Lease.Acquire(ctx)
			r.leaseMu.Unlock()
		case c.Verb != Free:
			res.err = r.cluster.Patch(ctx, c.Object, c.patch)
		case r.opts.Free != nil:
			key, _ := c.Object.Tier()
			res.outcome, res.err = r.opts.Free(ctx, key)
		}
		select {
		case r.results <- res:
		case <-ctx.Done():
		}
	})
}

// renewLease keeps the lease while the run lasts. The result goes the way of every other.
func (r *run) renewLease(ctx context.Context) {
	if r.opts.Lease == nil || r.lease != leaseHeld {
		return
	}
	r.workers.Go(func() {
		r.leaseMu.Lock()
		err := r.opts.Lease.Renew(ctx)
		r.leaseMu.Unlock()
		var held *HeldError
		if !errors.As(err, &held) {
			return // tried again in a third of the lease's time
		}
		select {
		case r.results <- result{command: command{lease: true}, err: err}:
		case <-ctx.Done():
		}
	})
}

// stop ends the run: nothing is rolled back, and the lease is given up even if ctx is over.
func (r *run) stop(parent context.Context, cancel context.CancelFunc, cause error) error {
	cancel()
	r.workers.Wait()
	if r.opts.Lease != nil {
		ctx, done := context.WithTimeout(context.WithoutCancel(parent), 5*time.Second)
		defer done()
		if err := r.opts.Lease.Release(ctx); err != nil {
			r.emit(Event{Time: time.Now(), Kind: EventWarning, Message: err.Error()})
		}
	}
	return r.end(time.Now(), cause)
}
