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
	Tier   string   `json:"tier"`
	Wave   int      `json:"wave"`
	Verb   string   `json:"verb,omitempty"`
	Phase  string   `json:"phase"`
	Cause  string   `json:"cause,omitempty"`
	Prunes []string `json:"prunes"`
}

// NewPlanDocument converts a plan, keeping its order.
func NewPlanDocument(steps []resume.Step) PlanDocument {
	d := PlanDocument{Tiers: make([]PlannedDocument, 0, len(steps))}
	for _, s := range steps {
		d.Tiers = append(d.Tiers, PlannedDocument{
			Tier: s.Tier.String(), Wave: s.Wave, Verb: string(s.Verb), Phase: string(s.Standing.Phase),
			Cause: string(s.Standing.Cause), Prunes: append([]string{}, s.Prunes...),
		})
	}
	return d
}

// Plan prints what a run would do, and what each tier's next pass would delete.
func Plan(w io.Writer, steps []resume.Step, namespace string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WAVE\tTIER\tNOW\tWOULD\tDELETES")
	touched := 0
	for _, s := range steps {
		if s.Verb != "" {
			touched++
		}
		now := string(s.Standing.Phase)
		if s.Standing.Cause != resume.CauseNone {
			now += ": " + string(s.Standing.Cause)
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\n", s.Wave, Name(s.Tier, namespace), now, dash(string(s.Verb)), dash(strings.Join(s.Prunes, ", ")))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	text := "nothing to do: every tier is ready, left alone, or comes by itself"
	if touched > 0 {
		text = count(touched, "tier") + " would be touched; nothing was written"
	}
	_, err := fmt.Fprintln(w, "\n"+text)
	return err
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
