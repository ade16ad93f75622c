package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/standup-sh/standup/pkg/tiers"
)

// graphPicture is the drawing of a graph, ready for the template: one box a tier, one path an edge.
type graphPicture struct {
	Width, Height int
	Bands         []band
	Boxes         []graphBox
	Edges         []graphEdge
}

// graphBox is one tier. Class carries what it is (gate, suspended, opaque, error, warning, critical);
// Title says the same in words.
type graphBox struct {
	rectangle
	Index                     int
	Name, Label, Class, Title string
	Gate                      bool
	Marks                     []sign
}

// InnerWidth and InnerHeight are the size of the second border of a gate.
func (b graphBox) InnerWidth() int  { return b.Width - 6 }
func (b graphBox) InnerHeight() int { return b.Height - 6 }

// sign is a mark at the end of a box: it tells apart without colour what the box is.
type sign struct {
	Name string
	X    int
}

// graphEdge is one edge; From waits for To. Path runs the way time goes, from To to From.
type graphEdge struct {
	From, To           int
	Class, Path, Title string
	// Back says that it does not lead to a later wave: it is part of a cycle.
	Back bool
}

const (
	labelInset  = 8
	charWidth   = 7.3 // of the monospaced fonts at 12 pixels, the widest of them
	labelLength = 40  // characters; longer names are cut, the title has the whole
	markWidth   = 15
)

func newGraphPicture(g *tiers.Graph, o GraphOptions, at map[tiers.Key]int) graphPicture {
	boxes := graphBoxes(g, o)
	implied := impliedParents(g)
	nodes := make([]node, len(boxes))
	for i, b := range boxes {
		nodes[i] = node{wave: g.Tiers[i].Wave, width: b.Width}
	}
	for _, e := range g.Edges {
		from, to := at[e.From], at[e.To]
		if !implied[e] && nodes[to].wave < nodes[from].wave {
			nodes[from].near = append(nodes[from].near, to)
		}
	}
	l := arrange(nodes)
	for i := range boxes {
		boxes[i].rectangle = l.boxes[i]
		for n := range boxes[i].Marks {
			boxes[i].Marks[n].X = boxes[i].Width - markWidth*(len(boxes[i].Marks)-n) - 2
		}
	}
	return graphPicture{Width: l.width, Height: l.height, Bands: l.bands, Boxes: boxes, Edges: graphEdges(g, o, at, l, implied)}
}

// graphBoxes makes the boxes with the widths that they need, in the graph's order.
func graphBoxes(g *tiers.Graph, o GraphOptions) []graphBox {
	worst := map[tiers.Key]tiers.Severity{}
	for _, p := range g.Problems {
		if p.Severity == tiers.Error || p.Severity == tiers.Warning && worst[p.Tier] == "" {
			worst[p.Tier] = p.Severity
		}
	}
	critical := make(map[tiers.Key]bool, len(g.CriticalPath))
	for _, k := range g.CriticalPath {
		critical[k] = true
	}
	boxes := make([]graphBox, 0, len(g.Tiers))
	for i, t := range g.Tiers {
		name := Name(t.Key, o.Namespace)
		b := graphBox{Index: i, Name: name, Label: cut(name, labelLength), Gate: t.Gate}
		classes := []string{"tier"}
		for _, c := range []struct {
			class string
			is    bool
			mark  bool
		}{
			{"critical", critical[t.Key], false},
			{"gate", t.Gate, false},
			{"suspended", t.Suspend, true},
			{"opaque", t.Opaque != "", true},
			{"warning", worst[t.Key] == tiers.Warning, true},
			{"error", worst[t.Key] == tiers.Error, true},
		} {
			if c.is {
				classes = append(classes, c.class)
			}
			if c.is && c.mark {
				b.Marks = append(b.Marks, sign{Name: c.class})
			}
		}
		b.Class = strings.Join(classes, " ")
		b.Title = boxTitle(name, t, classes[1:])
		b.Width = 2*labelInset + int(math.Ceil(charWidth*float64(utf8.RuneCountInString(b.Label)))) + markWidth*len(b.Marks)
		boxes = append(boxes, b)
	}
	return boxes
}

// boxTitle says in words what a box shows.
func boxTitle(name string, t *tiers.Tier, is []string) string {
	title := fmt.Sprintf("%s, wave %d", name, t.Wave)
	for _, what := range is {
		title += ", " + map[string]string{
			"critical": "on the critical path", "gate": "gate", "suspended": "suspended", "opaque": "opaque: " + t.Opaque,
			"warning": "has warnings", "error": "has errors",
		}[what]
	}
	if at := position(t.File, t.Line); at != "" {
		title += "\n" + at
	}
	return title
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// impliedParents are the parent edges that order nothing by themselves: the tier also waits for one of an
// earlier wave that has the same parent. They are drawn faintly, and pull no box.
func impliedParents(g *tiers.Graph) map[tiers.Edge]bool {
	at := make(map[tiers.Key]*tiers.Tier, len(g.Tiers))
	for _, t := range g.Tiers {
		at[t.Key] = t
	}
	after := map[tiers.Key]bool{}
	for _, e := range g.Edges {
		from, to := at[e.From], at[e.To]
		if e.Kind != tiers.Parent && to.Wave < from.Wave && from.Parent != nil && to.Parent != nil && *from.Parent == *to.Parent {
			after[e.From] = true
		}
	}
	out := map[tiers.Edge]bool{}
	for _, e := range g.Edges {
		if e.Kind == tiers.Parent && after[e.From] {
			out[e] = true
		}
	}
	return out
}

func graphEdges(g *tiers.Graph, o GraphOptions, at map[tiers.Key]int, l layout, implied map[tiers.Edge]bool) []graphEdge {
	critical, exprs := criticalSteps(g), readyExprs(g)
	out := make([]graphEdge, 0, len(g.Edges))
	for _, e := range g.Edges {
		d := graphEdge{From: at[e.From], To: at[e.To], Class: "edge " + string(e.Kind)}
		if implied[e] {
			d.Class += " implied"
		}
		if critical[[2]tiers.Key{e.To, e.From}] {
			d.Class += " critical"
		}
		from, to := l.boxes[d.From], l.boxes[d.To]
		d.Back = from.X <= to.right()
		d.Path = curve(to, from, e.Kind)
		d.Title = fmt.Sprintf("%s waits for %s (%s)", Name(e.From, o.Namespace), Name(e.To, o.Namespace), e.Kind)
		if exprs[e] != "" {
			d.Title += " until " + exprs[e]
		}
		if written := position(e.File, e.Line); written != "" {
			d.Title += "\n" + written
		}
		out = append(out, d)
	}
	return out
}

// curve is the path of an edge. Kinds meet the boxes at different heights, so that two edges between the
// same tiers can be seen. What does not lead to a later wave (part of a cycle) bulges to the right.
func curve(to, from rectangle, kind tiers.EdgeKind) string {
	shift := map[tiers.EdgeKind]int{tiers.Parent: -5, tiers.Source: 5}[kind]
	x1, y1, x2, y2 := to.right(), to.middle()+shift, from.X, from.middle()+shift
	if x2 <= x1 {
		x2 = from.right()
		if y1 == y2 {
			y1, y2 = y1-6, y2+6 // a tier that waits for itself
		}
		bulge := max(x1, x2) + bandGap*2/3
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, bulge, y1, bulge, y2, x2, y2)
	}
	half := (x1 + x2) / 2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, half, y1, half, y2, x2, y2)
}
