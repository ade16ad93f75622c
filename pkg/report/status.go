package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/standup-sh/standup/pkg/wait"
)

// StatusDocument is the contract of `standup status -o json`. Fields are only ever added.
type StatusDocument struct {
	Ready  int                  `json:"ready"`
	Total  int                  `json:"total"`
	Tiers  []TierStatusDocument `json:"tiers"`
	Causes []DiagnosisDocument  `json:"causes"`
}

// TierStatusDocument is the state of one tier.
type TierStatusDocument struct {
	Name           string     `json:"name"`
	Namespace      string     `json:"namespace"`
	Wave           int        `json:"wave"`
	State          string     `json:"state"`
	Reason         string     `json:"reason,omitempty"`
	Message        string     `json:"message,omitempty"`
	Since          *time.Time `json:"since,omitempty"`
	Revision       string     `json:"revision,omitempty"`
	SourceRevision string     `json:"sourceRevision,omitempty"`
	NextRetry      *time.Time `json:"nextRetry,omitempty"`
}

// NewTierStatusDocument converts the state of a tier.
func NewTierStatusDocument(s wait.TierStatus) TierStatusDocument {
	return TierStatusDocument{
		Name: s.Name, Namespace: s.Namespace, Wave: s.Wave, State: string(s.State), Reason: s.Reason, Message: s.Message,
		Since: moment(s.Since), Revision: s.Revision, SourceRevision: s.SourceRevision, NextRetry: moment(s.NextRetry),
	}
}

// NewStatusDocument converts states and causes, keeping their order.
func NewStatusDocument(statuses []wait.TierStatus, causes []wait.Diagnosis) StatusDocument {
	d := StatusDocument{Total: len(statuses), Tiers: make([]TierStatusDocument, 0, len(statuses)), Causes: diagnosisDocuments(causes)}
	for _, s := range statuses {
		if s.Settled() {
			d.Ready++
		}
		d.Tiers = append(d.Tiers, NewTierStatusDocument(s))
	}
	return d
}

// StatusOptions say how Status prints.
type StatusOptions struct {
	Namespace string // left out of names
	Now       time.Time
}

// Status prints a table of the tiers: wave, state, since when, and one line of why.
func Status(w io.Writer, statuses []wait.TierStatus, o StatusOptions) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WAVE\tTIER\tSTATE\tAGE\tREVISION\tMESSAGE")
	ready := 0
	for _, s := range statuses {
		if s.Settled() {
			ready++
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\n", s.Wave, Name(s.Key, o.Namespace), s.State, age(s.Since, o.Now), dash(Revision(s.Revision)), statusMessage(s))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %s ready\n", ready, count(len(statuses), "tier"))
	return err
}

// messageWidth keeps a table's line on most terminals; the diagnosis has the whole text.
const messageWidth = 100

func statusMessage(s wait.TierStatus) string {
	if s.Settled() {
		return ""
	}
	text := strings.Join(strings.Fields(s.Message), " ")
	if r := []rune(text); len(r) > messageWidth {
		return string(r[:messageWidth-1]) + "…"
	}
	return text
}

// Revision shortens a revision such as main@sha1:<40 digits> to main@sha1:<8 digits>, the way flux
// prints it.
func Revision(revision string) string {
	name, digest, ok := strings.Cut(revision, ":")
	if !ok || len(digest) <= 8 {
		return revision
	}
	return name + ":" + digest[:8]
}

// age writes how long ago a moment was, in one or two units.
func age(since, now time.Time) string {
	if since.IsZero() || now.Before(since) {
		return "-"
	}
	return Duration(now.Sub(since))
}

// Duration writes a duration in one or two units: 8.2s, 3m12s, 4h05m, 2d3h.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
