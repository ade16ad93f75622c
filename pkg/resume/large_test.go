package resume

import (
	"fmt"
	"testing"
	"time"

	"github.com/standup-sh/standup/test/model"
)

// layered returns layers of tiers, each of which depends on two of the layer before.
func layered(layers, width int, change func(*model.Tier)) []model.Tier {
	list := []model.Tier{{Name: model.Namespace, Interval: 10 * time.Minute, Apply: time.Second}}
	for l := range layers {
		for w := range width {
			t := model.Tier{
				Name: fmt.Sprintf("t%02d-%03d", l, w), Parent: model.Namespace, Interval: time.Hour,
				Build: 50 * time.Millisecond, Apply: 100 * time.Millisecond,
			}
			if l > 0 {
				t.DependsOn = []string{fmt.Sprintf("t%02d-%03d", l-1, w), fmt.Sprintf("t%02d-%03d", l-1, (w+1)%width)}
			}
			if change != nil {
				change(&t)
			}
			list = append(list, t)
		}
	}
	return list
}

func TestThousandTiers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	h := newHarness(t, model.New(layered(10, 100, nil)), Options{})
	h.delay = 50 * time.Millisecond
	begin := time.Now()
	if err := h.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	h.check(t)
	for key, writes := range h.writes {
		if writes > 2 {
			t.Errorf("%s: %d writes, want at most 2", key, writes)
		}
	}
	t.Logf("%s of virtual time in %s", h.elapsed().Round(time.Second), time.Since(begin).Round(time.Millisecond))
	clear(h.writes)
	h.begin()
	if err := h.run(time.Hour); err != nil || len(h.writes) > 0 {
		t.Errorf("second run: %v, %d tiers written to", err, len(h.writes))
	}
}

// TestWorkersAreTheLimit is the case of a hundred tiers, each of which holds one of four workers for
// a poll of its health check.
func TestWorkersAreTheLimit(t *testing.T) {
	deployments := func(t *model.Tier) { t.Wait, t.Health, t.Timeout = true, 2*time.Second, 5*time.Minute }
	var took []time.Duration
	for _, workers := range []int{4, 20} {
		c := model.New(layered(10, 10, deployments))
		c.Workers = workers
		var summary *Summary
		h := newHarness(t, c, Options{})
		note := h.machine.emit
		h.machine.emit = func(e Event) {
			if e.Kind == EventFinished {
				summary = e.Summary
			}
			note(e)
		}
		if err := h.run(time.Hour); err != nil {
			t.Fatal(err)
		}
		h.check(t)
		took = append(took, summary.Elapsed)
		advice := summary.Load.Advice(summary.Elapsed)
		t.Logf("%d workers: %s, %+v, %q", workers, summary.Elapsed.Round(time.Second), summary.Load, advice)
		if (advice != "") != (workers == 4) {
			t.Errorf("%d workers: advice %q", workers, advice)
		}
	}
	work := 100 * (5*time.Second + 150*time.Millisecond) / 4
	if limit := work * 5 / 4; took[0] > limit {
		t.Errorf("took %s with 4 workers, want at most %s: 1.25 times the work divided among them", took[0], limit)
	}
	path := 10 * (5*time.Second + 150*time.Millisecond)
	if limit := path * 5 / 4; took[1] > limit {
		t.Errorf("took %s with 20 workers, want at most %s: 1.25 times the critical path", took[1], limit)
	}
}

// Fifty tiers that appear at once keep the controller busy by themselves: a request is of use only
// while a worker is free.
func TestNewTiersAreAskedOnlyWhileAWorkerIsFree(t *testing.T) {
	h := newHarness(t, model.New(layered(1, 50, nil)), Options{})
	if err := h.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	h.check(t)
	writes := 0
	for _, n := range h.writes {
		writes += n
	}
	if writes > 25 {
		t.Errorf("%d writes for 50 tiers that need none", writes)
	}
}

func BenchmarkDecideThousandTiers(b *testing.B) {
	h := newHarness(b, model.New(layered(10, 100, nil)), Options{})
	h.RunUntil(20*time.Second, func() bool { return h.over })
	b.ResetTimer()
	for b.Loop() {
		h.machine.Decide(b.Context(), h.machine.snapshot, h.machine.memory, h.Now())
	}
}
