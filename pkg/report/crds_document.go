package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/standup-sh/standup/pkg/crds"
)

// CRDsDocument is the contract of `standup crds -o json`: the exact list of writes.
type CRDsDocument struct {
	DryRun bool             `json:"dryRun"`
	Writes []WriteDocument  `json:"writes"`
	Nudged []string         `json:"nudged"`
	NotYet []NotYetDocument `json:"notYet"`
}

// WriteDocument is one object that was applied, or would be.
type WriteDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Tier       string `json:"tier"`
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Action     string `json:"action"`
	Why        string `json:"why"`
	Predicted  bool   `json:"predicted,omitempty"`
}

// NotYetDocument is a stuck tier whose turn has not come.
type NotYetDocument struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason"`
}

// NewWriteDocument converts one write.
func NewWriteDocument(w crds.Write) WriteDocument {
	return WriteDocument{
		APIVersion: w.GroupVersion().String(), Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Tier: w.Tier.String(),
		File: w.File, Line: w.Line, Action: string(w.Action), Why: w.Why, Predicted: w.Predicted,
	}
}

// NewCRDsDocument converts the result of a run.
func NewCRDsDocument(r crds.Result, dryRun bool) CRDsDocument {
	d := CRDsDocument{DryRun: dryRun, Writes: []WriteDocument{}, Nudged: keyStrings(r.Nudged), NotYet: []NotYetDocument{}}
	for _, o := range r.Outcomes {
		for _, w := range o.Writes {
			if w.Action != crds.Unchanged {
				d.Writes = append(d.Writes, NewWriteDocument(w))
			}
		}
	}
	for _, n := range r.NotYet {
		d.NotYet = append(d.NotYet, NotYetDocument{Tier: n.Tier.String(), Reason: n.Reason})
	}
	return d
}

// CRDs prints what a run wrote, or would write, and what it left for later.
func CRDs(w io.Writer, r crds.Result, dryRun bool, namespace string) error {
	d := NewCRDsDocument(r, dryRun)
	if len(d.Writes) == 0 && len(d.Nudged) == 0 && len(d.NotYet) == 0 {
		_, err := fmt.Fprintln(w, "nothing to do: no tier is stuck for want of a kind")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range d.Writes {
		name := x.Kind + "/" + x.Name
		if x.Namespace != "" {
			name = x.Kind + "/" + x.Namespace + "/" + x.Name
		}
		action := x.Action
		if dryRun {
			action += " (dry run)"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", name, action, x.Why)
	}
	for _, n := range r.Nudged {
		fmt.Fprintf(tw, "Kustomization/%s\tnudged\t\n", Name(n, namespace))
	}
	for _, n := range r.NotYet {
		fmt.Fprintf(tw, "Kustomization/%s\tnot yet\t%s\n", Name(n.Tier, namespace), n.Reason)
	}
	return tw.Flush()
}
