package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

// auditPage is what the template of `standup audit -o html` prints.
type auditPage struct {
	page
	Summary  string
	Counts   []severityCount
	Stuck    []string
	Unsure   []string
	Findings []findingCard
	Accepted []findingCard
	Assumed  []assumedRow
	Unused   []unusedRow
	Kinds    []kindRow
	Config   string
}

// severityCount is how many findings there are of one severity.
type severityCount struct {
	Severity string
	N        int
}

// findingCard is one finding.
type findingCard struct {
	ID, Rule, Severity, Tier string
	Objects                  []string
	Message                  string
	Place                    *findingPlace
	Related                  []findingPlace
	Cause                    []string
	Blocks, Evidence         string
	Fix, Manifest            string
	Explanation              []ruleBlock
	AcceptedBecause          string
}

// findingPlace is a location and the first lines of what is there.
type findingPlace struct {
	At, Note string
	Lines    []string
}

type assumedRow struct {
	What  string
	Tiers []string
}

type unusedRow struct{ At, Message string }

type kindRow struct{ Name, From, Evidence, Hint string }

// auditHTML writes the audit as one page: the verdict, a card for each finding, and what was taken for
// granted.
func auditHTML(w io.Writer, r *audit.Result, o AuditOptions) error {
	p, err := newPage([]string{"page.css", "audit.css"}, []string{"filter.js"})
	if err != nil {
		return err
	}
	return writePage(w, "audit", newAuditPage(r, o, p))
}

func newAuditPage(r *audit.Result, o AuditOptions, p page) auditPage {
	d := auditPage{page: p, Summary: strings.TrimSpace(auditSummary(r)), Unsure: names(r.Unsure, o.Namespace), Config: o.Config, Kinds: kindRows(r, o)}
	for _, s := range []tiers.Severity{tiers.Error, tiers.Warning, tiers.Info} {
		c := severityCount{Severity: string(s)}
		for _, f := range r.Findings {
			if f.Severity == s {
				c.N++
			}
		}
		d.Counts = append(d.Counts, c)
	}
	d.Stuck = names(slices.DeleteFunc(slices.Clone(r.Stuck), func(k tiers.Key) bool { return slices.Contains(r.Unsure, k) }), o.Namespace)
	c := cards{explained: map[string][]ruleBlock{}}
	d.Findings, d.Accepted = c.of(r.Findings, o), c.of(r.Accepted, o)
	for _, a := range r.Assumed {
		d.Assumed = append(d.Assumed, assumedRow{a.What, names(a.Tiers, o.Namespace)})
	}
	for _, u := range r.Unused {
		d.Unused = append(d.Unused, unusedRow{position(o.Config, u.Line), u.Message})
	}
	return d
}

// cards makes the cards of one page.
type cards struct {
	// explained keeps the pages of rules: many findings have the same.
	explained map[string][]ruleBlock
}

func (c cards) of(list []audit.Finding, o AuditOptions) []findingCard {
	out := make([]findingCard, 0, len(list))
	for _, f := range list {
		if _, ok := c.explained[f.Rule]; !ok {
			text, _ := audit.Explain(f.Rule) // a problem of the graph may have no page
			c.explained[f.Rule] = ruleBlocks(text)
		}
		card := newFindingCard(f, o)
		card.Explanation = c.explained[f.Rule]
		out = append(out, card)
	}
	return out
}

func newFindingCard(f audit.Finding, o AuditOptions) findingCard {
	c := findingCard{
		ID: f.Fingerprint(), Rule: f.Rule, Severity: string(f.Severity), Tier: Name(f.Tier, o.Namespace), Objects: f.Objects,
		Message: f.Message, Cause: f.Cause, Fix: f.Fix, Manifest: f.FixYAML,
	}
	if len(f.Blocked) > 0 {
		c.Blocks = blast(f, o.Namespace)
	}
	if f.Evidence != "git" {
		c.Evidence = strings.TrimSpace(string(f.Evidence) + " " + f.Reference)
	}
	if f.Accepted != nil {
		c.AcceptedBecause = f.Accepted.Reason
	}
	if f.At.File != "" {
		at := newFindingPlace(f.At, o)
		at.Note = "" // as in the text: it is the place itself
		c.Place = &at
	}
	for _, at := range f.Related {
		if at.File != "" {
			c.Related = append(c.Related, newFindingPlace(at, o))
		}
	}
	return c
}

func newFindingPlace(at audit.Location, o AuditOptions) findingPlace {
	p := findingPlace{At: position(at.File, at.Line), Note: at.Note}
	for _, l := range excerpt(o.Files, at, 5) {
		p.Lines = append(p.Lines, fmt.Sprintf("%5d | %s", l.number, l.text))
	}
	return p
}

// kindRows are the kinds that Kubernetes does not bring.
func kindRows(r *audit.Result, o AuditOptions) []kindRow {
	var out []kindRow
	for _, k := range r.Kinds {
		if k.Provider == "builtin" {
			continue
		}
		row := kindRow{Name: kindName(k), From: kindOrigin(k, o.Namespace), Evidence: string(k.Evidence)}
		if k.Provider == "unknown" {
			row.Hint = k.Hint
		}
		out = append(out, row)
	}
	return out
}
