package report

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

// auditSARIF writes SARIF 2.1.0, which code hosts turn into annotations and alerts. The fingerprint
// stays the same while lines move, so that an alert is not closed and opened again.
func auditSARIF(w io.Writer, r *audit.Result, o AuditOptions) error {
	run := sarif.NewRunWithInformationURI("standup", "https://github.com/standup-sh/standup")
	if o.Version != "" {
		run.Tool.Driver.WithVersion(o.Version)
	}
	for _, rule := range audit.Rules() {
		page, err := audit.Explain(rule.ID)
		if err != nil {
			return err
		}
		run.AddRule(rule.ID).WithName(rule.ID).
			WithShortDescription(sarif.NewMultiformatMessageString().WithText(rule.Title)).
			WithHelp(sarif.NewMultiformatMessageString().WithText(page).WithMarkdown(page)).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(sarifLevel(rule.Severity)))
	}
	for _, f := range r.Findings {
		addResult(run, f, nil)
	}
	for _, f := range r.Accepted {
		addResult(run, f, f.Accepted)
	}
	report := sarif.NewReport()
	report.AddRun(run)
	if err := report.PrettyWrite(w); err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func addResult(run *sarif.Run, f audit.Finding, accepted *audit.Acceptance) {
	text := append([]string{f.Message}, f.Cause...)
	if f.Fix != "" {
		text = append(text, "Fix: "+f.Fix)
	}
	res := run.CreateResultForRule(f.Rule).WithLevel(sarifLevel(f.Severity)).
		WithMessage(sarif.NewTextMessage(strings.Join(text, ". "))).
		WithPartialFingerprints(map[string]string{"standup/v1": f.Fingerprint()})
	if f.At.File != "" {
		res.AddLocation(sarifLocation(f.At))
	}
	for _, at := range f.Related {
		if at.File != "" {
			res.AddRelatedLocation(sarifLocation(at))
		}
	}
	if accepted != nil {
		res.AddSuppression(sarif.NewSuppression().WithKind("external").WithJustification(accepted.Reason))
	}
}

func sarifLocation(at audit.Location) *sarif.Location {
	physical := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(fileURI(at.File)))
	if at.Line > 0 {
		physical.WithRegion(sarif.NewRegion().WithStartLine(at.Line))
	}
	location := sarif.NewLocationWithPhysicalLocation(physical)
	if at.Note != "" {
		location.WithMessage(sarif.NewTextMessage(at.Note))
	}
	return location
}

// fileURI writes a path as the relative reference that SARIF asks for.
func fileURI(path string) string { return (&url.URL{Path: path}).String() }

func sarifLevel(s tiers.Severity) string {
	if s == tiers.Info {
		return "note"
	}
	return string(s)
}
