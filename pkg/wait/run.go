package wait

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Options say what [Run] waits for. Graph is required; everything else may be zero.
type Options struct {
	Graph *tiers.Graph
	// Tiers are the tiers to wait for; none means all of the graph. Causes are still looked for in
	// all of it.
	Tiers []tiers.Key
	// Timeout bounds the whole wait; 0 means [DefaultTimeout] of the graph, negative means none.
	Timeout time.Duration
	// FailFast ends the wait at the first failure that time alone does not cure ([Diagnosis.Final]),
	// and at a missing kind as soon as no tier is busy that might still bring it.
	FailFast bool
	// HelmReleases watches HelmReleases too, so that their failures are named at once.
	HelmReleases bool
	// ProgressEvery is the time between two Progress events; 0 means 10 s.
	ProgressEvery time.Duration
}

// Run waits until every selected tier is Ready at the current revision of its source, and tells emit
// what happens meanwhile. It only reads: who resumes and nudges is somebody else's business, or
// Flux's own.
//
// emit is called from one goroutine. The events of one snapshot come in the graph's order; the last
// event is a [Summary]. Run returns nil when all is ready, a *[NotReadyError] when the time is up or
// FailFast ends it, ctx's cause when ctx ends, and a *[WatchError] when the cluster cannot be
// watched.
func Run(ctx context.Context, clients Clients, opts Options, emit func(Event)) error {
	r := &runner{clients: clients, opts: opts, emit: emit, start: time.Now(), last: map[tiers.Key]State{}, failures: map[tiers.Key]LastFailure{}}
	if err := r.selectTiers(); err != nil {
		return err
	}
	watching, stop := context.WithCancelCause(ctx)
	snapshots := make(chan flux.Snapshot)
	drops := make(chan Dropped)
	ended := make(chan error, 1)
	var watch sync.WaitGroup
	defer watch.Wait() // after stop
	watch.Go(func() {
		ended <- Watch(watching, clients.Dynamic, WatchOptions{
			Sources: SourceKinds(opts.Graph), HelmReleases: opts.HelmReleases,
			OnDrop: func(kind string, err error) { send(watching, drops, Dropped{At: time.Now(), Kind: kind, Err: err}) },
		}, func(s flux.Snapshot) { send(watching, snapshots, s) })
	})
	defer stop(nil)
	return r.loop(ctx, snapshots, drops, ended)
}

func send[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// runner is the state of one wait.
type runner struct {
	clients  Clients
	opts     Options
	emit     func(Event)
	start    time.Time
	selected map[tiers.Key]bool // nil: all
	last     map[tiers.Key]State
	failures map[tiers.Key]LastFailure
	snapshot *flux.Snapshot
	statuses []TierStatus // of the selected tiers
}

func (r *runner) selectTiers() error {
	if len(r.opts.Tiers) == 0 {
		return nil
	}
	r.selected = map[tiers.Key]bool{}
	var errs []error
	for _, key := range r.opts.Tiers {
		if !slices.ContainsFunc(r.opts.Graph.Tiers, func(t *tiers.Tier) bool { return t.Key == key }) {
			errs = append(errs, &SelectionError{key})
		}
		r.selected[key] = true
	}
	return errors.Join(errs...)
}

func (r *runner) loop(ctx context.Context, snapshots <-chan flux.Snapshot, drops <-chan Dropped, ended <-chan error) error {
	timeout := r.opts.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout(r.opts.Graph)
	}
	var deadline <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		deadline = timer.C
	}
	every := r.opts.ProgressEvery
	if every == 0 {
		every = 10 * time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case s := <-snapshots:
			r.observe(s)
			if r.pending() == nil {
				r.summarise(nil)
				return nil
			}
			if r.opts.FailFast && r.hopeless(ctx) {
				return r.notReady(ctx, ErrFailFast)
			}
		case d := <-drops:
			r.emit(d)
		case <-ticker.C:
			r.progress(ctx)
		case <-deadline:
			return r.notReady(ctx, ErrTimeout)
		case <-ctx.Done():
			r.summarise(r.causes(context.WithoutCancel(ctx), Evidence{}))
			return context.Cause(ctx)
		case err := <-ended:
			return err
		}
	}
}

// observe takes a snapshot in and tells what has changed.
func (r *runner) observe(s flux.Snapshot) {
	now := time.Now()
	r.snapshot = &s
	r.statuses = r.statuses[:0]
	for _, status := range Status(r.opts.Graph, s, now) {
		if k := s.Kustomizations[status.Key]; k != nil && status.State == Failed {
			r.failures[status.Key] = LastFailure{Reason: status.Reason, Message: status.Message, Revision: k.Status.LastAttemptedRevision, At: status.Since}
		}
		if r.selected != nil && !r.selected[status.Key] {
			continue
		}
		r.statuses = append(r.statuses, status)
		if from := r.last[status.Key]; from != status.State {
			r.last[status.Key] = status.State
			r.emit(TierChanged{At: now, From: from, To: status.State, Status: status})
		}
	}
}

func (r *runner) pending() []TierStatus {
	var pending []TierStatus
	for _, s := range r.statuses {
		if !s.Settled() {
			pending = append(pending, s)
		}
	}
	return pending
}

// hopeless reports whether the selected tiers are held up by what time does not cure.
func (r *runner) hopeless(ctx context.Context) bool {
	causes := r.causes(ctx, Evidence{})
	busy := slices.ContainsFunc(causes, func(d Diagnosis) bool { return !d.Cause.Failure() })
	return slices.ContainsFunc(causes, func(d Diagnosis) bool {
		return d.Final(*r.snapshot) || d.Cause == KindMissing && !busy
	})
}

// causes are the causes that hold up the selected tiers.
func (r *runner) causes(ctx context.Context, evidence Evidence) []Diagnosis {
	if r.snapshot == nil {
		return nil
	}
	// A wait that was there knows better than events.
	known := map[tiers.Key]LastFailure{}
	maps.Copy(known, evidence.LastFailures)
	maps.Copy(known, r.failures)
	evidence.LastFailures = known
	all := Diagnose(ctx, r.opts.Graph, *r.snapshot, evidence, time.Now())
	if r.selected == nil {
		return all
	}
	return slices.DeleteFunc(all, func(d Diagnosis) bool { return !slices.ContainsFunc(r.opts.Tiers, d.HoldsUp) })
}

func (r *runner) progress(ctx context.Context) {
	if r.snapshot == nil {
		return
	}
	now := time.Now()
	r.emit(Progress{At: now, Elapsed: now.Sub(r.start), Ready: countReady(r.statuses), Total: len(r.statuses), Causes: r.causes(ctx, Evidence{})})
}

func (r *runner) summarise(causes []Diagnosis) {
	if r.snapshot == nil {
		return
	}
	now := time.Now()
	r.emit(Summary{At: now, Elapsed: now.Sub(r.start), Statuses: slices.Clone(r.statuses), Causes: causes})
}

// gatherTime bounds what is read for a last diagnosis, so that a run ends close to its timeout.
const gatherTime = 10 * time.Second

// notReady looks closer at what is pending, and ends the run.
func (r *runner) notReady(ctx context.Context, reason error) error {
	causes := r.causes(ctx, Evidence{})
	if r.snapshot != nil {
		bounded, cancel := context.WithTimeout(ctx, gatherTime)
		defer cancel()
		if evidence, err := Gather(bounded, r.clients, *r.snapshot, causes, time.Now()); err == nil {
			causes = r.causes(ctx, evidence)
		}
	}
	r.summarise(causes)
	return &NotReadyError{
		Pending: r.pending(), Total: r.total(), Diagnoses: causes, Elapsed: time.Since(r.start), Err: reason,
	}
}

// total is how many tiers are waited for, also before anything was seen of them.
func (r *runner) total() int {
	if r.selected != nil {
		return len(r.selected)
	}
	return len(r.opts.Graph.Tiers)
}
