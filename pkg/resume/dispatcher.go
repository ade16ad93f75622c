package resume

import (
	"context"
	"maps"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Dispatcher decides which objects to touch. It is immutable and safe for concurrent use.
type Dispatcher struct {
	opts     Options
	tiers    map[tiers.Key]*tiers.Tier
	selected map[tiers.Key]bool
	children map[tiers.Key][]tiers.Key
	appliers map[flux.SourceRef]tiers.Key // which tier of the graph applies a source
}

// NewDispatcher prepares the decisions for a graph. Its errors are those of [Selection.Of].
func NewDispatcher(opts Options) (*Dispatcher, error) {
	selected, err := opts.Selection.Of(opts.Graph)
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{
		opts:     opts.withDefaults(),
		tiers:    make(map[tiers.Key]*tiers.Tier, len(opts.Graph.Tiers)),
		selected: selected,
		children: make(map[tiers.Key][]tiers.Key),
		appliers: make(map[flux.SourceRef]tiers.Key),
	}
	for _, t := range opts.Graph.Tiers {
		d.tiers[t.Key] = t
		if t.Parent != nil {
			d.children[*t.Parent] = append(d.children[*t.Parent], t.Key)
		}
	}
	for _, e := range opts.Graph.Edges {
		if from := d.tiers[e.From]; e.Kind == tiers.Source && from != nil {
			d.appliers[flux.SourceOf(from.Kustomization)] = e.To
		}
	}
	return d, nil
}

// Decide says what to do on a snapshot, given what this run has done so far. It changes none of
// its arguments; equal arguments give equal decisions. ctx only interrupts a readyExpr.
func (d *Dispatcher) Decide(ctx context.Context, s flux.Snapshot, m Memory, now time.Time) Decision {
	c := &deciding{Dispatcher: d, ctx: ctx, s: s, now: now, notes: maps.Clone(m.notes), index: make(map[Object]*Standing)}
	if c.notes == nil {
		c.notes = make(map[Object]note)
	}
	for key, k := range s.Kustomizations {
		if c.busy(key, k) {
			c.running++
		}
	}
	c.progress, c.quiet = m.progress, m.quiet
	for key := range d.tiers {
		if k := s.Kustomizations[key]; k != nil && !c.notes[tierObject(key)].settled && flux.Settled(k, s) {
			c.change(tierObject(key), func(n *note) { n.settled = true })
			c.progress = now
		}
	}
	for _, ref := range c.sources() {
		c.add(c.source(ref))
	}
	for _, t := range d.opts.Graph.Tiers {
		c.add(c.tier(t))
	}
	c.waitForChildren()
	for _, h := range c.releases() {
		c.add(c.release(h))
	}
	c.settle()
	c.suspects()
	return c.decision()
}

// deciding is one decision being made.
type deciding struct {
	*Dispatcher
	ctx     context.Context
	s       flux.Snapshot
	now     time.Time
	notes   map[Object]note
	running int // Kustomizations in a pass now, or asked for one
	// progress is when the last tier was seen to settle: what failed before may go well after it.
	progress time.Time
	quiet    time.Time // see Memory

	all     []*Standing
	index   map[Object]*Standing
	actions []Action
	wake    time.Time
}

// busy reports whether a tier has a worker of its controller, or stands in the queue for one because
// somebody asked for a pass.
func (c *deciding) busy(key tiers.Key, k *kustomizev1.Kustomization) bool {
	if k.Spec.Suspend {
		return false
	}
	return flux.Classify(k).Reconciling || !flux.Answered(k.Annotations[flux.RequestAnnotation], k.Status.LastHandledReconcileAt) ||
		c.inFlight(tierObject(key))
}

func (c *deciding) add(s *Standing) {
	c.all = append(c.all, s)
	c.index[s.Object] = s
}

func (c *deciding) change(o Object, change func(*note)) note {
	n := c.notes[o]
	change(&n)
	c.notes[o] = n
	return n
}

func (c *deciding) wakeAt(t time.Time) {
	if c.wake.IsZero() || t.Before(c.wake) {
		c.wake = t
	}
}

// due reports whether a time has come, and sees to it that the next decision is made when it has.
func (c *deciding) due(t time.Time) bool {
	if c.now.Before(t) {
		c.wakeAt(t)
		return false
	}
	return true
}

// inFlight reports whether the object is being patched, or was and the snapshot does not show it.
func (c *deciding) inFlight(o Object) bool {
	n := c.notes[o]
	if n.sending || n.freeing {
		return true
	}
	if n.token == "" {
		return false
	}
	requested, exists := request(o, c.s)
	if exists && requested == n.token {
		if n.pending { // it did arrive, whatever its error said
			c.change(o, func(n *note) { n.pending, n.errors = false, 0 })
		}
		return false
	}
	return !n.pending && exists && requested == n.before && !c.due(n.sentAt.Add(watchLag))
}

// The times that nothing on the cluster tells.
const (
	// watchLag is how long a write may take to show in the snapshot.
	watchLag = time.Minute
	// firstRetry is how long Flux's controllers leave a new object after they have added the finalizer:
	// --min-retry-delay by default (fluxcd/pkg's runtime/controller/rate_limiter.go), the rate limiter's first step.
	firstRetry = 750 * time.Millisecond
	// idleGrace is how long Flux may take to begin a pass that it begins by itself.
	idleGrace = 10 * time.Second
	// maxHeals bounds the requests made because a failure may heal, as long as nothing else moves.
	maxHeals = 10
	// progressGrace is how long after another tier has settled a failed one is tried again, and
	// progressRetry how often that happens at most.
	progressGrace = 2 * time.Second
	progressRetry = 15 * time.Second
)

// act wants something done to an object, unless its tier must be freed first or its last patch
// failed a moment ago.
func (c *deciding) act(o Object, verb Verb, why Why) {
	if !c.free(o) && c.due(c.notes[o].notBefore) {
		c.actions = append(c.actions, Action{Verb: verb, Object: o, Why: why})
	}
}

// free wants a stuck tier freed, and reports whether that must come before anything else.
func (c *deciding) free(o Object) bool {
	n := c.notes[o]
	key, ok := o.Tier()
	if !ok || c.opts.Stuck == nil || n.freed || n.freeGivenUp || !c.opts.Stuck(key, c.s) {
		return false
	}
	if c.due(n.freeAgain) {
		c.actions = append(c.actions, Action{Verb: Free, Object: o, Why: WhyStuck})
	}
	return true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// heal wants another pass of an object whose last one failed for a reason that may pass.
func (c *deciding) heal(o Object, status flux.Status) {
	n := c.change(o, func(n *note) {
		if n.failureSeen.IsZero() || !n.failure.Equal(status.Since.Time) {
			n.failure, n.failureSeen = status.Since.Time, c.now
		}
	})
	switch {
	case c.free(o):
	case n.freshlyFreed:
		c.act(o, Nudge, WhyFreed)
	case n.healed < maxHeals && c.due(n.failureSeen.Add(backoff(healRetry, healRetryMax, n.healed))),
		c.progress.After(n.failureSeen) && c.due(latest(c.progress.Add(progressGrace), n.sentAt.Add(progressRetry))):
		c.act(o, Nudge, WhyHeal)
	}
}

// start wants a pass of an object that Flux should begin by itself, once it has had the time and
// has a worker to spare: what stands in its queue needs no request.
func (c *deciding) start(o Object) {
	n := c.change(o, func(n *note) {
		if n.idle.IsZero() {
			n.idle = c.now
		}
	})
	if c.due(n.idle.Add(idleGrace)) {
		if c.running >= c.opts.Workers {
			c.wakeAt(c.now.Add(idleGrace))
			return
		}
		c.act(o, Nudge, WhyIdle)
	}
}

// begin forgets what the memory holds about an older revision of the object's source.
func (c *deciding) begin(o Object, revision string) {
	c.change(o, func(n *note) {
		if n.revision != revision {
			n.revision = revision
			n.runnable, n.idle, n.failure, n.failureSeen = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			n.healed, n.turnedAway, n.spent, n.settled = 0, 0, 0, false
			n.suspected, n.patient, n.suspicions = time.Time{}, false, 0
		}
	})
}

// limit stops an object that nothing has kept from its pass for too long. A failing one has its time
// anew whenever another tier settles, unless the run is to fail fast: what it lacks may be what
// others bring. Time in which it was kept does not count, nor does it start the count again: a
// dependency that passes through its own interval is not progress. A tier that is being freed is not
// stopped over it, and one that waits for what may come by itself is given its time after that.
func (c *deciding) limit(st *Standing, limit time.Duration) {
	moving := len(st.Blockers) == 0 && (st.Phase == Working || st.Phase == Failing)
	n := c.change(st.Object, func(n *note) {
		switch {
		case st.Phase == Settled:
			n.healed, n.turnedAway, n.idle = 0, 0, time.Time{}
			n.runnable, n.spent = time.Time{}, 0
		case !moving && !n.runnable.IsZero():
			n.spent += c.now.Sub(n.runnable)
			n.runnable = time.Time{}
		case moving && n.runnable.IsZero():
			n.runnable = c.now
		}
		if st.Phase == Failing && !c.opts.FailFast && c.progress.After(n.renewed) {
			n.renewed, n.spent = c.progress, 0
			if moving {
				n.runnable = c.now
			}
		}
		if moving && n.patient {
			n.runnable, n.spent = c.now, 0
		}
	})
	if moving && !n.freeing && c.due(n.runnable.Add(limit-n.spent)) {
		st.Phase, st.Cause = Stopped, CauseTimeout
		c.actions = slices.DeleteFunc(c.actions, func(a Action) bool { return a.Object == st.Object })
	}
}

// decision puts the parts together.
func (c *deciding) decision() Decision {
	d := Decision{Actions: c.actions, Wake: c.wake, Memory: Memory{notes: c.notes, progress: c.progress, quiet: c.quiet}, Done: len(c.actions) == 0}
	for _, st := range c.all {
		d.Standings = append(d.Standings, *st)
		if n := c.notes[st.Object]; n.sending || n.freeing || c.awaited(st) {
			d.Done = false
		}
	}
	return d
}

// awaited reports whether the run waits for the object: for every selected tier that may still come
// up, and for the releases that are to be resumed.
func (c *deciding) awaited(st *Standing) bool {
	if st.Phase != Working && st.Phase != Blocked && st.Phase != Failing {
		return false
	}
	_, isTier := st.Object.Tier()
	return isTier && st.Selected || st.Object.Kind == helmv2.HelmReleaseKind && st.Status.State == flux.Suspended
}
