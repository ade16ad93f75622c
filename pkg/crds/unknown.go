package crds

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Suspected reports whether a tier may be stuck: its last pass failed for want of a kind that
// nothing is known to bring. It may come by itself, from something that nobody told us of, or only
// once [Free] has applied what of the tier may bring it: whoever asks decides how long to wait.
func (p Plan) Suspected(tier tiers.Key, live flux.Snapshot) bool {
	t, ok := p.Of(tier)
	return ok && failedForUnknown(live.Kustomizations[tier], t.Missing)
}

// Unknown lists the missing kinds that nothing is known to bring.
func (t TierPlan) Unknown() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, m := range t.Missing {
		if m.Verdict == NotKnown {
			kinds = append(kinds, m.GroupVersionKind)
		}
	}
	return kinds
}

// failedForUnknown reports whether Flux has tried a tier and failed for want of a kind that nothing
// is known to bring. Before it has, the kind may still come from something that nobody told us of.
func failedForUnknown(live *kustomizev1.Kustomization, missing []Missing) bool {
	if live == nil {
		return false
	}
	status := flux.Classify(live)
	if status.State != flux.MayHeal && status.State != flux.Final {
		return false
	}
	for _, complained := range flux.MissingKinds(status.Message) {
		for _, m := range missing {
			if m.Verdict == NotKnown && m.Kind == complained.GVK.Kind && (complained.GVK.Group == "" || complained.GVK.Group == m.Group) {
				return true
			}
		}
	}
	return false
}

// candidates lists the objects of a tier that could be applied now and may bring a kind that nothing
// is known to bring: a release, a workload that may be an operator, an object that an operator may
// answer. What Kubernetes and Flux have besides brings no kinds.
func (p *planner) candidates(t *tiers.Tier) []string {
	builtin := Builtin()
	var ids []string
	for _, o := range t.Objects {
		if !flux.Skipped(o.Unstructured, nil) && !sealed(o) && p.served.Has(o.GroupVersionKind()) && mayBring(o, builtin) {
			ids = append(ids, o.ID())
		}
	}
	slices.Sort(ids)
	return ids
}

func mayBring(o render.Object, builtin *Served) bool {
	gk := o.GroupVersionKind().GroupKind()
	switch gk.Group {
	case "apps", "batch", "apiregistration.k8s.io":
		return true
	case "source.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io", "image.toolkit.fluxcd.io":
		return false
	}
	return gk == schema.GroupKind{Kind: "Pod"} || len(builtin.Versions(gk)) == 0
}
