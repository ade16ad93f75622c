package wait

import (
	"fmt"
	"time"

	"github.com/standup-sh/standup/pkg/tiers"
)

// Event is something that [Run] has to say. It is one of [TierChanged], [Progress], [Dropped] and
// [Summary].
type Event interface{ event() }

// TierChanged says that a tier is in another state than before, or for the first time seen in one.
type TierChanged struct {
	At       time.Time
	From, To State // From is "" for a tier that was not seen before
	Status   TierStatus
}

// Progress says from time to time how far things are, and what holds them up as far as the snapshot
// tells without further reading.
type Progress struct {
	At      time.Time
	Elapsed time.Duration
	Ready   int
	Total   int
	Causes  []Diagnosis
}

// Dropped says that a list or a watch broke and is tried again: what is shown may be old.
type Dropped struct {
	At   time.Time
	Kind string
	Err  error
}

// Summary is the last event of every run that had a first snapshot.
type Summary struct {
	At       time.Time
	Elapsed  time.Duration
	Statuses []TierStatus
	Causes   []Diagnosis // empty when every tier is ready
}

func (TierChanged) event() {}
func (Progress) event()    {}
func (Dropped) event()     {}
func (Summary) event()     {}

// Ready counts the tiers that are.
func (s Summary) Ready() int { return countReady(s.Statuses) }

func countReady(statuses []TierStatus) int {
	ready := 0
	for _, s := range statuses {
		if s.Settled() {
			ready++
		}
	}
	return ready
}

// NotReadyError says that tiers were not ready when waiting ended, and why. It unwraps to one error
// a cause and to what ended the wait, such as context.DeadlineExceeded.
type NotReadyError struct {
	// Pending are the tiers that were not ready, in the graph's order.
	Pending   []TierStatus
	Total     int
	Diagnoses []Diagnosis
	// Elapsed is how long the wait took; Err is what ended it: [ErrTimeout], [ErrFailFast].
	Elapsed time.Duration
	Err     error
}

func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("waiting for %s: %v after %s", tierCount(e.Total), e.Err, roughly(e.Elapsed))
	text += fmt.Sprintf(", %d not ready", len(e.Pending))
	if len(e.Diagnoses) > 0 {
		text += ": " + e.Diagnoses[0].line()
		if n := len(e.Diagnoses) - 1; n > 0 {
			text += fmt.Sprintf(" (and %d more)", n)
		}
	}
	return text
}

func tierCount(n int) string {
	if n == 1 {
		return "1 tier"
	}
	return fmt.Sprintf("%d tiers", n)
}

func (e *NotReadyError) Unwrap() []error {
	errs := []error{e.Err}
	for _, d := range e.Diagnoses {
		errs = append(errs, &CauseError{d})
	}
	return errs
}

// CauseError is one diagnosis as an error.
type CauseError struct{ Diagnosis }

func (e *CauseError) Error() string { return e.line() }

// line is the diagnosis in one line: the tier, then what is wrong.
func (d Diagnosis) line() string {
	return fmt.Sprintf("Kustomization/%s: %s", d.Tier, d.Summary)
}

// Error values that say what ended a wait.
const (
	ErrTimeout  sentinel = "timed out"
	ErrFailFast sentinel = "stopped at the first failure"
)

type sentinel string

func (s sentinel) Error() string { return string(s) }

// SelectionError says that a tier was asked for that the graph does not have.
type SelectionError struct{ Key tiers.Key }

func (e *SelectionError) Error() string {
	return fmt.Sprintf("selecting Kustomization/%s: no such tier in the graph", e.Key)
}
