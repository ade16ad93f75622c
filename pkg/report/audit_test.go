package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/homenetwork"
)

func homeNetwork(t *testing.T, state homenetwork.State) (*tiers.Graph, *repo.Tree) {
	t.Helper()
	dir := t.TempDir()
	if err := homenetwork.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := tiers.Load(t.Context(), tree, tiers.Options{Path: "clusters/prod", Objects: true})
	if err != nil {
		t.Fatal(err)
	}
	return g, tree
}

func wedgedAudit(t *testing.T) (*audit.Result, AuditOptions) {
	t.Helper()
	g, tree := homeNetwork(t, homenetwork.Wedged)
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	src, err := render.NewSource(tree, ".", "")
	if err != nil {
		t.Fatal(err)
	}
	return audit.Run(g, audit.Options{Lines: src.Line, Providers: crds.Providers(g, catalogue, nil, nil)}),
		AuditOptions{Namespace: "flux-system", Files: tree.FS(), Config: audit.ConfigFile, Version: "1.0.0"}
}

func TestAuditGolden(t *testing.T) {
	result, options := wedgedAudit(t)
	for _, format := range AuditFormats() {
		if format == "yaml" || format == "sarif" || format == "html" { // html: TestAuditHTMLGolden
			continue
		}
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			options.Format = format
			if err := Audit(&b, result, options); err != nil {
				t.Fatal(err)
			}
			golden(t, "audit-wedged."+map[string]string{"text": "txt", "json": "json", "github": "github"}[format], b.Bytes())
		})
	}
}

// TestAuditSARIF holds the document to the schema, and the fingerprint to what it is for: it stays the
// same when lines move.
func TestAuditSARIF(t *testing.T) {
	result, options := wedgedAudit(t)
	options.Format = "sarif"
	var b bytes.Buffer
	if err := Audit(&b, result, options); err != nil {
		t.Fatal(err)
	}
	doc, err := sarif.FromBytes(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatal(err)
	}
	res := doc.Runs[0].Results
	if len(res) != 1 || *res[0].RuleID != "same-pass-second-order" || *res[0].Locations[0].PhysicalLocation.ArtifactLocation.URI != "platform-config/storageprofiles.yaml" {
		t.Errorf("results: %s", b.String())
	}
	before := res[0].PartialFingerprints["standup/v1"]
	result.Findings[0].At.Line += 7
	result.Findings[0].Message = "reworded"
	if after := result.Findings[0].Fingerprint(); after != before {
		t.Errorf("fingerprint %s became %s", before, after)
	}
	if len(doc.Runs[0].Tool.Driver.Rules) != len(audit.Rules()) {
		t.Errorf("%d rules are described, there are %d", len(doc.Runs[0].Tool.Driver.Rules), len(audit.Rules()))
	}
}

// TestAuditSARIFEscapesPaths writes the names of files as the references that the schema asks for.
func TestAuditSARIFEscapesPaths(t *testing.T) {
	result := &audit.Result{Findings: []audit.Finding{{Rule: "cycle", Severity: tiers.Error, At: audit.Location{File: "a:b/my apps/a#1%.yaml", Line: 1}}}}
	var b bytes.Buffer
	if err := Audit(&b, result, AuditOptions{Format: "sarif"}); err != nil {
		t.Fatal(err)
	}
	if want := `"uri": "./a:b/my%20apps/a%231%25.yaml"`; !strings.Contains(b.String(), want) {
		t.Errorf("there is no %s in\n%s", want, b.String())
	}
}

// TestAuditGitHubTellsUnusedEntries shows beside the configuration what does nothing in it any more.
func TestAuditGitHubTellsUnusedEntries(t *testing.T) {
	var b bytes.Buffer
	result := &audit.Result{Unused: []audit.Unused{{Line: 7, Message: "accept cycle: expired on 2026-01-01"}}}
	if err := Audit(&b, result, AuditOptions{Format: "github", Config: audit.ConfigFile}); err != nil {
		t.Fatal(err)
	}
	if want := "::notice file=.standup.yaml,line=7,title=standup::accept cycle: expired on 2026-01-01\n"; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestDiffGolden(t *testing.T) {
	before, _ := homeNetwork(t, homenetwork.Wedged)
	after, _ := homeNetwork(t, homenetwork.Repaired)
	d := diff.Compare(before, after)
	options := DiffOptions{Namespace: "flux-system", Before: before}
	for format, ext := range map[string]string{"text": "txt", "json": "json"} {
		var b bytes.Buffer
		options.Format = format
		if err := Diff(&b, d, options); err != nil {
			t.Fatal(err)
		}
		golden(t, "diff-repair."+ext, b.Bytes())
	}
}
