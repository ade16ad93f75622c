package report

import (
	"slices"
	"strings"
)

// ruleBlock is a part of a rule's page. Kind is heading, text or code.
type ruleBlock struct {
	Kind  string
	Text  string     // of a heading or of code
	Spans []ruleSpan // of a text
}

// ruleSpan is a run of words in a text. Kind is empty, code or emphasis.
type ruleSpan struct{ Kind, Text string }

// ruleBlocks reads the little Markdown that the pages of rules are written in: headings, paragraphs,
// fenced code, and in a paragraph `code` and *emphasis*. The first heading is the rule's name, which
// stands elsewhere. What is not understood stays text.
func ruleBlocks(text string) []ruleBlock {
	var out []ruleBlock
	var paragraph []string
	finish := func() {
		if len(paragraph) > 0 {
			out = append(out, ruleBlock{Kind: "text", Spans: ruleSpans(strings.Join(paragraph, " "))})
			paragraph = nil
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "```"):
			finish()
			end := len(lines)
			if n := slices.Index(lines[i+1:], "```"); n >= 0 {
				end = i + 1 + n
			}
			out = append(out, ruleBlock{Kind: "code", Text: strings.Join(lines[i+1:end], "\n")})
			i = end
		case strings.HasPrefix(line, "## "):
			finish()
			out = append(out, ruleBlock{Kind: "heading", Text: strings.TrimPrefix(line, "## ")})
		case strings.HasPrefix(line, "# "), strings.TrimSpace(line) == "":
			finish()
		default:
			paragraph = append(paragraph, line)
		}
	}
	finish()
	return out
}

// ruleSpans splits a paragraph at its code and emphasis; a mark without its other half is text.
func ruleSpans(text string) []ruleSpan {
	var out []ruleSpan
	add := func(kind, text string) {
		if text != "" {
			out = append(out, ruleSpan{kind, text})
		}
	}
	plain := 0
	for i := 0; i < len(text); i++ {
		kind := map[byte]string{'`': "code", '*': "emphasis"}[text[i]]
		if kind == "" {
			continue
		}
		n := strings.IndexByte(text[i+1:], text[i])
		if n <= 0 || kind == "emphasis" && text[i+1] == ' ' {
			continue
		}
		add("", text[plain:i])
		add(kind, text[i+1:i+1+n])
		i += n + 1
		plain = i + 1
	}
	add("", text[plain:])
	return out
}
