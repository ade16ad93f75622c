package report

import (
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/pkg/tiers"
)

// AuditFormats returns the formats that Audit writes, the default first.
func AuditFormats() []string {
	return []string{"text", "json", "yaml", "sarif", "github", "html"}
}

// AuditOptions say how Audit prints.
type AuditOptions struct {
	// Format is one of AuditFormats; empty means text.
	Format string
	// Namespace is left out of names: the one that the reader takes for granted.
	Namespace string
	// Files is the tree that was audited, for excerpts; nil for none.
	Files fs.FS
	// Config is the path of the configuration, for its unused entries.
	Config string
	// Version is standup's own, for SARIF.
	Version string
	// Kinds adds the table of kinds to the text.
	Kinds bool
}

// Audit prints what an audit found. Equal results print equal bytes.
func Audit(w io.Writer, r *audit.Result, o AuditOptions) error {
	switch o.Format {
	case "", "text":
		return auditText(w, r, o)
	case "json":
		return JSON(w, NewAuditDocument(r))
	case "yaml":
		return YAML(w, NewAuditDocument(r))
	case "sarif":
		return auditSARIF(w, r, o)
	case "github":
		return auditGitHub(w, r, o)
	case "html":
		return auditHTML(w, r, o)
	}
	return &FormatError{Format: o.Format, Known: AuditFormats()}
}

// auditText prints findings the way a good compiler does: what is wrong and where, an excerpt, why,
// how to mend it.
func auditText(w io.Writer, r *audit.Result, o AuditOptions) error {
	var b strings.Builder
	for _, f := range r.Findings {
		findingText(&b, f, o)
	}
	if o.Kinds {
		kindsText(&b, r, o)
	}
	for _, u := range r.Unused {
		fmt.Fprintf(&b, "%s:%d: %s\n", o.Config, u.Line, u.Message)
	}
	if len(r.Unused) > 0 {
		b.WriteString("\n")
	}
	assumedText(&b, r, o)
	b.WriteString(auditSummary(r))
	_, err := io.WriteString(w, b.String())
	return err
}

func findingText(b *strings.Builder, f audit.Finding, o AuditOptions) {
	fmt.Fprintf(b, "%s[%s]: %s\n", f.Severity, f.Rule, f.Message)
	place(b, f.At, "", o)
	for _, at := range f.Related {
		if at.File != "" {
			place(b, at, at.Note, o)
		}
	}
	for _, c := range f.Cause {
		note(b, "why", c)
	}
	if len(f.Blocked) > 0 {
		note(b, "blocks", blast(f, o.Namespace))
	}
	if f.Evidence != "git" {
		note(b, "evidence", strings.TrimSpace(string(f.Evidence)+" "+f.Reference))
	}
	if f.Fix != "" {
		note(b, "fix", f.Fix)
	}
	if f.FixYAML != "" {
		for line := range strings.SplitSeq(strings.TrimSuffix(f.FixYAML, "\n"), "\n") {
			fmt.Fprintf(b, "        %s\n", line)
		}
	}
	b.WriteString("\n")
}

// blast says how far a finding reaches.
func blast(f audit.Finding, namespace string) string {
	all := strings.Join(names(f.Blocked, namespace), ", ")
	switch {
	case f.BlockedDirectly == 0 || f.BlockedDirectly == len(f.Blocked):
		return fmt.Sprintf("%s: %s", count(len(f.Blocked), "tier"), all)
	}
	return fmt.Sprintf("%s blocked directly, %d in all: %s", count(f.BlockedDirectly, "tier"), len(f.Blocked), all)
}

func note(b *strings.Builder, label, text string) {
	fmt.Fprintf(b, "  = %s: %s\n", label, text)
}

// place prints a location and the first lines of what is there.
func place(b *strings.Builder, at audit.Location, label string, o AuditOptions) {
	if at.File == "" {
		return
	}
	fmt.Fprintf(b, "  --> %s", position(at.File, at.Line))
	if label != "" {
		fmt.Fprintf(b, " (%s)", label)
	}
	b.WriteString("\n")
	for _, l := range excerpt(o.Files, at, 5) {
		fmt.Fprintf(b, "%5d | %s\n", l.number, l.text)
	}
}

type excerptLine struct {
	number int
	text   string
}

// excerpt reads the lines of a document that say what it is: up to most lines, from the location to
// the name.
func excerpt(files fs.FS, at audit.Location, most int) []excerptLine {
	if files == nil || at.Line == 0 {
		return nil
	}
	data, err := fs.ReadFile(files, at.File)
	if err != nil {
		return nil
	}
	lines := strings.Split(string(data), "\n")
	veil := newVeil(lines, at.Line)
	var out []excerptLine
	for n := at.Line; n <= len(lines) && len(out) < most; n++ {
		text := strings.TrimRight(lines[n-1], " \t\r")
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if trimmed == "---" && len(out) > 0 {
			break
		}
		if veil.hides(text) {
			continue
		}
		out = append(out, excerptLine{n, text})
		if strings.HasPrefix(trimmed, "name:") {
			break
		}
	}
	return out
}

func assumedText(b *strings.Builder, r *audit.Result, o AuditOptions) {
	if len(r.Assumed) == 0 {
		return
	}
	b.WriteString("Taken to be there before Flux, because nothing in git makes it (declare it in .standup.yaml):\n")
	for _, a := range r.Assumed {
		used := names(a.Tiers, o.Namespace)
		if len(used) > 4 {
			used = append(used[:3:3], fmt.Sprintf("%d more", len(used)-3))
		}
		fmt.Fprintf(b, "  %s  used by %s\n", a.What, strings.Join(used, ", "))
	}
	b.WriteString("\n")
}

func kindsText(b *strings.Builder, r *audit.Result, o AuditOptions) {
	for _, k := range r.Kinds {
		if k.Provider == "builtin" {
			continue
		}
		fmt.Fprintf(b, "%s: %s", kindName(k), kindOrigin(k, o.Namespace))
		if k.Evidence != "" {
			fmt.Fprintf(b, " (%s)", k.Evidence)
		}
		if k.Provider == "unknown" && k.Hint != "" {
			fmt.Fprintf(b, ": %s", k.Hint)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func kindName(k audit.Kind) string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// kindOrigin says what brings a kind, where, and after what.
func kindOrigin(k audit.Kind, namespace string) string {
	from := k.Provider
	if k.Tier != (tiers.Key{}) {
		from += " in " + Name(k.Tier, namespace)
	}
	if k.Trigger != "" {
		from += ", after " + k.Trigger
	}
	return from
}

func auditSummary(r *audit.Result) string {
	counts := map[tiers.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	s := fmt.Sprintf("%d of %s come up from cold", r.Ready, count(r.Tiers, "tier"))
	if n := len(r.Unsure); n > 0 {
		s += fmt.Sprintf(", of %d git alone does not tell", n)
	}
	if len(r.Findings) == 0 {
		s += "; no findings"
	} else {
		s += fmt.Sprintf("; %s, %s, %d info", count(counts[tiers.Error], "error"), count(counts[tiers.Warning], "warning"), counts[tiers.Info])
	}
	if len(r.Accepted) > 0 {
		s += fmt.Sprintf(", %d accepted", len(r.Accepted))
	}
	return s + "\n"
}

// auditGitHub prints workflow commands, which GitHub shows beside the lines of a pull request.
func auditGitHub(w io.Writer, r *audit.Result, o AuditOptions) error {
	var b strings.Builder
	for _, f := range r.Findings {
		level := map[tiers.Severity]string{tiers.Error: "error", tiers.Warning: "warning", tiers.Info: "notice"}[f.Severity]
		fmt.Fprintf(&b, "::%s ", level)
		if f.At.File != "" {
			fmt.Fprintf(&b, "file=%s,", escapeProperty(f.At.File))
			if f.At.Line > 0 {
				fmt.Fprintf(&b, "line=%d,", f.At.Line)
			}
		}
		text := f.Message
		for _, c := range f.Cause {
			text += "\n" + c
		}
		if f.Fix != "" {
			text += "\nfix: " + f.Fix
		}
		fmt.Fprintf(&b, "title=%s::%s\n", escapeProperty("standup "+f.Rule), escapeData(text))
	}
	for _, u := range r.Unused {
		fmt.Fprintf(&b, "::notice file=%s,line=%d,title=standup::%s\n", escapeProperty(o.Config), u.Line, escapeData(u.Message))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escapeData and escapeProperty are the escapes of workflow commands (actions/toolkit's command.ts).
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
