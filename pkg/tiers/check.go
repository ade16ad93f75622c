package tiers

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/xrash/smetrics"

	"github.com/standup-sh/standup/pkg/render"
)

// check looks for what keeps a graph from being what its author meant.
func (l *loader) check(g *Graph) {
	byKey := index(g.Tiers)
	for _, t := range g.Tiers {
		for _, d := range t.DependsOn {
			if byKey[d] == nil && d.Name != "" {
				l.missing(g, t, d)
			}
		}
	}
	l.checkCycles(g)
	l.checkWaits(g)
}

// missing reports a dependency that does not exist.
func (l *loader) missing(g *Graph, t *Tier, d Key) {
	p := Problem{Rule: "missing-dependency", Severity: Error, Tier: t.Key, File: t.File, Line: t.Line,
		Message: fmt.Sprintf("Kustomization/%s depends on %s, which does not exist", keyString(t.Key), keyString(d))}
	if _, ok := l.charts[d]; ok {
		p.Message += "; a HelmRelease of that name exists, but dependsOn names Kustomizations"
	} else if o, ok := l.leftOut[d]; ok {
		p.Message += fmt.Sprintf("; %s:%d opts out of being applied, so that Flux never creates it", o.File, o.Line)
	} else if near := nearest(g.Tiers, d); len(near) > 0 {
		p.Message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	var opaque []string
	for _, o := range g.Tiers {
		if o.Opaque != "" && o.Key != t.Key && o.Kustomization.Spec.KubeConfig == nil {
			opaque = append(opaque, keyString(o.Key))
		}
	}
	if _, chart := l.charts[d]; len(opaque) > 0 && !chart {
		p.Severity = Warning
		p.Message += "; it may be in " + strings.Join(opaque[:min(3, len(opaque))], ", ") + ", whose objects are not known"
	} else if l.unknownSets() && !chart {
		p.Severity = Warning
		p.Message += "; a ResourceSet may generate it, whose inputs are not known"
	}
	l.problem(p)
}

// unknownSets reports whether there are ResourceSets that generate Kustomizations which are not known.
func (l *loader) unknownSets() bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool { return p.Rule == "resourceset" && p.Severity == Warning })
}

// checkCycles reports every cycle of edges with its whole path.
func (l *loader) checkCycles(g *Graph) {
	byKey := index(g.Tiers)
	for _, c := range cycles(g.Tiers, adjacency(g.Edges)) {
		var files []string
		for _, k := range c {
			if f := byKey[k].File; f != "" && !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
		msg := "each waits for the next: " + pathString(append(slices.Clone(c), c[0]))
		if len(files) > 0 {
			msg += " (" + strings.Join(files, ", ") + ")"
		}
		first := byKey[c[0]]
		l.problem(Problem{Rule: "cycle", Severity: Error, Tier: first.Key, File: first.File, Line: first.Line, Message: msg})
	}
}

// checkWaits reports deadlocks of readiness: a parent that waits is ready only when its children
// are, so a child that needs the parent to be ready can never be. The relation is "can be ready
// only when", so cycles made of dependsOn alone, reported already, are left out. So are dependencies
// with a readyExpr, which may ask for less than readiness.
func (l *loader) checkWaits(g *Graph) {
	needs := map[Key][]Key{}
	waits := map[Key]map[Key]bool{}
	byKey := index(g.Tiers)
	for _, t := range g.Tiers {
		for _, d := range t.DependsOn {
			if byKey[d] != nil && t.ReadyExpr(d) == "" {
				needs[t.Key] = append(needs[t.Key], d)
			}
		}
		if t.Parent == nil || byKey[*t.Parent] == nil {
			continue
		}
		if p := byKey[*t.Parent]; Watches(p, kustomizeGroup, "Kustomization", t.Key) {
			needs[p.Key] = append(needs[p.Key], t.Key)
			if waits[p.Key] == nil {
				waits[p.Key] = map[Key]bool{}
			}
			waits[p.Key][t.Key] = true
		}
	}
	for _, k := range needs {
		slices.SortFunc(k, compareKeys)
	}
	for _, c := range cycles(g.Tiers, needs) {
		for i, k := range c {
			child := c[(i+1)%len(c)]
			if !waits[k][child] {
				continue
			}
			t := byKey[child]
			l.problem(Problem{Rule: "child-depends-on-waiting-parent", Severity: Error, Tier: child, File: t.File, Line: t.Line,
				Message: fmt.Sprintf("Kustomization/%s can never be ready: its parent %s waits for it (spec.wait or healthChecks), and it waits for its parent: %s",
					keyString(child), keyString(k), waitPath(c, i))})
			break
		}
	}
}

// waitPath writes a cycle that starts with the child after position i.
func waitPath(c []Key, i int) string {
	at := (i + 1) % len(c)
	out := append(slices.Clone(c[at:]), c[:at]...)
	return pathString(append(out, c[at]))
}

// duplicate reports a second tier of one name.
func (l *loader) duplicate(old *state, parent *state, o render.Object) {
	by := "the entry path"
	if old.tier.Parent != nil {
		by = "Kustomization/" + keyString(*old.tier.Parent)
	}
	l.problem(Problem{Rule: "duplicate", Severity: Error, Tier: old.tier.Key, File: o.File, Line: o.Line,
		Message: fmt.Sprintf("Kustomization/%s is applied by %s (%s) and by Kustomization/%s (%s): the last to apply wins, again and again",
			keyString(old.tier.Key), by, old.tier.File, keyString(parent.tier.Key), o.File)})
}

// nearest lists existing tiers that a wrong dependency may have meant: the same name elsewhere, or
// a name a few letters away.
func nearest(tiers []*Tier, d Key) []string {
	type guess struct {
		name string
		cost int
	}
	var guesses []guess
	for _, t := range tiers {
		cost := smetrics.WagnerFischer(t.Name, d.Name, 1, 1, 1) * 2
		if t.Namespace != d.Namespace {
			cost++
		}
		if limit := max(2, len(d.Name)/3); cost <= 2*limit {
			guesses = append(guesses, guess{keyString(t.Key), cost})
		}
	}
	slices.SortFunc(guesses, func(a, b guess) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		return compareStrings(a.name, b.name)
	})
	var out []string
	for _, g := range guesses[:min(2, len(guesses))] {
		out = append(out, g.name)
	}
	return out
}

// nearPath names the closest existing folder for a path that does not exist.
func (l *loader) nearPath(s *state, dir string) string {
	parent := path.Dir(dir)
	entries, err := s.src.Tree().ReadDir(parent)
	if err != nil {
		return ""
	}
	best, name := 3, ""
	for _, e := range entries {
		if d := smetrics.WagnerFischer(e.Name, path.Base(dir), 1, 1, 1); e.IsDir() && d < best {
			best, name = d, e.Name
		}
	}
	if name == "" {
		return ""
	}
	return "; did you mean " + path.Join(parent, name) + "?"
}
