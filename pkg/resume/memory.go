package resume

import (
	"maps"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
)

// Memory is what a run remembers about the objects it looks after. Nothing in it outlives the run
// and nothing in it is needed to go on after one: it only keeps a run from doing twice what the
// cluster does not show yet, and from asking too often. The zero value is a run that begins.
type Memory struct {
	notes map[Object]note
	// progress is when a tier was last seen to settle.
	progress time.Time
	// quiet is since when nothing moves but tiers that may be stuck; zero while something does.
	quiet time.Time
}

// note is one object's part of the memory.
type note struct {
	// token is the last request sent, before what the object's request was until then.
	token, before string
	sentAt        time.Time
	sending       bool // the patch has not returned yet
	pending       bool // the patch failed and is sent again with the same token
	errors        int
	notBefore     time.Time // no patch before this time

	turnedAway int // requests made of a tier that Flux had turned away at its dependencies

	revision     string        // the source's revision that the following is about
	runnable     time.Time     // since when nothing keeps the object from a pass
	spent        time.Duration // how long nothing kept it before that
	renewed      time.Time     // the progress that last gave a failing object its time anew
	idle         time.Time     // since when Flux could have begun one and has not
	failure      time.Time     // the transition of the failure last seen
	failureSeen  time.Time     // when it was seen
	healed       int           // requests made because a failure may heal
	settled      bool          // was seen settled at this revision
	reset        bool          // the release's counters were reset
	freeing      bool
	freed        bool
	freeGivenUp  bool
	freeAgain    time.Time
	freeErrors   int
	freshlyFreed bool      // freed, and no request made since
	suspected    time.Time // since when the tier may be stuck; zero: it is not
	patient      bool      // what it lacks may still come by itself
	suspicions   int       // how often it was freed all the same
}

func (m Memory) note(o Object) note { return m.notes[o] }

// with returns a memory that differs in one note; m is not changed.
func (m Memory) with(o Object, change func(*note)) Memory {
	notes := maps.Clone(m.notes)
	if notes == nil {
		notes = make(map[Object]note)
	}
	n := notes[o]
	change(&n)
	notes[o] = n
	return Memory{notes: notes, progress: m.progress, quiet: m.quiet}
}

// sent records that an action's patch goes out. A patch that failed before keeps its token, so that
// it has no effect if it did arrive.
func (m Memory) sent(a Action, now time.Time, s flux.Snapshot) Memory {
	return m.with(a.Object, func(n *note) {
		n.sending = true
		if !n.pending {
			n.token, n.pending = flux.Token(now), true
			n.before, _ = request(a.Object, s)
			count(n, a)
		}
		n.sentAt, n.idle = now, time.Time{}
	})
}

// count records what kind of request was made.
func count(n *note, a Action) {
	n.freshlyFreed = false
	switch a.Why {
	case WhyHeal:
		n.healed++
	case WhyDependencies:
		n.turnedAway++
	case WhyReset:
		n.reset = true
	case WhySuspended, WhyNew, WhyFreed, WhyIdle, WhyStuck, WhySuspected, WhyAsked:
	}
}

// arrived records that a patch was accepted.
func (m Memory) arrived(o Object, now time.Time) Memory {
	return m.with(o, func(n *note) {
		n.sending, n.pending, n.errors, n.sentAt = false, false, 0, now
	})
}

// failed records that a patch was not accepted, or that its fate is not known.
func (m Memory) failed(o Object, now time.Time) Memory {
	return m.with(o, func(n *note) {
		n.sending = false
		n.notBefore = now.Add(backoff(patchRetry, patchRetryMax, n.errors))
		n.errors++
	})
}

// The back-offs, each doubling from the first value to the second.
const (
	patchRetry    = 200 * time.Millisecond
	patchRetryMax = 5 * time.Second
	healRetry     = 5 * time.Second
	healRetryMax  = 30 * time.Second
	blockedRetry  = time.Second
	// Later than this Flux looks by itself.
	blockedRetryMax = flux.DependencyRequeue
)

// backoff returns first, doubled n times, at most limit.
func backoff(first, limit time.Duration, n int) time.Duration {
	d := first
	for range n {
		if d >= limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}
