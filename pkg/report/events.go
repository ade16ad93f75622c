package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

// Lines prints the events of runs as one line a change, for logs and pipes:
//
//	4.2s  platform         ready
//	4.2s  platform-config  nudged: dependencies ready
//
// It is not safe for concurrent use.
type Lines struct {
	W io.Writer
	// Namespace is left out of names.
	Namespace string
	// Start is the moment that times are counted from.
	Start time.Time
	// Width is the column that texts begin at, behind the names; 0 means 20.
	Width int

	// said is the last text about each name: what has not changed is not said again.
	said map[string]string
}

func (l *Lines) line(at time.Time, name, format string, args ...any) {
	width := l.Width
	if width == 0 {
		width = 20
	}
	text := fmt.Sprintf(format, args...)
	if l.said == nil {
		l.said = map[string]string{}
	}
	if name != "" && l.said[name] == text {
		return
	}
	l.said[name] = text
	fmt.Fprintf(l.W, "%7s  %-*s  %s\n", fmt.Sprintf("%.1fs", max(0, at.Sub(l.Start).Seconds())), width, name, text)
}

func (l *Lines) object(o resume.Object) string {
	if key, ok := o.Tier(); ok {
		return Name(key, l.Namespace)
	}
	if o.Namespace == l.Namespace {
		return o.Kind + "/" + o.Name
	}
	return o.String()
}

// Resume prints one event of pkg/resume.
func (l *Lines) Resume(e resume.Event) {
	switch e.Kind {
	case resume.EventStarted:
		l.line(e.Time, "", "%s", tally(e.Standings))
	case resume.EventAction:
		if e.Action.Verb == resume.Free {
			if e.Message != "" { // CRDs tells the rest
				l.line(e.Time, l.object(e.Action.Object), "not freed yet: %s", e.Message)
			}
			return
		}
		l.line(e.Time, l.object(e.Action.Object), "%s: %s%s", pastTense(e.Action.Verb), e.Action.Why, detail(e.Message))
	case resume.EventStanding:
		l.line(e.Time, l.object(e.Standing.Object), "%s", l.standing(*e.Standing))
	case resume.EventWarning:
		name := ""
		if e.Object != nil {
			name = l.object(*e.Object)
		}
		l.line(e.Time, name, "warning: %s", strings.ReplaceAll(e.Message, "\n", "; "))
	case resume.EventLease:
		l.line(e.Time, "", "holding the lease")
	case resume.EventFinished:
		s := e.Summary
		applied := ""
		if s.Applied > 0 {
			applied = fmt.Sprintf(", %d applied", s.Applied)
		}
		l.line(e.Time, "", "%d of %s ready after %s; %s: %d resumed, %d nudged%s", s.Ready, count(s.Tiers, "tier"), Duration(s.Elapsed),
			count(s.Writes, "write"), s.Resumed, s.Nudged, applied)
		if advice := s.Load.Advice(s.Elapsed); advice != "" {
			l.line(e.Time, "", "%s", advice)
		}
	}
}

// standing says in one line where a tier stands.
func (l *Lines) standing(s resume.Standing) string {
	switch s.Phase {
	case resume.Settled:
		return "ready"
	case resume.Working:
		return "reconciling"
	case resume.Blocked:
		return "waits" + l.blockers(s.Blockers)
	case resume.Failing:
		return "failed, will be tried again" + detail(firstLine(wait.Mask(s.Status.Message)))
	}
	return fmt.Sprintf("%s: %s%s%s", s.Phase, s.Cause, l.blockers(s.Blockers), detail(firstLine(wait.Mask(s.Status.Message))))
}

func (l *Lines) blockers(blockers []resume.Blocker) string {
	text := ""
	for i, b := range blockers {
		if i == 0 {
			text = " for "
		} else {
			text += ", "
		}
		text += l.object(b.Object)
	}
	return text
}

// CRDs prints one event of pkg/crds, at the given moment.
func (l *Lines) CRDs(at time.Time, e crds.Event) {
	name := Name(e.Tier, l.Namespace)
	switch e.Kind {
	case crds.EventPartial:
		l.line(at, name, "applying all of the tier whose kinds exist: %s", e.Message)
	case crds.EventWrite:
		if e.Write.Action == crds.Unchanged {
			return // one line a change
		}
		l.line(at, name, "%s %s: %s", e.Write.ID(), e.Write.Action, e.Write.Why)
	case crds.EventExcluded:
		l.line(at, name, "%s left out: %s", e.Excluded.Object, e.Excluded.Reason)
	case crds.EventWaiting:
		if e.Message == "" {
			e.Message = "waits for " + strings.Join(kindNames(e.Kinds), ", ")
		}
		l.line(at, name, "%s", e.Message)
	case crds.EventServed:
		for _, k := range e.Kinds {
			l.line(at, name, "%s (%s) is served", k.Kind, k.GroupVersion())
		}
	case crds.EventNudged:
		l.line(at, name, "nudged: freed")
	case crds.EventPassed:
		l.line(at, name, "ready")
	}
}

// Wait prints one event of pkg/wait. The summary is left to Status and Diagnoses.
func (l *Lines) Wait(e wait.Event) {
	switch e := e.(type) {
	case wait.TierChanged:
		l.line(e.At, Name(e.Status.Key, l.Namespace), "%s%s", e.To, detail(statusMessage(e.Status)))
	case wait.Progress:
		l.line(e.At, "", "%d of %s ready%s", e.Ready, count(e.Total, "tier"), l.firstCause(e.Causes))
	case wait.Dropped:
		l.line(e.At, "", "warning: the watch of %s broke and is taken up again: %v", e.Kind, e.Err)
	}
}

// firstCause is what holds things up before anything else: all that a line that comes every few
// seconds has room for.
func (l *Lines) firstCause(causes []wait.Diagnosis) string {
	if len(causes) == 0 {
		return ""
	}
	return "; " + DiagnosisLine(causes[0], l.Namespace)
}

func pastTense(v resume.Verb) string {
	switch v {
	case resume.Resume:
		return "resumed"
	case resume.Nudge:
		return "nudged"
	case resume.Reset:
		return "reset"
	case resume.Force:
		return "forced"
	case resume.Suspend:
		return "suspended"
	}
	return string(v)
}

// tally counts where the selected tiers stand at the beginning.
func tally(standings []resume.Standing) string {
	total, ready := 0, 0
	for _, s := range standings {
		if _, tier := s.Object.Tier(); tier && s.Selected {
			total++
			if s.Phase == resume.Settled {
				ready++
			}
		}
	}
	return fmt.Sprintf("%d of %s ready", ready, count(total, "tier"))
}

func detail(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
