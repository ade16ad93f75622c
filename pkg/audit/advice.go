package audit

import (
	"fmt"
	"slices"

	"github.com/standup-sh/standup/pkg/tiers"
)

// advisedEdge is a dependency that a finding advises to add.
type advisedEdge struct{ from, to tiers.Key }

// advise notes that the fix of a finding adds a dependency of one tier on another.
func (f *Finding) advise(from, to *tiers.Tier) {
	f.edges = append(f.edges, advisedEdge{from.Key, to.Key})
}

// settleAdvice sees to it that all that findings advise can be done together: of dependencies that would
// close a circle with those of findings before, a finding says so.
func settleAdvice(g *tiers.Graph, list []Finding) {
	after := tiers.NewBefore(g)
	var taken []advisedEdge
	seen := map[advisedEdge]bool{}
	for i := range list {
		f := &list[i]
		var against []string
		for _, e := range f.edges {
			if seen[e] {
				continue
			}
			if !after.Behind(e.to).Applied(e.from) {
				after.Depend(e.from, e.to)
				taken, seen[e] = append(taken, e), true
				continue
			}
			for _, other := range taken {
				if s := "to " + other.String(); onCircle(after, e, other) && !slices.Contains(against, s) {
					against = append(against, s)
				}
			}
		}
		if len(against) > 0 {
			f.Fix += fmt.Sprintf("; not together with what other findings advise, %s: all of it would be a circle, so that one has to be solved by moving objects",
				words(against))
		}
	}
}

// onCircle reports whether an edge that was taken lies on the circle that another one would close.
func onCircle(b *tiers.Before, closing, taken advisedEdge) bool {
	return b.Behind(closing.to).Applied(taken.from) && b.Behind(taken.to).Applied(closing.from)
}

func (e advisedEdge) String() string {
	name := e.to.String()
	if e.to.Namespace == e.from.Namespace {
		name = e.to.Name
	}
	return fmt.Sprintf("add %s to spec.dependsOn of %s", name, e.from)
}
