package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/standup-sh/standup/pkg/tiers"
)

// GraphFormats returns the formats that Graph writes, the default first.
func GraphFormats() []string {
	return []string{"text", "wide", "name", "json", "yaml", "dot", "mermaid", "html"}
}

// GraphOptions say how Graph prints.
type GraphOptions struct {
	// Format is one of GraphFormats; empty means text.
	Format string
	// Namespace is left out of names: the one that the reader takes for granted. Machine formats
	// (json, yaml) always carry it.
	Namespace string
}

// Graph prints the tiers and the order between them. The order of the output is the graph's own,
// so that equal graphs print equal bytes. Problems are part of the JSON and YAML documents and of the
// HTML page; the other formats leave them to Problems, because they are no part of the order.
func Graph(w io.Writer, g *tiers.Graph, o GraphOptions) error {
	switch o.Format {
	case "", "text":
		return graphText(w, g, o, false)
	case "wide":
		return graphText(w, g, o, true)
	case "name":
		return graphNames(w, g, o)
	case "json":
		return JSON(w, NewGraphDocument(g))
	case "yaml":
		return YAML(w, NewGraphDocument(g))
	case "dot":
		return graphDOT(w, g, o)
	case "mermaid":
		return graphMermaid(w, g, o)
	case "html":
		return graphHTML(w, g, o)
	}
	return &FormatError{Format: o.Format, Known: GraphFormats()}
}

// Name writes a tier's key the short way: without the namespace that the reader takes for granted.
// It is empty for what belongs to no tier.
func Name(k tiers.Key, namespace string) string {
	name := keyString(k)
	if k.Namespace == namespace {
		name = k.Name
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name) // not a name that Kubernetes takes, and nothing for a terminal
	}
	return name
}

func names(keys []tiers.Key, namespace string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = Name(k, namespace)
	}
	return out
}

func graphNames(w io.Writer, g *tiers.Graph, o GraphOptions) error {
	for _, t := range g.Tiers {
		if _, err := fmt.Fprintln(w, Name(t.Key, o.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

func graphText(w io.Writer, g *tiers.Graph, o GraphOptions, wide bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "WAVE\tTIER\tROLE\tDEPENDS ON"
	if wide {
		head += "\tPARENT\tSOURCE\tPATH\tFILE"
	}
	fmt.Fprintln(tw, head)
	for _, t := range g.Tiers {
		row := []string{fmt.Sprint(t.Wave), Name(t.Key, o.Namespace), traits(t), dash(strings.Join(names(t.DependsOn, o.Namespace), ", "))}
		if wide {
			parent := ""
			if t.Parent != nil {
				parent = Name(*t.Parent, o.Namespace)
			}
			row = append(row, dash(parent), t.Source, dash(t.Kustomization.Spec.Path), dash(position(t.File, t.Line)))
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
		for _, h := range t.HelmReleases {
			fmt.Fprintf(tw, "\t  HelmRelease/%s\t%s\t%s\n", Name(h.Key, o.Namespace), suspended(h.Suspend), dash(strings.Join(names(h.DependsOn, o.Namespace), ", ")))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, %s, critical path of %d: %s\n",
		count(len(g.Tiers), "tier"), count(waves(g), "wave"), len(g.CriticalPath),
		dash(strings.Join(names(g.CriticalPath, o.Namespace), " → ")))
	return err
}

// traits says in words what a tier is to the order: gate, leaf, suspended, opaque.
func traits(t *tiers.Tier) string {
	var out []string
	if t.Gate {
		out = append(out, "gate")
	}
	if t.Leaf {
		out = append(out, "leaf")
	}
	if t.Suspend {
		out = append(out, "suspended")
	}
	if t.Opaque != "" {
		out = append(out, "opaque")
	}
	return dash(strings.Join(out, ","))
}

func suspended(yes bool) string {
	if yes {
		return "suspended"
	}
	return "-"
}

func waves(g *tiers.Graph) int {
	n := 0
	for _, t := range g.Tiers {
		n = max(n, t.Wave+1)
	}
	return n
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func position(file string, line int) string {
	if file == "" || line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Problems prints one line a problem, the way compilers do:
// file:line: severity: message [rule].
func Problems(w io.Writer, problems []tiers.Problem) error {
	for _, p := range problems {
		at := position(p.File, p.Line)
		if at == "" {
			at = p.Tier.String()
		}
		if _, err := fmt.Fprintf(w, "%s: %s: %s [%s]\n", at, p.Severity, p.Message, p.Rule); err != nil {
			return err
		}
	}
	return nil
}
