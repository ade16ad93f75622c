package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/tiers"
)

// DiffFormats returns the formats that Diff writes, the default first.
func DiffFormats() []string {
	return []string{"text", "json", "yaml"}
}

// DiffOptions say how Diff prints.
type DiffOptions struct {
	// Format is one of DiffFormats; empty means text.
	Format string
	// Namespace is left out of names: the one that the reader takes for granted.
	Namespace string
	// Before is the graph the diff starts from: the way out is worked out from it.
	Before *tiers.Graph
	// Violations are preconditions that were checked on a cluster and do not hold; Checked says
	// that they were.
	Violations []diff.Violation
	Checked    bool
}

// Diff prints what changes from one graph to another. Equal diffs print equal bytes.
func Diff(w io.Writer, d *diff.Diff, o DiffOptions) error {
	switch o.Format {
	case "", "text":
		return diffText(w, d, o)
	case "json":
		return JSON(w, NewDiffDocument(d, o))
	case "yaml":
		return YAML(w, NewDiffDocument(d, o))
	}
	return &FormatError{Format: o.Format, Known: DiffFormats()}
}

func diffText(w io.Writer, d *diff.Diff, o DiffOptions) error {
	var b strings.Builder
	graphChanges(&b, d, o)
	movesText(&b, d, o)
	lossesText(&b, d, o)
	goneText(&b, d, o)
	preconditionsText(&b, d, o)
	fallbackText(&b, d, o)
	if len(d.Unknown) > 0 {
		fmt.Fprintf(&b, "Not compared, because their objects are not known: %s\n", strings.Join(names(d.Unknown, o.Namespace), ", "))
	}
	if b.Len() == 0 {
		b.WriteString("No difference between the graphs, and no object changes its tier.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func graphChanges(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	if d.SameGraph() && len(d.Reordered) == 0 {
		return
	}
	b.WriteString("Graph\n")
	for _, k := range d.Added {
		fmt.Fprintf(b, "  + tier %s\n", Name(k, o.Namespace))
	}
	for _, k := range d.Removed {
		fmt.Fprintf(b, "  - tier %s\n", Name(k, o.Namespace))
	}
	for _, c := range d.Changed {
		fmt.Fprintf(b, "  ~ tier %s: %s %s → %s\n", Name(c.Tier, o.Namespace), c.Field, dash(c.Before), dash(c.After))
	}
	// What comes and goes with a tier needs no line of its own: the parent of a new tier, and all that
	// bound one which is gone.
	for _, e := range d.AddedEdges {
		if e.Kind == tiers.Parent && slices.Contains(d.Added, e.From) {
			continue
		}
		fmt.Fprintf(b, "  + %s needs %s (%s)\n", Name(e.From, o.Namespace), Name(e.To, o.Namespace), e.Kind)
	}
	for _, e := range d.RemovedEdges {
		if slices.Contains(d.Removed, e.From) {
			continue
		}
		fmt.Fprintf(b, "  - %s needs %s (%s)\n", Name(e.From, o.Namespace), Name(e.To, o.Namespace), e.Kind)
	}
	for _, r := range d.Reordered {
		if r.Reversed {
			fmt.Fprintf(b, "  ! %s came before %s and now comes after it\n", Name(r.First, o.Namespace), Name(r.Then, o.Namespace))
		} else {
			fmt.Fprintf(b, "  ! %s came before %s and nothing orders them any more\n", Name(r.First, o.Namespace), Name(r.Then, o.Namespace))
		}
	}
	b.WriteString("\n")
}

// movesText groups the moves that share owners, outcome and reason.
func movesText(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	if len(d.Moves) == 0 {
		return
	}
	fmt.Fprintf(b, "Objects that change their tier: %d\n", len(d.Moves))
	for i, m := range d.Moves {
		if i == 0 || d.Moves[i-1].From != m.From || d.Moves[i-1].To != m.To || d.Moves[i-1].Outcome != m.Outcome || d.Moves[i-1].Why != m.Why {
			fmt.Fprintf(b, "  %s → %s: %s\n    why: %s\n", Name(m.From, o.Namespace), Name(m.To, o.Namespace), m.Outcome, m.Why)
		}
		fmt.Fprintf(b, "    %s %s", mark(m.Severity), m.ID)
		if m.ToFile != "" && m.FromFile != m.ToFile {
			fmt.Fprintf(b, "  (%s → %s)", dash(m.FromFile), m.ToFile)
		}
		b.WriteString("\n")
		if m.Lost != "" {
			fmt.Fprintf(b, "      lost: %s\n", m.Lost)
		}
	}
	b.WriteString("\n")
}

func mark(s tiers.Severity) string {
	switch s {
	case tiers.Error:
		return "!!"
	case tiers.Warning:
		return "!"
	}
	return "-"
}

func lossesText(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	if len(d.Losses) == 0 {
		return
	}
	fmt.Fprintf(b, "Objects that leave git: %d\n", len(d.Losses))
	for _, l := range d.Losses {
		what := "stays on the cluster, owned by nobody"
		if l.Deleted {
			what = "deleted"
		}
		fmt.Fprintf(b, "  %s %s in %s: %s\n", mark(l.Severity), l.ID, Name(l.Tier, o.Namespace), what)
		if l.Lost != "" && l.Severity == tiers.Error {
			fmt.Fprintf(b, "      lost: %s\n", l.Lost)
		}
	}
	b.WriteString("\n")
}

func goneText(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	for _, g := range d.Gone {
		fmt.Fprintf(b, "Tier %s leaves git: %s\n", Name(g.Tier, o.Namespace), g.Why)
		if g.Deletes {
			fmt.Fprintf(b, "  %s deleted, %s taken over by other tiers\n", count(g.Objects, "object"), count(g.Moves, "object"))
		}
		if len(g.Below) > 0 {
			fmt.Fprintf(b, "  and with it the tiers that it holds: %s\n", strings.Join(names(g.Below, o.Namespace), ", "))
		}
		b.WriteString("\n")
	}
}

func preconditionsText(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	if len(d.Preconditions) == 0 {
		return
	}
	b.WriteString("Before merging, on the target:\n")
	for _, p := range d.Preconditions {
		state := ""
		if o.Checked {
			state = "holds: "
		}
		for _, v := range o.Violations {
			if v.Tier == p.Tier {
				state = fmt.Sprintf("DOES NOT HOLD (%s): ", v.State)
			}
		}
		fmt.Fprintf(b, "  %s%s must be Ready. Otherwise %s %s away until it is: %s\n", state, Name(p.Tier, o.Namespace), strings.Join(p.Objects, ", "), stay(len(p.Objects)), p.Why)
	}
	b.WriteString("\n")
}

func stay(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}

func fallbackText(b *strings.Builder, d *diff.Diff, o DiffOptions) {
	if o.Before == nil {
		return
	}
	for _, from := range d.MovedFrom() {
		steps := d.Fallback(from, o.Before)
		if len(steps) == 0 {
			continue
		}
		fmt.Fprintf(b, "To have what leaves %s adopted instead of deleted:\n", Name(from, o.Namespace))
		for i, s := range steps {
			kind := "check"
			if len(s.Edits) > 0 {
				kind = "commit"
			}
			fmt.Fprintf(b, "  %d. %s: %s\n", i+1, kind, s.Title)
			for _, e := range s.Edits {
				fmt.Fprintf(b, "       %s\n", e)
			}
			for _, c := range s.Commands {
				fmt.Fprintf(b, "       $ %s\n", c)
			}
		}
		b.WriteString("\n")
	}
}
