package audit

import (
	"slices"

	"github.com/standup-sh/standup/pkg/tiers"
)

// cause is why some tiers can never come up: blockers that only those same tiers could lift, or
// that nothing can. members is the smallest set of tiers that hold each other up, often just one.
type cause struct {
	members []int
	// blockers are those to explain, all of them are those of every member.
	blockers, all []stuckOn
	// blocked are the other tiers that wait for members, however indirectly.
	blocked []int
	// findings are its words, written before it was taken as mended.
	findings []Finding
}

// stuckOn is a blocker and the tier it holds up.
type stuckOn struct {
	tier int
	blocker
}

// causes replays to the end and explains what is left; then it takes the explained blockers as
// mended and goes on, so that one run finds every fault and each with its own blast radius.
func (r *replay) causes() []cause {
	var out []cause
	for {
		r.run()
		round := r.firstCauses()
		if len(round) == 0 {
			return out
		}
		for i := range round {
			round[i].findings = r.findings(round[i])
		}
		for i := range round {
			for _, b := range round[i].blockers {
				r.forced[b.force(b.tier)] = true
			}
		}
		out = append(out, round...)
	}
}

// blockersOf lists what holds a tier up now.
func (r *replay) blockersOf(i int) []blocker {
	if gate := r.gateBlockers(i); len(gate) > 0 {
		return gate
	}
	if r.applied[i] {
		return r.unhealthy(i)
	}
	for _, stage := range stages() {
		if stage > r.stages[i] {
			return r.stageBlockers(i, stage)
		}
	}
	return nil
}

// firstCauses finds the stuck tiers that wait for nothing but themselves: the components of the
// waits-for graph that no edge leaves.
func (r *replay) firstCauses() []cause {
	stuck := r.stuck()
	at := make(map[int]int, len(stuck))
	for n, i := range stuck {
		at[i] = n
	}
	blockers := make([][]blocker, len(stuck))
	edges := make([][]int, len(stuck))
	for n, i := range stuck {
		blockers[n] = r.blockersOf(i)
		for _, b := range blockers[n] {
			for _, j := range b.on {
				if m, ok := at[j]; ok && !slices.Contains(edges[n], m) {
					edges[n] = append(edges[n], m)
				}
			}
		}
	}
	var out []cause
	for _, component := range tiers.Components(edges) {
		if leaves(component, edges) {
			continue
		}
		c := cause{}
		for _, n := range component {
			c.members = append(c.members, stuck[n])
		}
		slices.Sort(c.members)
		for _, i := range c.members {
			for _, b := range blockers[at[i]] {
				c.blockers = append(c.blockers, stuckOn{i, b})
			}
		}
		c.all = c.blockers
		c.blockers = decisive(c)
		for _, n := range reaching(component, edges) {
			c.blocked = append(c.blocked, stuck[n])
		}
		if len(c.blockers) > 0 {
			out = append(out, c)
		}
	}
	return joinSuspended(out)
}

// joinSuspended makes one cause of those that are only dependencies on the same suspended tier.
func joinSuspended(list []cause) []cause {
	var out []cause
	at := map[ref]int{}
	for _, c := range list {
		b := c.blockers[0]
		if len(c.blockers) != 1 || b.kind != bySuspended || b.item != nil {
			out = append(out, c)
			continue
		}
		n, ok := at[b.what]
		if !ok {
			at[b.what] = len(out)
			out = append(out, c)
			continue
		}
		out[n].blockers = append(out[n].blockers, b)
		for _, list := range [][]int{c.members, c.blocked} {
			for _, i := range list {
				if !slices.Contains(out[n].blocked, i) && !slices.Contains(out[n].members, i) {
					out[n].blocked = append(out[n].blocked, i)
				}
			}
		}
	}
	return out
}

func leaves(component []int, edges [][]int) bool {
	for _, n := range component {
		for _, m := range edges[n] {
			if !slices.Contains(component, m) {
				return true
			}
		}
	}
	return false
}

// decisive picks, among the blockers of tiers that hold each other up, those to explain: what an
// author can hardly have meant comes before an edge that he wrote down.
func decisive(c cause) []stuckOn {
	if len(c.members) == 1 {
		return c.blockers
	}
	for _, kinds := range [][]blockerKind{
		{byMissing, bySuspended, byBuild, bySOPS, byAccess, byExpression, byCheck, byScope},
		{byKind}, {byNamespace, byAccount}, {byInput}, {bySource}, {byRelease}, {byUse},
	} {
		var out []stuckOn
		for _, b := range c.blockers {
			if slices.Contains(kinds, b.kind) {
				out = append(out, b)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return c.blockers
}

// reaching lists the nodes outside the component from which it can be reached.
func reaching(component []int, edges [][]int) []int {
	back := make([][]int, len(edges))
	for n, list := range edges {
		for _, m := range list {
			back[m] = append(back[m], n)
		}
	}
	seen := make([]bool, len(edges))
	queue := slices.Clone(component)
	for _, n := range component {
		seen[n] = true
	}
	var out []int
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, m := range back[n] {
			if !seen[m] {
				seen[m] = true
				out = append(out, m)
				queue = append(queue, m)
			}
		}
	}
	slices.Sort(out)
	return out
}
