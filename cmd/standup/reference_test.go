package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

//go:generate go test -run ^TestReference$ . -update

// TestReference holds docs/cli.md and the README's command table to the commands themselves. With
// -update it rewrites them.
func TestReference(t *testing.T) {
	app := newApp(io.Discard, io.Discard).cli()
	root := filepath.Join("..", "..")
	compare(t, filepath.Join(root, "docs", "cli.md"), func(string) string { return reference(app) })
	compare(t, filepath.Join(root, "README.md"), func(old string) string {
		before, rest, ok := strings.Cut(old, beginTable)
		_, after, ok2 := strings.Cut(rest, endTable)
		if !ok || !ok2 {
			t.Fatalf("README.md has no %s … %s", beginTable, endTable)
		}
		return before + beginTable + "\n" + commandTable(app) + endTable + after
	})
}

const (
	beginTable = "<!-- commands: generated, see `make generate` -->"
	endTable   = "<!-- end of commands -->"
)

func compare(t *testing.T, file string, generate func(old string) string) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	text := generate(string(old))
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(old), text); diff != "" {
		t.Errorf("%s is not what the commands say; run make generate (-file +commands):\n%s", file, diff)
	}
}

func commandTable(app *cli.App) string {
	var b strings.Builder
	b.WriteString("| command | what it does |\n|---|---|\n")
	for _, c := range app.Commands {
		fmt.Fprintf(&b, "| [`standup %s`](docs/cli.md#standup-%s) | %s |\n", c.Name, c.Name, c.Usage)
	}
	return b.String()
}

func reference(app *cli.App) string {
	var b strings.Builder
	b.WriteString("# The command line\n\nGenerated from the commands themselves by `make generate`.\n\n" +
		"Flags come after the command; there are no positional arguments. Every flag has an environment variable, `STANDUP_` and its name.\n" +
		"stdout carries the result and nothing else; progress, hints and logs go to stderr.\n\n" +
		"Exit codes: 0 done, ready, clean · 1 not ready, or findings of severity error · 2 could not run (usage, git, API) · 130 interrupted.\n")
	for _, c := range app.Commands {
		describe(&b, "standup "+c.Name, c)
	}
	return b.String()
}

func describe(b *strings.Builder, name string, c *cli.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n", name, strings.ToUpper(c.Usage[:1])+c.Usage[1:])
	if c.Description != "" {
		fmt.Fprintf(b, "\n%s", markdown(c.Description))
	}
	b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
	for _, f := range c.Flags {
		d, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		names := make([]string, 0, 2)
		for _, n := range f.Names() {
			names = append(names, "`"+strings.Repeat("-", min(len(n), 2))+n+"`")
		}
		value := d.GetDefaultText()
		if value == "" || value == "false" || value == `""` {
			value = ""
		} else {
			value = "`" + strings.Trim(value, `"`) + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", strings.Join(names, ", "), value, strings.ReplaceAll(strings.ReplaceAll(d.GetUsage(), "`", ""), "|", "\\|"))
	}
	for _, sub := range c.Subcommands {
		describe(b, name+" "+sub.Name, sub)
	}
}

// markdown turns a description into paragraphs and code blocks: lines that are indented are code.
func markdown(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "   ")
		if indented && !code {
			b.WriteString("```console\n")
		}
		if !indented && code && line != "" {
			b.WriteString("```\n\n")
		}
		code = indented || code && line == ""
		b.WriteString(strings.TrimPrefix(line, "   ") + "\n")
	}
	out := strings.TrimRight(b.String(), "\n")
	if code {
		out += "\n```"
	}
	return out + "\n"
}
