package audit

import (
	"fmt"
	"slices"
	"strings"
)

// circle words tiers that hold each other up by edges alone.
func (r *replay) circle(c cause) Finding {
	for _, b := range c.blockers {
		if b.kind != byHealth || len(b.on) == 0 {
			continue
		}
		child := b.on[0]
		f := r.at(childOfWaitingParent, child, nil)
		parent, t := r.tiers[b.tier], r.tiers[child]
		f.Related = append(f.Related, Location{File: parent.File, Line: parent.Line, Note: "the parent"})
		f.Message = fmt.Sprintf("%s depends on %s, the parent that waits for it", t.Key, parent.Key)
		if at := r.dependencyAt(t, parent.Key); slices.Contains(t.DependsOn, parent.Key) {
			f.At = at
		} else {
			f.Message = fmt.Sprintf("%s waits for %s, which can come up only after it", parent.Key, t.Key)
		}
		f.Cause = []string{"a tier with wait: true is Ready only once the Kustomizations it applied are: each of the two waits for the other"}
		f.Fix = fmt.Sprintf("remove %s from spec.dependsOn of %s: a child exists only after its parent has applied it; or set wait: false on the parent", parent.Key, t.Key)
		return f
	}
	path := r.circlePath(c)
	f := r.at(cycle, path[0], nil)
	var names []string
	for n, i := range path {
		names = append(names, r.tiers[i].Key.String())
		next := r.tiers[path[(n+1)%len(path)]]
		at := r.dependencyAt(r.tiers[i], next.Key)
		at.Note = fmt.Sprintf("%s needs %s", r.tiers[i].Key, next.Key)
		if n == 0 {
			f.At = Location{File: at.File, Line: at.Line}
		}
		f.Related = append(f.Related, at)
	}
	names = append(names, names[0])
	f.Message = fmt.Sprintf("dependency cycle: %s", strings.Join(names, " → "))
	f.Cause = []string{
		"none of them can become Ready before another one of them is",
		"a cycle also stops every Kustomization of the same source from reacting to new revisions",
	}
	f.Fix = fmt.Sprintf("remove one of the edges, most likely the one from %s to %s", names[len(names)-2], names[0])
	return f
}

// circlePath walks the blockers of a cycle until it meets itself, from the smallest name on.
func (r *replay) circlePath(c cause) []int {
	next := map[int]int{}
	for _, b := range c.blockers {
		for _, j := range b.on {
			if _, ok := next[b.tier]; !ok && slices.Contains(c.members, j) {
				next[b.tier] = j
			}
		}
	}
	start := c.members[0]
	for _, i := range c.members {
		if compareKeys(r.tiers[i].Key, r.tiers[start].Key) < 0 {
			start = i
		}
	}
	var path []int
	for i := start; !slices.Contains(path, i); {
		path = append(path, i)
		j, ok := next[i]
		if !ok {
			break
		}
		if k := slices.Index(path, j); k > 0 {
			return path[k:]
		}
		i = j
	}
	return path
}
