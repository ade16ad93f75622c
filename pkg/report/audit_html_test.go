package report

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

func auditPageOf(t *testing.T, r *audit.Result, o AuditOptions) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	o.Format = "html"
	if err := Audit(&b, r, o); err != nil {
		t.Fatal(err)
	}
	doc := parsePage(t, b.Bytes())
	checkPage(t, doc)
	return b.String(), doc
}

func cardsOf(doc *html.Node) []*html.Node {
	return find(doc, func(n *html.Node) bool { return n.Data == "article" })
}

// TestAuditHTMLGolden leaves out style and script, so that the file shows what depends on the audit.
func TestAuditHTMLGolden(t *testing.T) {
	result, options := wedgedAudit(t)
	var b bytes.Buffer
	if err := writePage(&b, "audit", newAuditPage(result, options, page{})); err != nil {
		t.Fatal(err)
	}
	golden(t, "audit-wedged.html", b.Bytes())
}

// everything is a finding that has all that a finding may have.
func everything(text string) audit.Finding {
	return audit.Finding{
		Rule: "cycle", Severity: tiers.Error, Tier: fluxKey(text), Object: text, Objects: []string{text, text}, Evidence: "catalogue",
		At: audit.Location{File: "a.yaml", Line: 1}, Related: []audit.Location{{File: "b.yaml", Line: 1, Note: text}}, Reference: text,
		Message: text, Cause: []string{text}, Fix: text, FixYAML: text, Blocked: []tiers.Key{fluxKey(text)},
		Accepted: &audit.Acceptance{Reason: text},
	}
}

// again is a second one that differs in nothing but its number.
func again(text string) audit.Finding {
	f := everything(text)
	f.Repeat = 1
	return f
}

func TestAuditHTMLHasACardForEveryFinding(t *testing.T) {
	warning, info := everything("w"), everything("i")
	warning.Severity, info.Severity = tiers.Warning, tiers.Info
	r := &audit.Result{
		Findings: []audit.Finding{everything("e"), again("e"), warning, info}, Accepted: []audit.Finding{everything("a")},
		Tiers: 4, Ready: 2, Stuck: []tiers.Key{fluxKey("stuck"), fluxKey("unsure")}, Unsure: []tiers.Key{fluxKey("unsure")},
	}
	_, doc := auditPageOf(t, r, AuditOptions{Namespace: "flux-system", Config: ".standup.yaml"})
	var severities []string
	for _, card := range cardsOf(doc) {
		severities = append(severities, strings.TrimPrefix(attribute(card, "class"), "finding "))
		if len(find(card, func(n *html.Node) bool { return n.Data == "details" && hasClass(n, "rule") })) != 1 {
			t.Errorf("the rule is not explained in %s", textOf(card))
		}
		if !strings.Contains(textOf(card), "Tiers depend on each other in a circle.") {
			t.Errorf("the rule's page is missing in %s", textOf(card))
		}
	}
	if got := strings.Join(severities, " "); got != "error error warning info error" {
		t.Errorf("cards: %s", got)
	}
	for _, want := range []string{"2 of 4 tiers come up from cold, of 1 git alone does not tell; 2 errors, 1 warning, 1 info, 1 accepted", "tiers that do not come up, or are suspended: 1stuck", "tiers of which git alone does not tell: 1unsure", "1 accepted in .standup.yaml"} {
		if !strings.Contains(textOf(doc), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if boxes := find(doc, func(n *html.Node) bool { return strings.HasPrefix(attribute(n, "id"), "show-") }); len(boxes) != 3 {
		t.Errorf("%d severities can be chosen", len(boxes))
	}
}

// A problem of the graph is a finding, too, and need not have a page that explains it.
func TestAuditHTMLShowsFindingsWithoutAPage(t *testing.T) {
	f := everything("x")
	f.Rule = "not-explained"
	_, doc := auditPageOf(t, &audit.Result{Findings: []audit.Finding{f}}, AuditOptions{})
	found := cardsOf(doc)
	if len(found) != 1 || len(find(found[0], func(n *html.Node) bool { return hasClass(n, "rule") })) != 0 {
		t.Errorf("cards: %s", textOf(doc))
	}
}

func TestAuditHTMLEscapes(t *testing.T) {
	const evil = `"'><script>alert(1)</script></title></pre><img src=x onerror=alert(1)>{{.}}`
	r := &audit.Result{
		Findings: []audit.Finding{everything(evil)}, Accepted: []audit.Finding{again(evil)}, Stuck: []tiers.Key{fluxKey(evil)},
		Kinds:   []audit.Kind{{Group: evil, Kind: evil, Provider: "unknown", Trigger: evil, Tier: fluxKey(evil), Hint: evil}},
		Assumed: []audit.Assumption{{What: evil, Tiers: []tiers.Key{fluxKey(evil)}}}, Unused: []audit.Unused{{Line: 1, Message: evil}},
	}
	files := fstest.MapFS{"a.yaml": {Data: []byte("kind: " + evil)}, "b.yaml": {Data: []byte("kind: " + evil)}}
	text, doc := auditPageOf(t, r, AuditOptions{Namespace: "flux-system", Files: files, Config: evil})
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		t.Error("a message is markup")
	}
	if n := strings.Count(textOf(doc), evil); n < 30 {
		t.Errorf("the text is shown %d times only", n)
	}
}

// TestAuditHTMLShowsNothingThatASecretHolds: excerpts pass the same veil as those of the text.
func TestAuditHTMLShowsNothingThatASecretHolds(t *testing.T) {
	secret := []byte("apiVersion: v1\nkind: Secret\nstringData: {a: canary}\ndata:\n  b: canary\nmetadata:\n  name: it\n")
	files := fstest.MapFS{"a.yaml": {Data: secret}, "b.yaml": {Data: secret}}
	text, doc := auditPageOf(t, &audit.Result{Findings: []audit.Finding{everything("x")}}, AuditOptions{Files: files})
	if strings.Contains(text, "canary") {
		t.Error("what a Secret holds is shown")
	}
	if n := strings.Count(textOf(doc), "7 |   name: it"); n != 2 {
		t.Errorf("%d excerpts say what the Secret is called, want 2", n)
	}
}
