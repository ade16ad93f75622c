package report

import (
	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/tiers"
)

// DiffDocument is the machine-readable form of a diff: the contract of `standup diff -o json`.
// Fields are only ever added.
type DiffDocument struct {
	From          string                 `json:"from"`
	To            string                 `json:"to"`
	Added         []string               `json:"added"`
	Removed       []string               `json:"removed"`
	Changed       []ChangeDocument       `json:"changed"`
	AddedEdges    []EdgeDocument         `json:"addedEdges"`
	RemovedEdges  []EdgeDocument         `json:"removedEdges"`
	Reordered     []ReorderDocument      `json:"reordered"`
	Moves         []MoveDocument         `json:"moves"`
	Losses        []LossDocument         `json:"losses"`
	Gone          []GoneDocument         `json:"gone"`
	Preconditions []PreconditionDocument `json:"preconditions"`
	Fallback      []FallbackDocument     `json:"fallback"`
	Unknown       []string               `json:"unknown"`
}

// ChangeDocument is one setting of a tier that differs.
type ChangeDocument struct {
	Tier   string `json:"tier"`
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// ReorderDocument is a pair of tiers whose order changes.
type ReorderDocument struct {
	First    string `json:"first"`
	Then     string `json:"then"`
	Reversed bool   `json:"reversed"`
}

// MoveDocument is an object that another tier applies than before.
type MoveDocument struct {
	Object   string `json:"object"`
	Group    string `json:"group"`
	From     string `json:"from"`
	To       string `json:"to"`
	FromFile string `json:"fromFile,omitempty"`
	ToFile   string `json:"toFile,omitempty"`
	Outcome  string `json:"outcome"`
	Why      string `json:"why"`
	Lost     string `json:"lost,omitempty"`
	Severity string `json:"severity"`
}

// LossDocument is an object that no tier applies any more.
type LossDocument struct {
	Object   string `json:"object"`
	Group    string `json:"group"`
	Tier     string `json:"tier"`
	File     string `json:"file,omitempty"`
	Deleted  bool   `json:"deleted"`
	Why      string `json:"why"`
	Lost     string `json:"lost,omitempty"`
	Severity string `json:"severity"`
}

// GoneDocument is a tier that leaves git.
type GoneDocument struct {
	Tier    string   `json:"tier"`
	Deletes bool     `json:"deletes"`
	Why     string   `json:"why"`
	Objects int      `json:"objects"`
	Moves   int      `json:"moves"`
	Below   []string `json:"below"`
}

// PreconditionDocument is a tier that must be Ready on the target before merging.
type PreconditionDocument struct {
	Tier    string   `json:"tier"`
	Why     string   `json:"why"`
	Objects []string `json:"objects"`
	// Holds is absent unless a cluster was asked.
	Holds *bool  `json:"holds,omitempty"`
	State string `json:"state,omitempty"`
}

// FallbackDocument is the way by which what leaves a tier is adopted.
type FallbackDocument struct {
	Tier  string         `json:"tier"`
	Steps []StepDocument `json:"steps"`
}

// StepDocument is one step of a FallbackDocument.
type StepDocument struct {
	Title    string   `json:"title"`
	Edits    []string `json:"edits,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// NewDiffDocument converts a diff, keeping its order. Lists are never null.
func NewDiffDocument(d *diff.Diff, o DiffOptions) DiffDocument {
	out := DiffDocument{
		From: d.From, To: d.To, Added: keyStrings(d.Added), Removed: keyStrings(d.Removed), Unknown: keyStrings(d.Unknown),
		AddedEdges: edgeDocuments(d.AddedEdges), RemovedEdges: edgeDocuments(d.RemovedEdges),
		Changed: []ChangeDocument{}, Reordered: []ReorderDocument{}, Moves: []MoveDocument{}, Losses: []LossDocument{},
		Gone: []GoneDocument{}, Preconditions: preconditionDocuments(d, o), Fallback: fallbackDocuments(d, o),
	}
	for _, c := range d.Changed {
		out.Changed = append(out.Changed, ChangeDocument{c.Tier.String(), c.Field, c.Before, c.After})
	}
	for _, r := range d.Reordered {
		out.Reordered = append(out.Reordered, ReorderDocument{r.First.String(), r.Then.String(), r.Reversed})
	}
	for _, m := range d.Moves {
		out.Moves = append(out.Moves, MoveDocument{m.String(), m.Group, m.From.String(), m.To.String(), m.FromFile, m.ToFile,
			string(m.Outcome), m.Why, m.Lost, string(m.Severity)})
	}
	for _, l := range d.Losses {
		out.Losses = append(out.Losses, LossDocument{l.String(), l.Group, l.Tier.String(), l.File, l.Deleted, l.Why, l.Lost, string(l.Severity)})
	}
	for _, g := range d.Gone {
		out.Gone = append(out.Gone, GoneDocument{g.Tier.String(), g.Deletes, g.Why, g.Objects, g.Moves, keyStrings(g.Below)})
	}
	return out
}

func edgeDocuments(edges []tiers.Edge) []EdgeDocument {
	out := make([]EdgeDocument, 0, len(edges))
	for _, e := range edges {
		out = append(out, EdgeDocument{From: e.From.String(), To: e.To.String(), Kind: string(e.Kind)})
	}
	return out
}

func preconditionDocuments(d *diff.Diff, o DiffOptions) []PreconditionDocument {
	out := make([]PreconditionDocument, 0, len(d.Preconditions))
	for _, p := range d.Preconditions {
		doc := PreconditionDocument{Tier: p.Tier.String(), Why: p.Why, Objects: p.Objects}
		if o.Checked {
			holds := true
			for _, v := range o.Violations {
				if v.Tier == p.Tier {
					holds, doc.State = false, v.State
				}
			}
			doc.Holds = &holds
		}
		out = append(out, doc)
	}
	return out
}

func fallbackDocuments(d *diff.Diff, o DiffOptions) []FallbackDocument {
	out := []FallbackDocument{}
	if o.Before == nil {
		return out
	}
	for _, from := range d.MovedFrom() {
		doc := FallbackDocument{Tier: from.String(), Steps: []StepDocument{}}
		for _, s := range d.Fallback(from, o.Before) {
			doc.Steps = append(doc.Steps, StepDocument(s))
		}
		if len(doc.Steps) > 0 {
			out = append(out, doc)
		}
	}
	return out
}
