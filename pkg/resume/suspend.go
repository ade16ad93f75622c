package resume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// SuspendTiers suspends the selected tiers, those that nothing needs first: a wave is begun when all
// of the wave above it are suspended. Tiers that are suspended already, or do not exist, are left.
// What was suspended is written nowhere: [Run] resumes every tier that git does not suspend. A pass
// that runs is not interrupted.
//
// Of the options only Graph, Selection, Parallel and Lease count. emit is called from the goroutine
// that called SuspendTiers. A write that is refused ends the run after its wave, with a *WriteError
// for each.
func SuspendTiers(ctx context.Context, cluster Cluster, opts Options, emit func(Event)) error {
	opts = opts.withDefaults()
	selected, err := opts.Selection.Of(opts.Graph)
	if err != nil {
		return err
	}
	s, err := firstSnapshot(ctx, cluster)
	if err != nil {
		return err
	}
	waves := suspendWaves(opts.Graph, selected, s)
	if len(waves) == 0 {
		return nil
	}
	if opts.Lease != nil {
		if err := opts.Lease.Acquire(ctx); err != nil {
			return err
		}
		emit(Event{Time: time.Now(), Kind: EventLease})
		defer func() {
			release, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer done()
			if err := opts.Lease.Release(release); err != nil {
				emit(Event{Time: time.Now(), Kind: EventWarning, Message: err.Error()})
			}
		}()
	}
	for _, wave := range waves {
		if err := suspendWave(ctx, cluster, wave, opts.Parallel, emit); err != nil {
			return err
		}
	}
	return nil
}

// PlanSuspend says what [SuspendTiers] would do on a snapshot, in the order in which it would be done.
// Its errors are those of [Selection.Of].
func PlanSuspend(opts Options, s flux.Snapshot) ([]Step, error) {
	selected, err := opts.Selection.Of(opts.Graph)
	if err != nil {
		return nil, err
	}
	waves := make(map[tiers.Key]int, len(opts.Graph.Tiers))
	for _, t := range opts.Graph.Tiers {
		waves[t.Key] = t.Wave
	}
	var steps []Step
	for _, o := range slices.Concat(suspendWaves(opts.Graph, selected, s)...) {
		key, _ := o.Tier()
		steps = append(steps, Step{Tier: key, Wave: waves[key], Verb: Suspend, Standing: Standing{Object: o, Selected: true}})
	}
	return steps, nil
}

// suspendWaves lists what is to be suspended, the last wave of the graph first.
func suspendWaves(g *tiers.Graph, selected map[tiers.Key]bool, s flux.Snapshot) [][]Object {
	var todo []*tiers.Tier
	for _, t := range g.Tiers {
		if k := s.Kustomizations[t.Key]; selected[t.Key] && k != nil && !k.Spec.Suspend {
			todo = append(todo, t)
		}
	}
	slices.SortStableFunc(todo, func(a, b *tiers.Tier) int { return cmp.Compare(b.Wave, a.Wave) })
	var waves [][]Object
	for i, t := range todo {
		if i == 0 || todo[i-1].Wave != t.Wave {
			waves = append(waves, nil)
		}
		waves[len(waves)-1] = append(waves[len(waves)-1], tierObject(t.Key))
	}
	return waves
}

func suspendWave(ctx context.Context, cluster Cluster, wave []Object, parallel int, emit func(Event)) error {
	errs := make([]error, len(wave))
	slots := make(chan struct{}, parallel)
	done := make(chan int)
	var patches sync.WaitGroup
	for i, o := range wave {
		patches.Go(func() {
			slots <- struct{}{}
			errs[i] = patchAgain(ctx, cluster, o, flux.SuspendPatch())
			<-slots
			done <- i
		})
	}
	go func() { patches.Wait(); close(done) }()
	for i := range done {
		if errs[i] == nil {
			emit(Event{Time: time.Now(), Kind: EventAction, Action: &Action{Verb: Suspend, Object: wave[i], Why: WhyAsked}})
		} else {
			errs[i] = &WriteError{Action: Action{Verb: Suspend, Object: wave[i], Why: WhyAsked}, Err: errs[i]}
		}
	}
	return errors.Join(errs...)
}

// patchAgain sends a patch that may be sent twice, until the server has an answer.
func patchAgain(ctx context.Context, cluster Cluster, o Object, patch []byte) error {
	for attempt := 0; ; attempt++ {
		err := cluster.Patch(ctx, o, patch)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), attempt >= patchAttempts:
			return err
		}
		timer := time.NewTimer(backoff(patchRetry, patchRetryMax, attempt))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// errEnough ends a watch that has shown what is there.
var errEnough = errors.New("read")

func firstSnapshot(ctx context.Context, cluster Cluster) (flux.Snapshot, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var first flux.Snapshot
	err := cluster.Watch(ctx, func(s flux.Snapshot) {
		if first.Kustomizations == nil {
			first = s
			cancel(errEnough)
		}
	})
	if errors.Is(context.Cause(ctx), errEnough) {
		return first, nil
	}
	return first, err
}
