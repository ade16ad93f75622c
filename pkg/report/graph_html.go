package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// graphPage is what the template of `standup tiers -o html` prints.
type graphPage struct {
	page
	Entry, Revision string
	Summary         string
	CriticalPath    []tierLink
	Picture         graphPicture
	Rows            []graphRow
	Problems        []graphProblem
	HelmReleases    bool
}

// tierLink names a tier; Index is its place in the graph, or -1 where it is not in there.
type tierLink struct {
	Index int
	Name  string
	// Kind says why the tier is waited for, where it is not dependsOn.
	Kind string
}

// graphRow is one line of the table.
type graphRow struct {
	Index, Wave int
	Name, Role  string
	Path, At    string
	Opaque      string
	Waits       []tierLink
	Problems    []graphProblem
	Releases    []graphRelease
}

// graphRelease is one HelmRelease of a tier.
type graphRelease struct {
	Name, Waits string
	Suspended   bool
}

// graphProblem is one problem; Tier is nil where it belongs to a file alone.
type graphProblem struct {
	Index                       int
	Rule, Severity, At, Message string
	Tier                        *tierLink
}

// graphHTML writes the graph as one page: a picture, what is wrong, and the table behind it.
func graphHTML(w io.Writer, g *tiers.Graph, o GraphOptions) error {
	p, err := newPage([]string{"page.css", "graph.css"}, []string{"filter.js", "graph.js"})
	if err != nil {
		return err
	}
	return writePage(w, "graph", newGraphPage(g, o, p))
}

func newGraphPage(g *tiers.Graph, o GraphOptions, p page) graphPage {
	at := positions(g)
	d := graphPage{
		page: p, Entry: g.Entry, Revision: g.Revision, Summary: graphSummary(g), Picture: newGraphPicture(g, o, at),
		CriticalPath: tierLinks(g.CriticalPath, at, o.Namespace), Problems: graphProblems(g, o, at),
	}
	of := map[int][]graphProblem{}
	for _, problem := range d.Problems {
		if problem.Tier != nil {
			of[problem.Tier.Index] = append(of[problem.Tier.Index], problem)
		}
	}
	waits := waitsFor(g, o, at)
	for i, t := range g.Tiers {
		row := newGraphRow(i, t, o)
		row.Waits, row.Problems = waits[i], of[i]
		d.HelmReleases = d.HelmReleases || len(row.Releases) > 0
		d.Rows = append(d.Rows, row)
	}
	return d
}

// positions maps every tier to its place in the graph.
func positions(g *tiers.Graph) map[tiers.Key]int {
	at := make(map[tiers.Key]int, len(g.Tiers))
	for i, t := range g.Tiers {
		at[t.Key] = i
	}
	return at
}

func newTierLink(k tiers.Key, at map[tiers.Key]int, namespace string) tierLink {
	i, ok := at[k]
	if !ok {
		i = -1
	}
	return tierLink{Index: i, Name: Name(k, namespace)}
}

func tierLinks(keys []tiers.Key, at map[tiers.Key]int, namespace string) []tierLink {
	out := make([]tierLink, 0, len(keys))
	for _, k := range keys {
		out = append(out, newTierLink(k, at, namespace))
	}
	return out
}

func newGraphRow(i int, t *tiers.Tier, o GraphOptions) graphRow {
	row := graphRow{
		Index: i, Wave: t.Wave, Name: Name(t.Key, o.Namespace), Role: traits(t), Opaque: t.Opaque,
		Path: t.Kustomization.Spec.Path, At: position(t.File, t.Line),
	}
	for _, h := range t.HelmReleases {
		row.Releases = append(row.Releases, graphRelease{
			Name: Name(h.Key, o.Namespace), Suspended: h.Suspend, Waits: strings.Join(names(h.DependsOn, o.Namespace), ", "),
		})
	}
	return row
}

// waitsFor lists what each tier waits for: dependsOn in the order of the spec, what is not in the graph
// included, then parents and sources.
func waitsFor(g *tiers.Graph, o GraphOptions, at map[tiers.Key]int) [][]tierLink {
	out := make([][]tierLink, len(g.Tiers))
	for i, t := range g.Tiers {
		out[i] = tierLinks(t.DependsOn, at, o.Namespace)
	}
	for _, e := range g.Edges {
		if i, ok := at[e.From]; ok && e.Kind != tiers.DependsOn {
			link := newTierLink(e.To, at, o.Namespace)
			link.Kind = string(e.Kind)
			out[i] = append(out[i], link)
		}
	}
	return out
}

func graphProblems(g *tiers.Graph, o GraphOptions, at map[tiers.Key]int) []graphProblem {
	out := make([]graphProblem, 0, len(g.Problems))
	for i, p := range g.Problems {
		problem := graphProblem{Index: i, Rule: p.Rule, Severity: string(p.Severity), At: position(p.File, p.Line), Message: p.Message}
		if p.Tier != (tiers.Key{}) {
			link := newTierLink(p.Tier, at, o.Namespace)
			problem.Tier = &link
		}
		out = append(out, problem)
	}
	return out
}

// graphSummary counts what is on the page.
func graphSummary(g *tiers.Graph) string {
	counts := map[tiers.Severity]int{}
	for _, p := range g.Problems {
		counts[p.Severity]++
	}
	s := fmt.Sprintf("%s, %s, %s", count(len(g.Tiers), "tier"), count(waves(g), "wave"), count(len(g.Edges), "edge"))
	if len(g.Problems) == 0 {
		return s + "; no problems"
	}
	return s + fmt.Sprintf("; %s, %s, %d info", count(counts[tiers.Error], "error"), count(counts[tiers.Warning], "warning"), counts[tiers.Info])
}
