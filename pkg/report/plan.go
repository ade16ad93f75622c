package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
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
	// Unknown are kinds that the tier needs, the cluster lacks and nothing is known to bring;
	// Candidates the objects of the tier that may.
	Unknown    []string `json:"unknownKinds,omitempty"`
	Candidates []string `json:"candidates,omitempty"`
}

// NewPlanDocument converts a plan, keeping its order. kinds says what the tiers lack.
func NewPlanDocument(steps []resume.Step, kinds crds.Plan) PlanDocument {
	d := PlanDocument{Tiers: make([]PlannedDocument, 0, len(steps))}
	for _, s := range steps {
		lacks, _ := kinds.Of(s.Tier)
		d.Tiers = append(d.Tiers, PlannedDocument{
			Tier: s.Tier.String(), Wave: s.Wave, Verb: string(s.Verb), Phase: string(s.Standing.Phase),
			Cause: string(s.Standing.Cause), Prunes: append([]string{}, s.Prunes...),
			Unknown: kindNames(lacks.Unknown()), Candidates: lacks.Candidates,
		})
	}
	return d
}

func kindNames(kinds []schema.GroupVersionKind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, fmt.Sprintf("%s (%s)", k.Kind, k.GroupVersion()))
	}
	return names
}

// Unknown says of every tier that needs a kind which nothing is known to bring what a run does about
// it: that cannot be planned before Flux has tried.
func Unknown(w io.Writer, kinds crds.Plan, namespace string) error {
	for _, t := range kinds.Tiers {
		unknown := kindNames(t.Unknown())
		if len(unknown) == 0 {
			continue
		}
		text := "and nothing in the tier can: it must come from elsewhere"
		if len(t.Candidates) > 0 {
			text = fmt.Sprintf("but %s may: if Flux fails for want of it and it does not come by itself, all of the tier whose kinds exist is applied first",
				someOf(t.Candidates))
		}
		if _, err := fmt.Fprintf(w, "%s: nothing is known to bring %s, %s\n", Name(t.Tier, namespace), strings.Join(unknown, ", "), text); err != nil {
			return err
		}
	}
	return nil
}

// someOf names the first few of many.
func someOf(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s or %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// Plan prints what a run would do, what each tier's next pass would delete, and which kinds nothing
// is known to bring.
func Plan(w io.Writer, steps []resume.Step, kinds crds.Plan, namespace string) error {
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
	if _, err := fmt.Fprintln(w, "\n"+text); err != nil {
		return err
	}
	return Unknown(w, kinds, namespace)
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
