package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// graphDOT draws for Graphviz: one rank a wave, gates with a double border, the critical path bold.
// Arrows point the way time goes: from what must be ready to what waits for it.
func graphDOT(w io.Writer, g *tiers.Graph, o GraphOptions) error {
	var b strings.Builder
	b.WriteString("digraph tiers {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n")
	critical := criticalSteps(g)
	for wave := range waves(g) {
		b.WriteString("  { rank=same;")
		for _, t := range g.Tiers {
			if t.Wave == wave {
				fmt.Fprintf(&b, " %q;", t.String())
			}
		}
		b.WriteString(" }\n")
	}
	for _, t := range g.Tiers {
		attrs := []string{fmt.Sprintf("label=%q", Name(t.Key, o.Namespace))}
		if t.Gate {
			attrs = append(attrs, "peripheries=2")
		}
		if t.Suspend || t.Opaque != "" {
			attrs = append(attrs, "style=dashed")
		}
		fmt.Fprintf(&b, "  %q [%s];\n", t.String(), strings.Join(attrs, ", "))
	}
	for _, e := range g.Edges {
		attrs := []string{}
		if e.Kind != tiers.DependsOn {
			attrs = append(attrs, "style=dotted", fmt.Sprintf("label=%q", e.Kind))
		}
		if critical[[2]tiers.Key{e.To, e.From}] {
			attrs = append(attrs, "penwidth=2")
		}
		fmt.Fprintf(&b, "  %q -> %q", e.To.String(), e.From.String())
		if len(attrs) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(attrs, ", "))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// graphMermaid draws for Markdown: GitHub and GitLab show it in a pull request. Nodes get numbers
// for ids, since names may hold what Mermaid takes for syntax.
func graphMermaid(w io.Writer, g *tiers.Graph, o GraphOptions) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	id := make(map[tiers.Key]int, len(g.Tiers))
	for i, t := range g.Tiers {
		id[t.Key] = i
		open, end := "[", "]"
		if t.Gate {
			open, end = "[[", "]]"
		}
		fmt.Fprintf(&b, "  t%d%s\"%s\"%s\n", i, open, mermaidText(Name(t.Key, o.Namespace)), end)
	}
	critical := criticalSteps(g)
	for _, e := range g.Edges {
		arrow := "-->"
		switch {
		case critical[[2]tiers.Key{e.To, e.From}]:
			arrow = "==>"
		case e.Kind != tiers.DependsOn:
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  t%d %s t%d\n", id[e.To], arrow, id[e.From])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidText escapes what Mermaid or HTML would read as syntax.
func mermaidText(s string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(s)
}

// criticalSteps is the set of consecutive pairs of the critical path.
func criticalSteps(g *tiers.Graph) map[[2]tiers.Key]bool {
	out := make(map[[2]tiers.Key]bool)
	for i := 1; i < len(g.CriticalPath); i++ {
		out[[2]tiers.Key{g.CriticalPath[i-1], g.CriticalPath[i]}] = true
	}
	return out
}
