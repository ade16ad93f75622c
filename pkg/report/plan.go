package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/standup-sh/standup/pkg/preflight"
	"github.com/standup-sh/standup/pkg/resume"
)

// PlanDocument is the contract of `standup up --dry-run -o json`.
type PlanDocument struct {
	Tiers []PlannedDocument `json:"tiers"`
}

// PlannedDocument is what a run means to do with one tier.
type PlannedDocument struct {
	Tier         string   `json:"tier"`
	Wave         int      `json:"wave"`
	Intent       string   `json:"intent"`
	Why          string   `json:"why,omitempty"`
	Prune        []string `json:"prune"`
	PruneUnknown bool     `json:"pruneUnknown,omitempty"`
}

// NewPlanDocument converts a plan, keeping its order.
func NewPlanDocument(plan []resume.Planned) PlanDocument {
	d := PlanDocument{Tiers: make([]PlannedDocument, 0, len(plan))}
	for _, p := range plan {
		d.Tiers = append(d.Tiers, PlannedDocument{
			Tier: p.Tier.String(), Wave: p.Wave, Intent: string(p.Intent), Why: string(p.Why),
			Prune: append([]string{}, p.Prune...), PruneUnknown: p.PruneUnknown,
		})
	}
	return d
}

// Plan prints what a run would do, and what each tier's next pass would delete.
func Plan(w io.Writer, plan []resume.Planned, namespace string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WAVE\tTIER\tWOULD\tDELETES")
	writes := 0
	for _, p := range plan {
		if p.Intent != resume.IntentNone && p.Intent != resume.IntentLeave {
			writes++
		}
		deletes := strings.Join(p.Prune, ", ")
		if p.PruneUnknown {
			deletes = "unknown"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\n", p.Wave, Name(p.Tier, namespace), would(p), dash(deletes))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if writes == 0 {
		_, err := fmt.Fprintln(w, "\nnothing to do: every tier is ready or left alone")
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s would be touched; nothing was written\n", count(writes, "tier"))
	return err
}

func would(p resume.Planned) string {
	switch p.Intent {
	case resume.IntentNone:
		return "ready"
	case resume.IntentNudge:
		return "nudge if it waits"
	case resume.IntentCreate:
		return "come with its parent"
	case resume.IntentLeave:
		return "leave: " + string(p.Why)
	}
	return string(p.Intent)
}

// Preflight prints checks, one a line; without all, only those that are not well.
func Preflight(w io.Writer, r preflight.Report, all bool) error {
	for _, c := range r.Checks {
		if !all && c.Status != preflight.Fail && c.Status != preflight.Warn {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-7s %s: %s\n", c.Status, c.Name, c.Message); err != nil {
			return err
		}
		if c.Hint != "" {
			if _, err := fmt.Fprintf(w, "        %s\n", c.Hint); err != nil {
				return err
			}
		}
	}
	return nil
}
