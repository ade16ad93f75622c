package audit

import (
	"fmt"
	"slices"
	"strings"
)

// circle words tiers that hold each other up by edges alone.
func (r *replay) circle(c cause) Finding {
	for _, b := range c.blockers {
		if b.kind == byHealth && len(b.on) > 0 {
			if f, ok := r.waitingCircle(c, b, b.on[0]); ok {
				return f
			}
		}
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

// waitingCircle words a circle that a health check closes: a tier waits for another one, by way of which
// it waits for one that depends on itself.
func (r *replay) waitingCircle(c cause, b stuckOn, awaited int) (Finding, bool) {
	waiting := b.tier
	w, by := r.tiers[waiting], r.tiers[awaited]
	last := awaited
	if !slices.Contains(by.DependsOn, w.Key) {
		n := slices.IndexFunc(c.members, func(i int) bool { return slices.Contains(r.tiers[i].DependsOn, w.Key) })
		if n < 0 {
			return Finding{}, false
		}
		last = c.members[n]
	}
	t := r.tiers[last]
	child := r.within(last, waiting)
	rule, who, note := cycle, "which waits for it", "the tier that waits"
	if child {
		rule, note = childOfWaitingParent, "the parent"
	}
	if child && last == awaited {
		who = "the parent that waits for it"
	}
	f := r.at(rule, last, nil)
	f.At = r.dependencyAt(t, w.Key)
	f.Related = append(f.Related, Location{File: w.File, Line: w.Line, Note: note})
	f.Message = fmt.Sprintf("%s depends on %s, %s", t.Key, w.Key, who)
	if last != awaited {
		f.Message += fmt.Sprintf(" by way of %s", by.Key)
		f.Related = append(f.Related, Location{File: by.File, Line: by.Line, Note: fmt.Sprintf("%s waits for its health", w.Key)})
	}
	f.Cause = []string{"a tier with wait: true is Ready only once the Kustomizations it applied are: each of the two waits for the other"}
	way := fmt.Sprintf("set wait: false on %s", w.Key)
	if !w.Kustomization.Spec.Wait {
		f.Cause = []string{fmt.Sprintf("%s is Ready only once %s is, which it names in healthChecks: each of the two waits for the other", w.Key, by.Key)}
		way = fmt.Sprintf("remove %s from healthChecks of %s", by.Key, w.Key)
		if b.what != tierRef(by.Key) {
			f.Cause[0] = fmt.Sprintf("%s is Ready only once %s is there, which it names in healthChecks and %s applies: each of the two waits for the other", w.Key, b.what, by.Key)
			way = fmt.Sprintf("remove %s from healthChecks of %s", b.what, w.Key)
		}
	}
	f.Fix = fmt.Sprintf("remove %s from spec.dependsOn of %s", w.Key, t.Key)
	if child {
		f.Fix += ": a child exists only after its parent has applied it"
	}
	f.Fix += "; or " + way
	return f, true
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
