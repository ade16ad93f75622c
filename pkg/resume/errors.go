package resume

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
)

// ErrTimeout is wrapped by a NotReadyError whose run had its time.
var ErrTimeout = errors.New("timed out")

// NotReadyError says that a run ended before every selected tier was ready.
type NotReadyError struct {
	// Pending are the selected tiers that are neither settled nor held, in the graph's order.
	Pending []Standing
	// Standings are where everything stood in the end, for [Root].
	Standings []Standing
	// Snapshot is the last one read, for a diagnosis.
	Snapshot flux.Snapshot
	// Elapsed is how long the run took.
	Elapsed time.Duration
	// Err is why the run ended where it did: ErrTimeout, the context's cause, or nil when nothing
	// more could be done.
	Err error
}

func (e *NotReadyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s not ready", len(e.Pending), plural(len(e.Pending), "tier", "tiers"))
	if e.Err != nil {
		fmt.Fprintf(&b, " after %s (%v)", e.Elapsed.Round(time.Second), e.Err)
	}
	for _, root := range e.Roots() {
		fmt.Fprintf(&b, "\n%s: %s", root.Object, root.describe())
	}
	return b.String()
}

// Unwrap returns Err.
func (e *NotReadyError) Unwrap() error { return e.Err }

// Roots are the first causes, each once, in the order of the tiers that they keep from being ready.
func (e *NotReadyError) Roots() []Standing {
	var roots []Standing
	seen := make(map[Object]bool)
	for _, s := range e.Pending {
		root := Root(s.Object, e.Standings)
		if !seen[root.Object] {
			seen[root.Object] = true
			roots = append(roots, root)
		}
	}
	return roots
}

// describe says in one line why an object is where it stands.
func (s Standing) describe() string {
	parts := []string{string(s.Phase)}
	if s.Cause != CauseNone {
		parts[0] = string(s.Cause)
	}
	if s.Cause == CauseCycle && len(s.Blockers) > 0 {
		return string(s.Cause) + ": needs " + s.Blockers[0].Object.String()
	}
	if s.Status.Reason != "" {
		parts = append(parts, s.Status.Reason)
	}
	if message, _, _ := strings.Cut(s.Status.Message, "\n"); message != "" {
		parts = append(parts, message)
	}
	return strings.Join(parts, ": ")
}

// WriteError says that the API server refused a write for a reason that no repeat changes.
type WriteError struct {
	Action Action
	Err    error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("%s: asking for %s: %v", e.Action.Object, e.Action.Verb, e.Err)
}

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
