package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// CRDsDocument is the contract of `standup crds -o json`: the exact list of writes. A nudge is a
// write to the Kustomization. Fields are only ever added.
type CRDsDocument struct {
	DryRun   bool                `json:"dryRun"`
	Writes   []WriteDocument     `json:"writes"`
	Nudged   []string            `json:"nudged"`
	NotYet   []NotYetDocument    `json:"notYet"`
	Excluded []ExclusionDocument `json:"excluded"`
	// Partial are the tiers of which all objects were applied whose kinds exist.
	Partial []string `json:"partial"`
	// Pending are the tiers that are still stuck.
	Pending []string `json:"pending"`
}

// WriteDocument is one object that was applied, or would be.
type WriteDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Tier       string `json:"tier,omitempty"`
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

// ExclusionDocument is an object that was left out, and why.
type ExclusionDocument struct {
	Tier   string `json:"tier,omitempty"`
	Object string `json:"object"`
	File   string `json:"file,omitempty"`
	Reason string `json:"reason"`
}

// NewWriteDocument converts one write.
func NewWriteDocument(w crds.Write) WriteDocument {
	return WriteDocument{
		APIVersion: w.GroupVersion().String(), Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Tier: keyString(w.Tier),
		File: w.File, Line: w.Line, Action: string(w.Action), Why: w.Why, Predicted: w.Predicted,
	}
}

// keyString is empty for what belongs to no tier.
func keyString(k tiers.Key) string {
	if k == (tiers.Key{}) {
		return ""
	}
	return k.String()
}

// outcomes are what a run did, in the order in which it did it.
func outcomes(r crds.Result) []crds.Outcome {
	var all []crds.Outcome
	for _, ahead := range []*crds.Outcome{r.Cold, r.Bundle} {
		if ahead != nil {
			all = append(all, *ahead)
		}
	}
	return append(all, r.Outcomes...)
}

// NewCRDsDocument converts the result of a run.
func NewCRDsDocument(r crds.Result, dryRun bool) CRDsDocument {
	d := CRDsDocument{
		DryRun: dryRun, Writes: []WriteDocument{}, Nudged: keyStrings(r.Nudged), NotYet: []NotYetDocument{},
		Excluded: []ExclusionDocument{}, Partial: []string{}, Pending: keyStrings(r.Pending),
	}
	for _, o := range outcomes(r) {
		for _, w := range o.Writes {
			if w.Action != crds.Unchanged {
				d.Writes = append(d.Writes, NewWriteDocument(w))
			}
		}
		for _, x := range o.Excluded {
			d.Excluded = append(d.Excluded, ExclusionDocument{Tier: keyString(o.Tier), Object: x.Object, File: x.File, Reason: x.Reason})
		}
		if o.Partial {
			d.Partial = append(d.Partial, o.Tier.String())
		}
	}
	for _, n := range r.NotYet {
		d.NotYet = append(d.NotYet, NotYetDocument{Tier: n.Tier.String(), Reason: n.Reason})
	}
	return d
}

// CRDsOptions say how a run of crds is printed.
type CRDsOptions struct {
	DryRun bool
	// Failed says that the run ended with an error, which is printed elsewhere.
	Failed bool
	// Namespace is left out of names.
	Namespace string
}

// CRDs prints what a run wrote, or would write, what it left out and what it left for later.
func CRDs(w io.Writer, r crds.Result, opts CRDsOptions) error {
	d, namespace := NewCRDsDocument(r, opts.DryRun), opts.Namespace
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	would := ""
	if opts.DryRun {
		would = " (dry run)"
	}
	for _, x := range d.Writes {
		name := x.Kind + "/" + x.Name
		if x.Namespace != "" {
			name = x.Kind + "/" + x.Namespace + "/" + x.Name
		}
		fmt.Fprintf(tw, "%s\t%s%s\t%s\n", name, x.Action, would, x.Why)
	}
	for _, n := range r.Nudged {
		fmt.Fprintf(tw, "Kustomization/%s\tnudged%s\t\n", Name(n, namespace), would)
	}
	for _, x := range d.Excluded {
		fmt.Fprintf(tw, "%s\tleft out\t%s\n", x.Object, x.Reason)
	}
	for _, n := range r.NotYet {
		fmt.Fprintf(tw, "Kustomization/%s\tnot yet\t%s\n", Name(n.Tier, namespace), n.Reason)
	}
	for _, k := range r.Pending {
		if !opts.DryRun && !notYet(r, k) {
			fmt.Fprintf(tw, "Kustomization/%s\tstill stuck\t\n", Name(k, namespace))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(d.Writes)+len(d.Nudged) > 0 {
		return nil
	}
	if opts.Failed || len(d.Pending)+len(d.NotYet) > 0 {
		_, err := fmt.Fprintln(w, "nothing was written")
		return err
	}
	_, err := fmt.Fprintln(w, nothing(r))
	return err
}

func notYet(r crds.Result, tier tiers.Key) bool {
	return slices.ContainsFunc(r.NotYet, func(n *crds.NotYetError) bool { return n.Tier == tier })
}

// nothing says of a run that found nothing to write why that is.
func nothing(r crds.Result) string {
	there := 0
	for _, o := range []*crds.Outcome{r.Cold, r.Bundle} {
		if o != nil {
			there += len(o.Writes)
		}
	}
	if there > 0 {
		return fmt.Sprintf("nothing to do: all %s exist already, and no tier is stuck for want of a kind", count(there, "CRD"))
	}
	return "nothing to do: no tier is stuck for want of a kind"
}
