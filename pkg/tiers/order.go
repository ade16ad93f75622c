package tiers

import (
	"slices"
	"sort"
)

// sortGraph puts tiers and edges in order and fills in waves, leaves and the critical path.
func sortGraph(g *Graph) {
	slices.SortFunc(g.Edges, compareEdges)
	g.Edges = slices.CompactFunc(g.Edges, func(a, b Edge) bool {
		return a.From == b.From && a.To == b.To && a.Kind == b.Kind
	})
	needs := adjacency(g.Edges)
	for _, t := range g.Tiers {
		t.Leaf = true
	}
	byKey := index(g.Tiers)
	for _, e := range g.Edges {
		if t := byKey[e.To]; t != nil && e.From != e.To {
			t.Leaf = false
		}
	}
	comps := components(g.Tiers, needs)
	member := map[Key]int{}
	for i, c := range comps {
		for _, k := range c {
			member[k] = i
		}
	}
	// components come with what they need before them.
	depth := make([]int, len(comps))
	cyclic := make([]bool, len(comps))
	for i, c := range comps {
		cyclic[i] = len(c) > 1 || slices.Contains(needs[c[0]], c[0])
		for _, k := range c {
			for _, n := range needs[k] {
				if j := member[n]; j != i {
					depth[i] = max(depth[i], depth[j]+1)
					cyclic[i] = cyclic[i] || cyclic[j]
				}
			}
		}
	}
	late := func(k Key) bool { return cyclic[member[k]] }
	for _, t := range g.Tiers {
		t.Wave = depth[member[t.Key]]
	}
	sort.SliceStable(g.Tiers, func(i, j int) bool {
		a, b := g.Tiers[i], g.Tiers[j]
		if late(a.Key) != late(b.Key) {
			return late(b.Key)
		}
		if a.Wave != b.Wave {
			return a.Wave < b.Wave
		}
		return less(a.Key, b.Key)
	})
	g.CriticalPath = criticalPath(g, needs, member)
}

// criticalPath walks back from the deepest tier. Inside a cycle there is no longest chain: it is
// passed by its smallest member.
func criticalPath(g *Graph, needs map[Key][]Key, member map[Key]int) []Key {
	byKey := index(g.Tiers)
	var at *Tier
	for _, t := range g.Tiers {
		if at == nil || t.Wave > at.Wave || (t.Wave == at.Wave && less(t.Key, at.Key)) {
			at = t
		}
	}
	var path []Key
	for at != nil {
		path = append(path, at.Key)
		var next *Tier
		for _, n := range reach(at.Key, needs, member) {
			if t := byKey[n]; t.Wave == at.Wave-1 && (next == nil || less(t.Key, next.Key)) {
				next = t
			}
		}
		at = next
	}
	slices.Reverse(path)
	return path
}

// reach lists what a tier's component needs outside itself.
func reach(k Key, needs map[Key][]Key, member map[Key]int) []Key {
	var out []Key
	seen := map[Key]bool{k: true}
	for queue := []Key{k}; len(queue) > 0; queue = queue[1:] {
		for _, n := range needs[queue[0]] {
			if member[n] != member[k] {
				out = append(out, n)
			} else if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return out
}

func index(tiers []*Tier) map[Key]*Tier {
	m := make(map[Key]*Tier, len(tiers))
	for _, t := range tiers {
		m[t.Key] = t
	}
	return m
}

// adjacency maps each tier to what it needs, each once, sorted.
func adjacency(edges []Edge) map[Key][]Key {
	needs := map[Key][]Key{}
	for _, e := range edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	for k := range needs {
		slices.SortFunc(needs[k], compareKeys)
		needs[k] = slices.Compact(needs[k])
	}
	return needs
}

// components are the strongly connected components of the graph, each sorted, each after those it needs.
func components(tiers []*Tier, needs map[Key][]Key) [][]Key {
	keys := make([]Key, 0, len(tiers))
	for _, t := range tiers {
		keys = append(keys, t.Key)
	}
	slices.SortFunc(keys, compareKeys)
	at := make(map[Key]int, len(keys))
	for i, k := range keys {
		at[k] = i
	}
	edges := make([][]int, len(keys))
	for i, k := range keys {
		for _, n := range needs[k] {
			if j, ok := at[n]; ok {
				edges[i] = append(edges[i], j)
			}
		}
	}
	var out [][]Key
	for _, component := range Components(edges) {
		slices.Sort(component)
		members := make([]Key, 0, len(component))
		for _, i := range component {
			members = append(members, keys[i])
		}
		out = append(out, members)
	}
	return out
}

// cycles lists, for every member of every strongly connected component, a shortest cycle through
// it; each cycle once, starting with its smallest member.
func cycles(tiers []*Tier, needs map[Key][]Key) [][]Key {
	var out [][]Key
	seen := map[string]bool{}
	for _, comp := range components(tiers, needs) {
		in := map[Key]bool{}
		for _, k := range comp {
			in[k] = true
		}
		for _, k := range comp {
			c := rotate(shortestCycle(k, needs, in))
			if id := pathString(c); len(c) > 0 && !seen[id] {
				seen[id] = true
				out = append(out, c)
			}
		}
	}
	return out
}

func shortestCycle(start Key, needs map[Key][]Key, in map[Key]bool) []Key {
	from := map[Key]Key{}
	for queue := []Key{start}; len(queue) > 0; queue = queue[1:] {
		k := queue[0]
		for _, n := range needs[k] {
			if n == start {
				path := []Key{k}
				for at := k; at != start; at = path[len(path)-1] {
					path = append(path, from[at])
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[n]; !seen && in[n] {
				from[n] = k
				queue = append(queue, n)
			}
		}
	}
	return nil
}

// rotate makes a cycle start with its smallest member.
func rotate(c []Key) []Key {
	best := 0
	for i := range c {
		if less(c[i], c[best]) {
			best = i
		}
	}
	return append(slices.Clone(c[best:]), c[:best]...)
}

func less(a, b Key) bool { return compareKeys(a, b) < 0 }

func compareKeys(a, b Key) int {
	if a.Namespace != b.Namespace {
		return compareStrings(a.Namespace, b.Namespace)
	}
	return compareStrings(a.Name, b.Name)
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareEdges(a, b Edge) int {
	if c := compareKeys(a.From, b.From); c != 0 {
		return c
	}
	if c := compareKeys(a.To, b.To); c != 0 {
		return c
	}
	return compareStrings(string(a.Kind), string(b.Kind))
}
