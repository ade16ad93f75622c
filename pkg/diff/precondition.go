package diff

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Precondition is a tier that must be Ready on the target before the change is merged.
type Precondition struct {
	Tier tiers.Key
	// Why says what happens otherwise.
	Why string
	// Objects are those at stake, sorted.
	Objects []string
}

// Violation is a precondition that does not hold.
type Violation struct {
	Precondition
	// State is what the tier is instead: "not found", "suspended", or Flux's own condition.
	State string
}

// preconditions lists the tiers that the new owner of a moved object waits for: while one of them is
// not Ready, the old owner's deletion stands.
func preconditions(moves []Move, after *side) []Precondition {
	var out []Precondition
	at := map[tiers.Key]int{}
	for _, m := range moves {
		if m.Outcome == Adopted || m.Outcome == Deleted {
			continue
		}
		for _, k := range awaited(after, m.To) {
			n, ok := at[k]
			if !ok {
				n = len(out)
				at[k] = n
				out = append(out, Precondition{Tier: k})
			}
			p := &out[n]
			if !slices.Contains(p.Objects, m.String()) {
				p.Objects = append(p.Objects, m.String())
			}
			p.Why = fmt.Sprintf("%s comes back only once %s has been applied, which waits for %s", noun(len(p.Objects)), m.To, k)
		}
	}
	slices.SortFunc(out, func(a, b Precondition) int { return compareKeys(a.Tier, b.Tier) })
	return out
}

func noun(n int) string {
	if n == 1 {
		return "the object"
	}
	return "each of the objects"
}

// awaited lists the tiers that a tier names in its dependsOn.
func awaited(s *side, k tiers.Key) []tiers.Key {
	t := s.tier(k)
	if t == nil {
		return nil
	}
	var out []tiers.Key
	for _, d := range t.DependsOn {
		if s.tier(d) != nil {
			out = append(out, d)
		}
	}
	return out
}

// Check tells which preconditions do not hold on a cluster, from the Kustomizations as read there.
func Check(list []Precondition, live map[flux.Key]*kustomizev1.Kustomization) []Violation {
	var out []Violation
	for _, p := range list {
		k := live[p.Tier]
		if k == nil {
			out = append(out, Violation{p, "it does not exist there"})
			continue
		}
		if s := flux.Classify(k); s.State != flux.Ready {
			state := string(s.State)
			if s.Message != "" {
				state = s.Message
			}
			out = append(out, Violation{p, state})
		}
	}
	return out
}
