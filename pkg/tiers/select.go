package tiers

import (
	"path"
	"slices"
	"strings"
)

// Match lists the tiers whose name fits a pattern of path.Match, in the graph's order. A pattern
// with a slash is matched against namespace/name, one without against the name alone. The error is
// path.ErrBadPattern.
func (g *Graph) Match(pattern string) ([]Key, error) {
	var out []Key
	for _, t := range g.Tiers {
		subject := t.Name
		if strings.Contains(pattern, "/") {
			subject = keyString(t.Key)
		}
		ok, err := path.Match(pattern, subject)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, t.Key)
		}
	}
	return out, nil
}

// Select returns the part of the graph that consists of the given tiers, the edges between them and
// the problems that concern them or no tier. Waves and leaves stay those of the whole graph; the
// critical path is the longest chain inside the part. The tiers are shared, not copied.
func (g *Graph) Select(keys ...Key) *Graph {
	in := make(map[Key]bool, len(keys))
	for _, k := range keys {
		in[k] = true
	}
	out := &Graph{Revision: g.Revision, Entry: g.Entry}
	for _, t := range g.Tiers {
		if in[t.Key] {
			out.Tiers = append(out.Tiers, t)
		}
	}
	for _, e := range g.Edges {
		if in[e.From] && in[e.To] {
			out.Edges = append(out.Edges, e)
		}
	}
	for _, p := range g.Problems {
		if p.Tier == (Key{}) || in[p.Tier] {
			out.Problems = append(out.Problems, p)
		}
	}
	out.CriticalPath = longest(out)
	return out
}

// UpstreamOf returns the given tiers and everything they need, directly or not, as Select does.
func (g *Graph) UpstreamOf(keys ...Key) *Graph {
	return g.Select(spread(keys, adjacency(g.Edges))...)
}

// DownstreamOf returns the given tiers and everything that needs them, directly or not, as Select
// does.
func (g *Graph) DownstreamOf(keys ...Key) *Graph {
	back := make([]Edge, 0, len(g.Edges))
	for _, e := range g.Edges {
		back = append(back, Edge{From: e.To, To: e.From})
	}
	return g.Select(spread(keys, adjacency(back))...)
}

func spread(keys []Key, next map[Key][]Key) []Key {
	seen := map[Key]bool{}
	out := slices.Clone(keys)
	for i := 0; i < len(out); i++ {
		if seen[out[i]] {
			continue
		}
		seen[out[i]] = true
		out = append(out, next[out[i]]...)
	}
	return out
}

// longest is the longest chain of edges that each lead to an earlier tier, first tier first. Ties
// go to the smallest name.
func longest(g *Graph) []Key {
	needs := adjacency(g.Edges)
	length := make(map[Key]int, len(g.Tiers))
	prev := make(map[Key]Key, len(g.Tiers))
	var last Key
	for _, t := range g.Tiers {
		best := 0
		for _, n := range needs[t.Key] {
			// What is not in the map yet is later, which only happens inside a cycle.
			if length[n] > best {
				best = length[n]
				prev[t.Key] = n
			}
		}
		length[t.Key] = best + 1
		if best+1 > length[last] || (best+1 == length[last] && less(t.Key, last)) {
			last = t.Key
		}
	}
	if len(g.Tiers) == 0 {
		return nil
	}
	path := []Key{last}
	for {
		p, ok := prev[last]
		if !ok {
			break
		}
		path = append(path, p)
		last = p
	}
	slices.Reverse(path)
	return path
}
