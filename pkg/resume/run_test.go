package resume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/test/model"
)

// liveModel is the model as a Cluster, in the virtual time of a synctest bubble.
type liveModel struct {
	mu      sync.Mutex
	model   *model.Cluster
	began   time.Time
	changed bool
	kick    chan struct{}
	refuse  error
	watches int
	patches []Object
}

func newLiveModel(list []model.Tier) *liveModel {
	l := &liveModel{model: model.New(list), began: time.Now(), kick: make(chan struct{}, 1), changed: true}
	l.model.OnChange = func() { l.changed = true }
	return l
}

func (l *liveModel) now() time.Time { return model.Start().Add(time.Since(l.began)) }

func (l *liveModel) Watch(ctx context.Context, onChange func(flux.Snapshot)) error {
	l.watches++
	for {
		l.mu.Lock()
		l.model.Advance(l.now())
		changed, s := l.changed, l.model.Snapshot()
		l.changed = false
		next, ok := l.model.Next()
		l.mu.Unlock()
		if changed {
			onChange(s)
		}
		wait := time.Hour
		if ok {
			wait = next.Sub(l.now())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.kick:
		case <-time.After(wait):
		}
	}
}

func (l *liveModel) Patch(_ context.Context, o Object, patch []byte) error {
	time.Sleep(5 * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return l.refuse
	}
	l.model.Advance(l.now())
	key, _ := o.Tier()
	_, err := l.model.Patch(key, patch)
	l.patches = append(l.patches, o)
	select {
	case l.kick <- struct{}{}:
	default:
	}
	return err
}

func TestRunBringsAChainUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(10, nil))
		lease := &countingLease{}
		var finished *Summary
		err := Run(t.Context(), l, Options{Graph: l.model.Graph(), Lease: lease}, func(e Event) {
			if e.Kind == EventFinished {
				finished = e.Summary
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if l.watches != 1 || len(l.patches) != 10 || finished == nil || finished.Ready != 10 || finished.Nudged != 10 {
			t.Errorf("%d watches, %d patches, summary %+v", l.watches, len(l.patches), finished)
		}
		if got := fmt.Sprint(lease.acquired, lease.released); got != "1 1" {
			t.Errorf("lease taken and released: got %s, want once each", got)
		}
		l.patches = nil
		if err := Run(t.Context(), l, Options{Graph: l.model.Graph(), Lease: lease}, func(Event) {}); err != nil || len(l.patches) > 0 {
			t.Errorf("second run: %v, patches %v", err, l.patches)
		}
		if lease.acquired != 1 {
			t.Error("the second run took the lease with nothing to write")
		}
	})
}

func TestRunEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(3, func(_ int, t *model.Tier) { t.Apply = time.Minute }))
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("interrupted")
		time.AfterFunc(10*time.Second, func() { cancel(stop) })
		err := Run(ctx, l, Options{Graph: l.model.Graph()}, func(Event) {})
		var notReady *NotReadyError
		if !errors.As(err, &notReady) || !errors.Is(err, stop) || len(notReady.Pending) != 3 {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunTimesOutAndNamesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(2, func(_ int, t *model.Tier) { t.Apply = time.Hour }))
		err := Run(t.Context(), l, Options{Graph: l.model.Graph(), Timeout: 30 * time.Second}, func(Event) {})
		const want = "2 tiers not ready after 30s (timed out)\nKustomization/flux-system/tier-00: working: Progressing: Reconciliation in progress"
		if !errors.Is(err, ErrTimeout) {
			t.Fatalf("got %v", err)
		}
		var notReady *NotReadyError
		if !errors.As(err, &notReady) || err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	})
}

func TestRunStopsWhenWritesAreForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(2, nil))
		l.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "kustomizations"}, "tier-00", errors.New("no"))
		err := Run(t.Context(), l, Options{Graph: l.model.Graph()}, func(Event) {})
		var refused *WriteError
		if !errors.As(err, &refused) || refused.Action.Object.Name != "tier-00" || refused.Action.Verb != Nudge {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunTellsWhoHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(2, nil))
		held := &HeldError{Holder: "ada@box/1"}
		err := Run(t.Context(), l, Options{Graph: l.model.Graph(), Lease: &countingLease{held: held}}, func(Event) {})
		if !errors.Is(err, held) || len(l.patches) > 0 {
			t.Errorf("got %v and %d patches", err, len(l.patches))
		}
	})
}

func TestRunStopsWhenTheLeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLiveModel(chain(3, func(_ int, t *model.Tier) { t.Apply = time.Minute }))
		lease := &countingLease{}
		time.AfterFunc(70*time.Second, func() { lease.takeOver(&HeldError{Holder: "bob@box/2"}) })
		err := Run(t.Context(), l, Options{Graph: l.model.Graph(), Lease: lease}, func(Event) {})
		var held *HeldError
		if !errors.As(err, &held) || held.Holder != "bob@box/2" {
			t.Errorf("got %v", err)
		}
	})
}

func TestSuspendGoesInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := chain(4, nil)
		l := newLiveModel(list)
		g := l.model.Graph()
		for i, tier := range g.Tiers {
			tier.Wave = i
		}
		var order []string
		if err := SuspendTiers(t.Context(), l, Options{Graph: g}, func(e Event) {
			if e.Action != nil {
				order = append(order, e.Action.Object.Name)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if want := []string{"tier-03", "tier-02", "tier-01", "tier-00"}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
		l.patches = nil
		if err := SuspendTiers(t.Context(), l, Options{Graph: g}, func(Event) {}); err != nil || len(l.patches) > 0 {
			t.Errorf("second time: %v, patches %v", err, l.patches)
		}
		if err := Run(t.Context(), l, Options{Graph: g}, func(Event) {}); err != nil {
			t.Errorf("resuming: %v", err)
		}
	})
}

// countingLease is a Lease that remembers what was done with it.
type countingLease struct {
	mu                 sync.Mutex
	acquired, released int
	held               *HeldError
}

func (l *countingLease) takeOver(held *HeldError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

func (l *countingLease) err() error {
	if l.held != nil {
		return l.held
	}
	return nil
}

func (l *countingLease) Acquire(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acquired++
	return l.err()
}

func (l *countingLease) Renew(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err()
}

func (l *countingLease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released++
	return nil
}
