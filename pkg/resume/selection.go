package resume

import (
	"errors"
	"fmt"
	"slices"

	"github.com/standup-sh/standup/pkg/tiers"
)

// DisabledKey is the label or annotation of a Kustomization that keeps standup from touching it:
// standup.sh/resume: disabled.
const DisabledKey = "standup.sh/resume"

// Selection leaves tiers out of a run. The zero value leaves none out. The fields narrow each
// other.
type Selection struct {
	// Only names the tiers to bring up; empty means all.
	Only []tiers.Key
	// Except names tiers to leave alone.
	Except []tiers.Key
	// Until names tiers to bring up together with all that they need, and nothing else.
	Until []tiers.Key
}

// UnknownTierError says that a selection names a tier that the graph does not have.
type UnknownTierError struct {
	Tier tiers.Key
}

func (e *UnknownTierError) Error() string {
	return fmt.Sprintf("selecting Kustomization/%s/%s: no such tier", e.Tier.Namespace, e.Tier.Name)
}

// Of returns the selected tiers of a graph. Its errors are *UnknownTierError, joined, in the order
// of the selection.
func (s Selection) Of(g *tiers.Graph) (map[tiers.Key]bool, error) {
	known := make(map[tiers.Key]*tiers.Tier, len(g.Tiers))
	for _, t := range g.Tiers {
		known[t.Key] = t
	}
	var errs []error
	for _, key := range slices.Concat(s.Only, s.Except, s.Until) {
		if known[key] == nil {
			errs = append(errs, &UnknownTierError{Tier: key})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	needed := closure(g, s.Until)
	selected := make(map[tiers.Key]bool, len(g.Tiers))
	for _, t := range g.Tiers {
		if len(s.Only) > 0 && !slices.Contains(s.Only, t.Key) ||
			len(s.Until) > 0 && !needed[t.Key] ||
			slices.Contains(s.Except, t.Key) || disabled(t) {
			continue
		}
		selected[t.Key] = true
	}
	return selected, nil
}

// closure returns the named tiers and everything they need, over all kinds of edges.
func closure(g *tiers.Graph, from []tiers.Key) map[tiers.Key]bool {
	needs := make(map[tiers.Key][]tiers.Key)
	for _, e := range g.Edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	for _, t := range g.Tiers {
		needs[t.Key] = append(needs[t.Key], t.DependsOn...)
		if t.Parent != nil {
			needs[t.Key] = append(needs[t.Key], *t.Parent)
		}
	}
	seen := make(map[tiers.Key]bool)
	queue := slices.Clone(from)
	for len(queue) > 0 {
		key := queue[0]
		queue = queue[1:]
		if !seen[key] {
			seen[key] = true
			queue = append(queue, needs[key]...)
		}
	}
	return seen
}

func disabled(t *tiers.Tier) bool {
	return t.Kustomization.GetLabels()[DisabledKey] == "disabled" || t.Kustomization.GetAnnotations()[DisabledKey] == "disabled"
}
