package audit

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"

	"github.com/standup-sh/standup/pkg/tiers"
)

// shared finds objects that several tiers apply: each pass of any takes the owner labels, and the tier
// that drops the object first deletes it if it holds the labels then. Objects that the same tiers apply
// are one finding.
func (w *world) shared() []Finding {
	groups := map[string][][]*item{}
	var order []string
	seen := map[ref]bool{}
	for i := range w.tiers {
		for _, it := range w.items[i] {
			if seen[it.ref] {
				continue
			}
			seen[it.ref] = true
			makers := makersOf(w.byRef[it.ref])
			if len(makers) < 2 {
				continue
			}
			who := fmt.Sprint(itemTiers(makers))
			if groups[who] == nil {
				order = append(order, who)
			}
			groups[who] = append(groups[who], makers)
		}
	}
	var out []Finding
	for _, who := range order {
		out = append(out, w.sharedBy(groups[who]))
	}
	return out
}

// makersOf keeps one manifest a tier, and none that is meant to be applied beside another one.
func makersOf(list []*item) []*item {
	var out []*item
	for _, it := range list {
		if !partial(it) && !slices.ContainsFunc(out, func(other *item) bool { return other.tier == it.tier }) {
			out = append(out, it)
		}
	}
	return out
}

// sharedBy words objects that the same tiers apply; it is given the manifests of each.
func (w *world) sharedBy(shared [][]*item) Finding {
	var last []*item // of each object, the manifest of the last tier
	for _, makers := range shared {
		last = append(last, makers[len(makers)-1])
	}
	f := w.at(sharedObject, last[0].tier, last)
	var who []string
	for _, it := range shared[0] {
		key := w.tiers[it.tier].Key
		who = append(who, key.String())
		if it != last[0] {
			f.Related = append(f.Related, w.locationOf(it, fmt.Sprintf("in %s", key)))
		}
	}
	f.Message = fmt.Sprintf("%s %s applied by %s", words(f.Objects), verb(len(f.Objects), "is", "are"), words(who))
	f.Cause = []string{"each pass of any of them takes over the owner labels; the one that drops the object from git deletes it if it was the last to apply it"}
	f.Fix = "keep it in one of them, and let the others depend on that one"
	if !slices.ContainsFunc(slices.Concat(shared...), func(it *item) bool { return !pruneDisabled(it) }) {
		f.Severity = tiers.Info
	}
	return f
}

// partial reports whether a manifest is meant to be applied beside another one: it merges, or
// yields where the object exists.
func partial(it *item) bool {
	key := kustomizev1.GroupVersion.Group + "/ssa"
	return ssautil.AnyInMetadata(it.Unstructured, map[string]string{key: kustomizev1.MergeValue}) ||
		ssautil.AnyInMetadata(it.Unstructured, map[string]string{key: kustomizev1.IfNotPresentValue})
}

func pruneDisabled(it *item) bool {
	return ssautil.AnyInMetadata(it.Unstructured, map[string]string{kustomizev1.GroupVersion.Group + "/prune": kustomizev1.DisabledValue})
}
