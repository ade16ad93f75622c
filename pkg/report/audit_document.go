package report

import (
	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

// AuditDocument is the machine-readable form of an audit: the contract of `standup audit -o json`.
// Fields are only ever added.
type AuditDocument struct {
	Findings []FindingDocument    `json:"findings"`
	Kinds    []KindDocument       `json:"kinds"`
	Accepted []FindingDocument    `json:"accepted"`
	Assumed  []AssumptionDocument `json:"assumed"`
	Unused   []UnusedDocument     `json:"unused"`
	Tiers    int                  `json:"tiers"`
	Ready    int                  `json:"ready"`
	Stuck    []string             `json:"stuck"`
	Unsure   []string             `json:"unsure"`
}

// FindingDocument is one finding of an AuditDocument.
type FindingDocument struct {
	Rule            string             `json:"rule"`
	Severity        string             `json:"severity"`
	Tier            string             `json:"tier,omitempty"`
	Object          string             `json:"object,omitempty"`
	Objects         []string           `json:"objects,omitempty"`
	File            string             `json:"file,omitempty"`
	Line            int                `json:"line,omitempty"`
	Evidence        string             `json:"evidence"`
	Reference       string             `json:"reference,omitempty"`
	Message         string             `json:"message"`
	Cause           []string           `json:"cause,omitempty"`
	Fix             string             `json:"fix,omitempty"`
	Manifest        string             `json:"manifest,omitempty"`
	Related         []LocationDocument `json:"related,omitempty"`
	Blocks          []string           `json:"blocks,omitempty"`
	BlocksDirectly  int                `json:"blocksDirectly,omitempty"`
	Fingerprint     string             `json:"fingerprint"`
	AcceptedBecause string             `json:"acceptedBecause,omitempty"`
}

// LocationDocument is a place that a finding points to.
type LocationDocument struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Note string `json:"note,omitempty"`
}

// KindDocument says where one kind comes from.
type KindDocument struct {
	Group    string `json:"group"`
	Kind     string `json:"kind"`
	Provider string `json:"provider"`
	Trigger  string `json:"trigger,omitempty"`
	Tier     string `json:"tier,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// AssumptionDocument is something that was taken to be there before Flux.
type AssumptionDocument struct {
	What  string   `json:"what"`
	Tiers []string `json:"tiers"`
}

// UnusedDocument is an entry of the configuration that does nothing any more.
type UnusedDocument struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// NewAuditDocument converts a result, keeping its order. Lists are never null.
func NewAuditDocument(r *audit.Result) AuditDocument {
	d := AuditDocument{
		Findings: findingDocuments(r.Findings), Accepted: findingDocuments(r.Accepted),
		Kinds: make([]KindDocument, 0, len(r.Kinds)), Assumed: make([]AssumptionDocument, 0, len(r.Assumed)),
		Unused: make([]UnusedDocument, 0, len(r.Unused)), Tiers: r.Tiers, Ready: r.Ready, Stuck: keyStrings(r.Stuck), Unsure: keyStrings(r.Unsure),
	}
	for _, k := range r.Kinds {
		d.Kinds = append(d.Kinds, KindDocument{Group: k.Group, Kind: k.Kind, Provider: k.Provider, Trigger: k.Trigger,
			Tier: keyOrNothing(k.Tier), Evidence: string(k.Evidence), Hint: k.Hint})
	}
	for _, a := range r.Assumed {
		d.Assumed = append(d.Assumed, AssumptionDocument{a.What, keyStrings(a.Tiers)})
	}
	for _, u := range r.Unused {
		d.Unused = append(d.Unused, UnusedDocument(u))
	}
	return d
}

func findingDocuments(list []audit.Finding) []FindingDocument {
	out := make([]FindingDocument, 0, len(list))
	for _, f := range list {
		d := FindingDocument{
			Rule: f.Rule, Severity: string(f.Severity), Tier: keyOrNothing(f.Tier), Object: f.Object, Objects: f.Objects,
			File: f.At.File, Line: f.At.Line, Evidence: string(f.Evidence), Reference: f.Reference, Message: f.Message, Cause: f.Cause, Fix: f.Fix,
			Manifest: f.FixYAML, Blocks: keyStrings(f.Blocked), BlocksDirectly: f.BlockedDirectly, Fingerprint: f.Fingerprint(),
		}
		for _, at := range f.Related {
			d.Related = append(d.Related, LocationDocument(at))
		}
		if f.Accepted != nil {
			d.AcceptedBecause = f.Accepted.Reason
		}
		out = append(out, d)
	}
	return out
}

func keyOrNothing(k tiers.Key) string {
	if k == (tiers.Key{}) {
		return ""
	}
	return k.String()
}
