package report

import (
	"io"
	"time"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
)

// JSONLines prints the events of runs as one JSON document a line. Every line has "time" and
// "event"; the rest depends on the event. Fields are only ever added.
type JSONLines struct{ W io.Writer }

// Resume prints one event of pkg/resume.
func (j JSONLines) Resume(e resume.Event) {
	e.Time = e.Time.UTC()
	_ = JSONLine(j.W, e)
}

// freeEvent is an event of pkg/crds as JSON.
type freeEvent struct {
	Time     time.Time      `json:"time"`
	Event    string         `json:"event"`
	Tier     string         `json:"tier,omitempty"`
	Write    *WriteDocument `json:"write,omitempty"`
	Object   string         `json:"object,omitempty"`
	Kinds    []string       `json:"kinds,omitempty"`
	Message  string         `json:"message,omitempty"`
	Excluded string         `json:"excluded,omitempty"`
}

// CRDs prints one event of pkg/crds, at the given moment.
func (j JSONLines) CRDs(at time.Time, e crds.Event) {
	line := freeEvent{Time: at.UTC(), Event: string(e.Kind), Tier: keyString(e.Tier), Message: e.Message}
	if e.Write != nil {
		w := NewWriteDocument(*e.Write)
		line.Write = &w
	}
	if e.Excluded != nil {
		line.Object, line.Excluded = e.Excluded.Object, e.Excluded.Reason
	}
	for _, k := range e.Kinds {
		line.Kinds = append(line.Kinds, k.Kind+"."+k.GroupVersion().String())
	}
	_ = JSONLine(j.W, line)
}

// waitEvent is an event of pkg/wait as JSON.
type waitEvent struct {
	Time    time.Time           `json:"time"`
	Event   string              `json:"event"`
	Tier    *TierStatusDocument `json:"tier,omitempty"`
	From    string              `json:"from,omitempty"`
	Ready   *int                `json:"ready,omitempty"`
	Total   int                 `json:"total,omitempty"`
	Causes  []DiagnosisDocument `json:"causes,omitempty"`
	Message string              `json:"message,omitempty"`
}

// Wait prints one event of pkg/wait.
func (j JSONLines) Wait(e wait.Event) {
	switch e := e.(type) {
	case wait.TierChanged:
		tier := NewTierStatusDocument(e.Status)
		_ = JSONLine(j.W, waitEvent{Time: e.At.UTC(), Event: "tier", Tier: &tier, From: string(e.From)})
	case wait.Progress:
		_ = JSONLine(j.W, waitEvent{Time: e.At.UTC(), Event: "progress", Ready: &e.Ready, Total: e.Total, Causes: diagnosisDocuments(e.Causes)})
	case wait.Dropped:
		_ = JSONLine(j.W, waitEvent{Time: e.At.UTC(), Event: "dropped", Message: e.Kind + ": " + e.Err.Error()})
	}
}

// statusEvent is the last line of a run: the state of every tier.
type statusEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	StatusDocument
}

// Status prints the closing line of a run: the state of every tier, and what is in the way.
func (j JSONLines) Status(at time.Time, statuses []wait.TierStatus, causes []wait.Diagnosis) {
	_ = JSONLine(j.W, statusEvent{Time: at.UTC(), Event: "status", StatusDocument: NewStatusDocument(statuses, causes)})
}
