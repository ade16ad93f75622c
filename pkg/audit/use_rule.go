package audit

import (
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/kustomize"

	"github.com/standup-sh/standup/pkg/tiers"
)

// unordered finds objects that use what another tier provides with no path between the two tiers:
// one finding a pair of tiers.
func (w *world) unordered() []Finding {
	var out []Finding
	for i := range w.tiers {
		out = append(out, w.unorderedIn(i)...)
	}
	return out
}

type usedPair struct {
	user *item
	use  use
	by   *item
}

func (w *world) unorderedIn(i int) []Finding {
	groups := map[int][]usedPair{}
	var order []int
	for _, it := range w.items[i] {
		for _, u := range usesOf(it) {
			makers := w.bringing(u.ref)
			if len(makers) == 0 || w.declared(u.ref) || slices.ContainsFunc(makers, func(m *item) bool { return m.tier == i || w.guaranteed(i, m) >= applied }) {
				continue
			}
			j := makers[0].tier
			if groups[j] == nil {
				order = append(order, j)
			}
			groups[j] = append(groups[j], usedPair{it, u, makers[0]})
		}
	}
	var out []Finding
	for _, j := range order {
		out = append(out, w.unorderedPair(i, j, groups[j]))
	}
	return out
}

func (w *world) unorderedPair(i, j int, pairs []usedPair) Finding {
	t, p := w.tiers[i], w.tiers[j]
	var users []*item
	var used, movable []string
	lasting, awaited := false, false
	for _, pair := range pairs {
		if !slices.Contains(users, pair.user) {
			users = append(users, pair.user)
		}
		if s := pair.by.bringing(pair.use.ref); !slices.Contains(used, s) {
			used = append(used, s)
		}
		if s := pair.by.source(pair.use.ref); !slices.Contains(movable, s) {
			movable = append(movable, s)
		}
		lasting = lasting || pair.use.lasting
		awaited = awaited || notices(t, pair)
	}
	f := w.at(unorderedUse, i, users)
	for _, pair := range pairs {
		if at := w.locationOf(pair.by, pair.by.ID()); !slices.Contains(f.Related, at) {
			f.Related = append(f.Related, at)
		}
	}
	f.Message = fmt.Sprintf("%s %s %s of %s, and no path of dependencies leads from %s to it", words(f.Objects), verb(len(users), "uses", "use"), words(used), p.Key, t.Key)
	switch {
	case lasting:
		f.Cause = []string{"what is missing at the moment of creation is not made good later: the disk keeps the access mode that it was made with"}
	case awaited:
		f.Cause = []string{fmt.Sprintf("%s waits for health: until %s is there, its health check runs, and fails after %s", t.Key, p.Key, shortDuration(t.Kustomization.GetTimeout()))}
	default:
		f.Severity = tiers.Info
		f.Cause = []string{"it heals by itself once the other tier is there"}
	}
	if w.before.Of(p.Key).Applied(t.Key) {
		f.Cause = append(f.Cause, fmt.Sprintf("%s itself comes only after %s: an edge the other way would be a circle", p.Key, t.Key))
		f.Fix = fmt.Sprintf("move %s to %s or to a tier before it", words(movable), t.Key)
		return f
	}
	f.advise(t, p)
	f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(t, p), t.Key)
	return f
}

// notices reports whether a health check of the tier waits for what an object uses.
func notices(t *tiers.Tier, pair usedPair) bool {
	if !watches(t, pair.user) {
		return false
	}
	return pair.use.need != unseen || slices.ContainsFunc(t.Kustomization.Spec.HealthCheckExprs, func(h kustomize.CustomHealthCheck) bool {
		return h.APIVersion == pair.user.GetAPIVersion() && h.Kind == pair.user.GetKind()
	})
}
