package resume

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// machine is a run without its I/O: snapshots and results go in, commands and events come out. It
// belongs to one goroutine.
type machine struct {
	*Dispatcher
	emit     func(Event)
	memory   Memory
	snapshot flux.Snapshot
	last     Decision
	shown    map[Object]shown
	seen     bool // a snapshot has been read
	started  time.Time
	deadline time.Time
	inFlight int
	// freeing counts the tiers that are being freed, since when there is any.
	freeing      int
	freeingSince time.Time
	lease        leaseState
	meter        meter
	summary      Summary
	fatal        error
}

type leaseState int

const (
	leaseFree leaseState = iota
	leaseWanted
	leaseHeld
)

// command is something to carry out: a patch, a call of Options.Free, or the taking of the lease.
type command struct {
	Action
	patch []byte
	lease bool
}

// result is how a command ended.
type result struct {
	command
	outcome FreeOutcome
	err     error
}

func newMachine(d *Dispatcher, emit func(Event)) *machine {
	m := &machine{Dispatcher: d, emit: emit, shown: make(map[Object]shown), meter: newMeter(d.opts.Workers)}
	if d.opts.Lease == nil {
		m.lease = leaseHeld
	}
	return m
}

// observe takes in a snapshot.
func (m *machine) observe(s flux.Snapshot, now time.Time) {
	m.snapshot = s
	m.meter.observe(s, now)
	if !m.seen {
		m.seen, m.started = true, now
		timeout := m.opts.Timeout
		if timeout <= 0 {
			timeout = TotalLimit(m.opts.Graph, m.opts.TierTimeout)
		}
		m.deadline = now.Add(timeout)
	}
}

// next decides what to do now. wake is when to ask again, whatever happens; over means that the run
// has ended, with the error that end returns.
func (m *machine) next(ctx context.Context, now time.Time) (commands []command, wake time.Time, over bool) {
	if !m.seen || m.fatal != nil {
		return nil, time.Time{}, m.fatal != nil
	}
	first := m.last.Standings == nil
	m.last = m.Decide(ctx, m.snapshot, m.memory, now)
	m.memory = m.last.Memory
	m.report(first, now)
	if m.last.Done || m.late(now) || m.opts.FailFast && m.failed() {
		return nil, time.Time{}, true
	}
	wake = m.last.Wake
	if m.deadline.After(now) && (wake.IsZero() || m.deadline.Before(wake)) {
		wake = m.deadline
	}
	return m.commands(now), wake, false
}

// late reports whether the run has had its time. The time that was reckoned from the graph does not
// go by while a tier is being freed, which may take longer than any tier.
func (m *machine) late(now time.Time) bool {
	return !now.Before(m.deadline) && (m.freeing == 0 || m.opts.Timeout > 0)
}

// commands turns the decision's actions into what can be started now.
func (m *machine) commands(now time.Time) []command {
	if len(m.last.Actions) == 0 || m.lease == leaseWanted {
		return nil
	}
	if m.lease == leaseFree {
		m.lease = leaseWanted
		return []command{{lease: true}}
	}
	var commands []command
	for _, a := range m.last.Actions {
		if m.inFlight >= m.opts.Parallel {
			break
		}
		c := command{Action: a}
		if a.Verb == Free {
			m.memory = m.memory.with(a.Object, func(n *note) { n.freeing = true })
			if m.freeing++; m.freeing == 1 {
				m.freeingSince = now
			}
		} else {
			m.memory = m.memory.sent(a, now, m.snapshot)
			c.patch = patchFor(a.Verb, m.memory.note(a.Object).token)
		}
		m.inFlight++
		commands = append(commands, c)
	}
	return commands
}

func patchFor(verb Verb, token string) []byte {
	switch verb {
	case Resume:
		return flux.ResumePatch(token)
	case Reset:
		return flux.ResetPatch(token)
	case Force:
		return flux.ForcePatch(token)
	case Nudge, Free, Suspend:
	}
	return flux.NudgePatch(token)
}

// finish takes in how a command ended.
func (m *machine) finish(r result, now time.Time) {
	switch {
	case r.lease:
		m.lease = leaseHeld
		if r.err != nil {
			m.fatal = r.err
			return
		}
		m.emit(Event{Time: now, Kind: EventLease})
		return
	case r.Verb == Free:
		m.freed(r, now)
	case r.err == nil:
		m.memory = m.memory.arrived(r.Object, now)
		m.count(r.Verb)
		m.emit(Event{Time: now, Kind: EventAction, Action: &r.Action})
		if r.Verb == Resume && m.inGit(r.Object) {
			m.warn(r.Object, now, "git suspends it: its parent's next pass suspends it again")
		}
	default:
		m.refused(r, now)
	}
	m.inFlight--
}

// inGit reports whether git itself suspends an object.
func (m *machine) inGit(o Object) bool {
	key, isTier := o.Tier()
	if t := m.tiers[key]; isTier && t != nil && t.Suspend {
		return true
	}
	switch o.Kind {
	case kustomizev1.KustomizationKind:
		k := m.snapshot.Kustomizations[key]
		return k != nil && flux.SuspendedInGit(k, true)
	case helmv2.HelmReleaseKind:
		h := m.snapshot.HelmReleases[key]
		return h != nil && flux.SuspendedInGit(h, true)
	}
	src := m.snapshot.Sources[flux.SourceRef(o)]
	return src != nil && src.SuspendedInGit
}

// freed takes in the outcome of Options.Free. One that fails is tried again with back-off, and given
// up in the end: then Flux's own message says what is wrong.
func (m *machine) freed(r result, now time.Time) {
	if m.freeing--; m.freeing == 0 && m.opts.Timeout <= 0 {
		m.deadline = m.deadline.Add(now.Sub(m.freeingSince))
	}
	m.summary.Applied += r.outcome.Applied
	m.summary.Writes += r.outcome.Applied
	m.memory = m.memory.with(r.Object, func(n *note) {
		n.freeing = false
		switch {
		case r.err != nil && n.freeErrors < freeAttempts && !r.outcome.Hopeless:
			n.freeAgain = now.Add(backoff(healRetry, healRetryMax, n.freeErrors))
			n.freeErrors++
		case r.err != nil:
			n.freeGivenUp = true
		case r.outcome.Freed:
			n.freshlyFreed, n.freeErrors = true, 0
			n.runnable, n.spent = time.Time{}, 0 // its time begins now
			if r.Why == WhySuspected {
				n.suspected, n.patient = time.Time{}, false
				n.suspicions++
			} else {
				n.freed = true
			}
		case r.outcome.Retry > 0:
			n.freeAgain = now.Add(r.outcome.Retry)
		default:
			n.freeGivenUp = true
		}
	})
	if r.err != nil {
		m.warn(r.Object, now, "freeing: %v", r.err)
		return
	}
	m.emit(Event{Time: now, Kind: EventAction, Action: &r.Action, Message: r.outcome.Message})
}

const (
	freeAttempts  = 3
	patchAttempts = 12
)

// refused takes in a patch that failed. Conflicts, timeouts and a server that is away are tried
// again, with the same token: one that did arrive has no second effect.
func (m *machine) refused(r result, now time.Time) {
	attempts := m.memory.note(r.Object).errors
	m.memory = m.memory.failed(r.Object, now)
	switch {
	case apierrors.IsForbidden(r.err), apierrors.IsUnauthorized(r.err), apierrors.IsInvalid(r.err), attempts >= patchAttempts:
		m.fatal = &WriteError{Action: r.Action, Err: r.err}
	case apierrors.IsNotFound(r.err): // the snapshot will show it
	default:
		m.warn(r.Object, now, "%s: %v; trying again", r.Verb, r.err)
	}
}

func (m *machine) warn(o Object, now time.Time, format string, args ...any) {
	m.emit(Event{Time: now, Kind: EventWarning, Object: &o, Message: fmt.Sprintf(format, args...)})
}

func (m *machine) count(verb Verb) {
	m.summary.Writes++
	switch verb {
	case Resume:
		m.summary.Resumed++
	case Nudge, Reset, Force:
		m.summary.Nudged++
	case Free, Suspend:
	}
}

// shown is what an event about a tier has last said.
type shown struct {
	phase  Phase
	cause  Cause
	status flux.Status
}

// report emits what stands elsewhere than before.
func (m *machine) report(first bool, at time.Time) {
	if first {
		m.emit(Event{Time: at, Kind: EventStarted, Standings: m.last.Standings})
	}
	for _, s := range m.last.Standings {
		now := shown{s.Phase, s.Cause, s.Status}
		now.status.Since = metav1.Time{}
		if m.shown[s.Object] == now {
			continue
		}
		m.shown[s.Object] = now
		if _, isTier := s.Object.Tier(); isTier && !first {
			m.emit(Event{Time: at, Kind: EventStanding, Standing: &s})
		}
	}
}

// failed reports whether a selected tier has failed for good by itself.
func (m *machine) failed() bool {
	for _, s := range m.last.Standings {
		if s.Selected && s.Phase == Stopped && (s.Cause == CauseFailed || s.Cause == CauseTimeout || s.Cause == CauseExpression) {
			return true
		}
	}
	return false
}

// end closes the run and returns its error. cause is why it ends early, or nil.
func (m *machine) end(now time.Time, cause error) error {
	m.meter.account(now)
	m.summary.Load = m.meter.load
	if m.seen {
		m.summary.Elapsed = now.Sub(m.started)
	}
	var pending []Standing
	for _, s := range m.last.Standings {
		if _, isTier := s.Object.Tier(); !isTier || !s.Selected {
			continue
		}
		m.summary.Tiers++
		switch s.Phase {
		case Settled:
			m.summary.Ready++
		case Held:
			m.summary.Held++
		case Working, Blocked, Failing, Stopped:
			pending = append(pending, s)
		}
	}
	summary := m.summary
	m.emit(Event{Time: now, Kind: EventFinished, Summary: &summary})
	switch {
	case m.fatal != nil:
		return m.fatal
	case !m.seen:
		return cause
	case len(pending) == 0:
		return nil
	case cause == nil && !m.last.Done && m.late(now):
		cause = ErrTimeout
	}
	return &NotReadyError{Pending: pending, Standings: m.last.Standings, Snapshot: m.snapshot, Elapsed: m.summary.Elapsed, Err: cause}
}
