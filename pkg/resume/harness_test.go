package resume

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/model"
)

// harness drives a machine against the model, in virtual time and without goroutines.
type harness struct {
	*model.Cluster
	t    testing.TB
	opts Options

	machine *machine
	runs    int // how often the run was started
	over    bool
	err     error

	coming  bool          // a snapshot is on its way
	asked   bool          // a decision is
	delay   time.Duration // how long a snapshot takes
	dropped time.Time
	waking  time.Time

	// patchFate decides what becomes of a patch; nil: it arrives.
	patchFate func() fate
	// free carries out Options.Free and says how long it takes.
	free  func(tiers.Key) (FreeOutcome, time.Duration, error)
	frees []freeing

	writes map[tiers.Key]int
	log    []string
	wrong  []string
}

// freeing is one call of Options.Free.
type freeing struct {
	tier string
	at   time.Duration
}

// fate is what becomes of a patch.
type fate int

const (
	arrives fate = iota
	conflicts
	lostOnTheWay
	answerLost // it is applied, and the client does not learn it
)

const (
	watchDelay = 10 * time.Millisecond
	patchDelay = 12 * time.Millisecond
)

func newHarness(t testing.TB, c *model.Cluster, opts Options) *harness {
	h := &harness{Cluster: c, t: t, opts: opts, delay: watchDelay, writes: map[tiers.Key]int{}}
	if h.opts.Graph == nil {
		h.opts.Graph = c.Graph()
	}
	c.OnChange = h.changed
	h.begin()
	return h
}

// begin starts a run, as after a kill: with nothing in memory.
func (h *harness) begin() {
	d, err := NewDispatcher(h.opts)
	if err != nil {
		h.t.Fatal(err)
	}
	h.runs++
	h.over, h.err, h.waking = false, nil, time.Time{}
	h.machine = newMachine(d, h.note)
	h.changed()
}

func (h *harness) note(e Event) {
	switch {
	case e.Action != nil:
		h.log = append(h.log, fmt.Sprintf("%8s %s %s (%s)", h.Now().Sub(model.Start()).Round(time.Millisecond), e.Action.Verb, e.Action.Object.Name, e.Action.Why))
	case e.Kind == EventWarning:
		h.log = append(h.log, fmt.Sprintf("%8s %s", h.Now().Sub(model.Start()).Round(time.Millisecond), e.Message))
	case e.Standing != nil:
		h.log = append(h.log, fmt.Sprintf("%8s %s %s %s %s", h.Now().Sub(model.Start()).Round(time.Millisecond), e.Standing.Object.Name, e.Standing.Phase, e.Standing.Cause, e.Standing.Status.Reason))
	}
}

// changed brings the next snapshot on its way.
func (h *harness) changed() {
	if h.coming {
		return
	}
	h.coming = true
	h.After(max(h.delay, h.dropped.Sub(h.Now())), h.deliver)
}

func (h *harness) deliver() {
	if h.Now().Before(h.dropped) {
		h.After(h.dropped.Sub(h.Now()), h.deliver)
		return
	}
	h.coming = false
	if !h.over {
		h.machine.observe(h.Snapshot(), h.Now())
		h.step()
	}
}

// step lets the machine decide and carries out what it says.
func (h *harness) step() {
	if h.over {
		return
	}
	commands, wake, over := h.machine.next(h.t.Context(), h.Now())
	if over {
		h.over, h.err = true, h.machine.end(h.Now(), nil)
		return
	}
	for _, c := range commands {
		h.carryOut(c)
	}
	if !wake.IsZero() && (h.waking.IsZero() || wake.Before(h.waking) || !h.waking.After(h.Now())) {
		h.waking = wake
		run := h.runs
		h.After(max(wake.Sub(h.Now()), 0), func() {
			if run == h.runs {
				h.waking = time.Time{}
				h.step()
			}
		})
	}
}

func (h *harness) carryOut(c command) {
	key, isTier := c.Object.Tier()
	if !isTier {
		h.wrong = append(h.wrong, fmt.Sprintf("unexpected %s of %s", c.Verb, c.Object))
		return
	}
	h.mustBeReady(c, key)
	if c.Verb == Free {
		h.frees = append(h.frees, freeing{key.Name, h.elapsed()})
		outcome, takes, err := h.free(key)
		h.answer(takes, result{command: c, outcome: outcome, err: err})
		return
	}
	end := arrives
	if h.patchFate != nil {
		end = h.patchFate()
	}
	resource := schema.GroupResource{Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations"}
	switch end {
	case conflicts:
		h.answer(patchDelay, result{command: c, err: apierrors.NewConflict(resource, key.Name, errors.New("the object has been modified"))})
		return
	case lostOnTheWay:
		h.answer(5*time.Second, result{command: c, err: apierrors.NewTimeoutError("request timed out", 1)})
		return
	case arrives, answerLost:
	}
	h.After(patchDelay/2, func() {
		changed, err := h.Patch(key, c.patch)
		if err != nil {
			h.wrong = append(h.wrong, err.Error())
		}
		if changed {
			h.writes[key]++
		}
	})
	if end == answerLost {
		h.answer(5*time.Second, result{command: c, err: apierrors.NewTimeoutError("request timed out", 1)})
		return
	}
	h.answer(patchDelay, result{command: c})
}

// answer brings a result back, unless the run it belongs to was killed.
func (h *harness) answer(after time.Duration, r result) {
	run := h.runs
	h.After(after, func() {
		if run == h.runs && !h.over {
			h.machine.finish(r, h.Now())
			h.soon()
		}
	})
}

// soon decides once for all that comes in at the same time, as the runner does.
func (h *harness) soon() {
	if h.asked {
		return
	}
	h.asked = true
	h.After(0, func() {
		h.asked = false
		h.step()
	})
}

// mustBeReady checks that nothing is touched before its dependencies are ready, with code of its own
// and on the snapshot that the decision was made on.
func (h *harness) mustBeReady(c command, key tiers.Key) {
	s := h.machine.snapshot
	rev := s.Sources[model.Source()].Revision
	for _, name := range h.Tier(key).DependsOn {
		dep := s.Kustomizations[model.Key(name)]
		if dep == nil || !apimeta.IsStatusConditionTrue(dep.Status.Conditions, "Ready") ||
			dep.Generation != dep.Status.ObservedGeneration || dep.Status.LastAppliedRevision != rev ||
			dep.Spec.Suspend && !h.Tier(model.Key(name)).InGit {
			h.wrong = append(h.wrong, fmt.Sprintf("%s: %s of %s before %s is ready", h.Now().Sub(model.Start()), c.Verb, key.Name, name))
		}
	}
}

// run drives until the run is over; it fails the test if that takes longer than limit.
func (h *harness) run(limit time.Duration) error {
	if !h.RunUntil(limit, func() bool { return h.over }) {
		h.wrong = append(h.wrong, fmt.Sprintf("not over after %s", limit))
	}
	return h.err
}

func (h *harness) elapsed() time.Duration { return h.Now().Sub(model.Start()) }

// fluxAlone runs the model without standup until every tier is settled.
func fluxAlone(t testing.TB, c *model.Cluster, limit time.Duration) time.Duration {
	g := c.Graph()
	done := func() bool {
		s := c.Snapshot()
		for _, tier := range g.Tiers {
			if k := s.Kustomizations[tier.Key]; k == nil || !flux.Settled(k, s) {
				return false
			}
		}
		return true
	}
	if !c.RunUntil(limit, done) {
		t.Errorf("flux alone: not settled after %s", limit)
	}
	return c.Now().Sub(model.Start())
}
