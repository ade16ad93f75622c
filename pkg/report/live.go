package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

// Live is what a terminal shows while a run goes on: the tiers that move or are in trouble, one a
// line, and the rest counted, so that it stays readable with hundreds of them. It only remembers
// and draws; who owns the terminal calls View. It is not safe for concurrent use.
type Live struct {
	// Title is the first line's beginning, such as "standup up · clusters/prod".
	Title string
	// Namespace is left out of names.
	Namespace string
	Start     time.Time
	// Color allows colours.
	Color bool

	rows map[string]*liveRow
	last string // the last thing that happened, for the bottom line
}

// liveRow is one tier.
type liveRow struct {
	name  string
	wave  int
	rank  liveRank
	text  string
	since time.Time
}

// liveRank sorts rows: what needs eyes first.
type liveRank int

const (
	rankTrouble liveRank = iota
	rankMoving
	rankWaiting
	rankReady
)

func (l *Live) row(name string) *liveRow {
	if l.rows == nil {
		l.rows = map[string]*liveRow{}
	}
	r := l.rows[name]
	if r == nil {
		r = &liveRow{name: name, rank: rankWaiting}
		l.rows[name] = r
	}
	return r
}

func (r *liveRow) set(at time.Time, rank liveRank, text string) {
	if r.rank != rank || r.since.IsZero() {
		r.since = at
	}
	r.rank, r.text = rank, text
}

// Waves tells the rows' waves; rows without one count as wave 0.
func (l *Live) Waves(statuses []wait.TierStatus) {
	for _, s := range statuses {
		l.row(Name(s.Key, l.Namespace)).wave = s.Wave
	}
}

// Resume takes in one event of pkg/resume.
func (l *Live) Resume(e resume.Event) {
	lines := &Lines{Namespace: l.Namespace}
	switch e.Kind {
	case resume.EventStarted:
		for _, s := range e.Standings {
			l.standing(e.Time, lines, s)
		}
	case resume.EventStanding:
		l.standing(e.Time, lines, *e.Standing)
	case resume.EventAction:
		if e.Action.Verb != resume.Free {
			l.last = fmt.Sprintf("%s %s: %s", lines.object(e.Action.Object), pastTense(e.Action.Verb), e.Action.Why)
		}
	case resume.EventWarning:
		l.last = "warning: " + e.Message
	}
}

func (l *Live) standing(at time.Time, lines *Lines, s resume.Standing) {
	if _, tier := s.Object.Tier(); !tier || !s.Selected {
		return
	}
	rank := rankWaiting
	switch s.Phase {
	case resume.Settled:
		rank = rankReady
	case resume.Working:
		rank = rankMoving
	case resume.Failing, resume.Stopped:
		rank = rankTrouble
	}
	l.row(lines.object(s.Object)).set(at, rank, lines.standing(s))
}

// CRDs takes in one event of pkg/crds, at the given moment.
func (l *Live) CRDs(at time.Time, e crds.Event) {
	var text strings.Builder
	lines := &Lines{W: &text, Namespace: l.Namespace, Start: at}
	lines.CRDs(at, e)
	if line := strings.Join(strings.Fields(text.String()), " "); line != "" {
		l.last = strings.TrimPrefix(line, "0.0s ")
	}
}

// Wait takes in one event of pkg/wait.
func (l *Live) Wait(e wait.Event) {
	switch e := e.(type) {
	case wait.TierChanged:
		rank := rankWaiting
		switch e.To {
		case wait.Ready:
			rank = rankReady
		case wait.Reconciling:
			rank = rankMoving
		case wait.Failed:
			rank = rankTrouble
		}
		r := l.row(Name(e.Status.Key, l.Namespace))
		r.wave = e.Status.Wave
		r.set(e.At, rank, string(e.To)+detail(statusMessage(e.Status)))
	case wait.Dropped:
		l.last = fmt.Sprintf("warning: the watch of %s broke and is taken up again: %v", e.Kind, e.Err)
	}
}

// View draws at most height lines of at most width columns.
func (l *Live) View(width, height int, now time.Time) string {
	rows := make([]*liveRow, 0, len(l.rows))
	ready := 0
	for _, r := range l.rows {
		if r.rank == rankReady {
			ready++
			continue
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *liveRow) int {
		if c := int(a.rank) - int(b.rank); c != 0 {
			return c
		}
		if c := a.wave - b.wave; c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	lines := []string{fmt.Sprintf("%s · %d of %s ready · %s", l.Title, ready, count(len(l.rows), "tier"), Duration(now.Sub(l.Start)))}
	room := max(1, height-3) // the title, the rest, the last event
	shown := rows[:min(room, len(rows))]
	names := 0
	for _, r := range shown {
		names = max(names, len(r.name))
	}
	for _, r := range shown {
		lines = append(lines, fmt.Sprintf("  %s %-*s  %6s  %s", l.mark(r.rank), names, r.name, age(r.since, now), r.text))
	}
	if rest := len(rows) - len(shown); rest > 0 {
		lines = append(lines, fmt.Sprintf("  … and %d more", rest))
	}
	if l.last != "" {
		lines = append(lines, "  "+l.last)
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(strings.ReplaceAll(line, "\n", " "), width, "…")
	}
	return strings.Join(lines, "\n") + "\n"
}

// mark is a sign, and a colour where allowed, for what a tier is doing.
func (l *Live) mark(rank liveRank) string {
	sign, color := "·", "8"
	switch rank {
	case rankTrouble:
		sign, color = "✗", "1"
	case rankMoving:
		sign, color = "►", "4"
	}
	if !l.Color {
		return sign
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(sign)
}
