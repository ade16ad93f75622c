package wait

import (
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// stageWait is how long Flux waits for each of the two stages of definitions and classes:
// DefaultApplyOptions in fluxcd/pkg's ssa/manager_apply.go.
const stageWait = time.Minute

// shortestTimeout bounds the derived timeout from below: sources have to be fetched, too.
const shortestTimeout = 2 * time.Minute

// DefaultTimeout is how long all tiers of a graph may take if each takes as long as Flux allows it:
// the longest way through the graph, not by tiers but by time. A gate may take its spec.timeout (by
// default the interval less 30 s, at least 30 s), any other tier the two waits between Flux's apply
// stages; each step costs at most one requeue of a dependent. Tiers in a circle count once.
func DefaultTimeout(graph *tiers.Graph) time.Duration {
	needs := map[tiers.Key][]tiers.Key{}
	for _, e := range graph.Edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	ends := map[tiers.Key]time.Duration{}
	longest := time.Duration(0)
	for _, t := range graph.Tiers { // each after all that it needs
		start := time.Duration(0)
		for _, need := range needs[t.Key] {
			start = max(start, ends[need])
		}
		ends[t.Key] = start + allowance(t) + flux.DependencyRequeue
		longest = max(longest, ends[t.Key])
	}
	return max(longest, shortestTimeout)
}

// allowance is how long one pass of a tier may take.
func allowance(t *tiers.Tier) time.Duration {
	if flux.Gates(t.Kustomization) {
		return t.Kustomization.GetTimeout()
	}
	return 2 * stageWait
}
