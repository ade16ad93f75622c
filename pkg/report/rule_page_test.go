package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
)

func TestRuleBlocks(t *testing.T) {
	got := ruleBlocks("# the-rule\n\nOne `code *not*` and\n*two* words * 3.\n\n## Fix\n```yaml\nkind: A\n\n# a comment\n```\nA lone ` stays.\n```\nopen")
	want := []ruleBlock{
		{Kind: "text", Spans: []ruleSpan{{"", "One "}, {"code", "code *not*"}, {"", " and "}, {"emphasis", "two"}, {"", " words * 3."}}},
		{Kind: "heading", Text: "Fix"},
		{Kind: "code", Text: "kind: A\n\n# a comment"},
		{Kind: "text", Spans: []ruleSpan{{"", "A lone ` stays."}}},
		{Kind: "code", Text: "open"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRuleBlocksLoseNothing: every word of every rule's page is in a block.
func TestRuleBlocksLoseNothing(t *testing.T) {
	for _, rule := range audit.Rules() {
		page, err := audit.Explain(rule.ID)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, b := range ruleBlocks(page) {
			text = append(text, b.Text)
			for _, s := range b.Spans {
				text = append(text, s.Text)
			}
		}
		if got, want := letters(strings.Join(text, " ")), letters(strings.TrimPrefix(page, "# "+rule.ID)); got != want {
			t.Errorf("%s: %s", rule.ID, cmp.Diff(want, got))
		}
	}
}

// letters leaves out white space and what marks up.
func letters(s string) string {
	s = strings.ReplaceAll(s, "```yaml", "")
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \n`*#", r) {
			return -1
		}
		return r
	}, s)
}
