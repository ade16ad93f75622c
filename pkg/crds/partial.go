package crds

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
)

// partial applies all of a tier whose kinds exist, stage by stage as Flux would.
func (f *freer) partial(ctx context.Context, plan TierPlan) error {
	f.outcome.Partial = true
	kinds := stuckKinds(plan)
	f.emit(Event{Kind: EventPartial, Tier: f.tier.Key, Kinds: kinds, Message: partialReason(plan)})
	for stage := flux.StageDefinitions; stage <= flux.StageRest; stage++ {
		objects := f.ofStage(stage)
		if len(objects) == 0 {
			continue
		}
		if err := f.applyAll(ctx, objects); err != nil {
			return err
		}
		if stage == flux.StageDefinitions && !f.opts.DryRun {
			if err := f.discover(ctx); err != nil {
				return err
			}
		}
	}
	if f.opts.DryRun {
		return nil
	}
	known := slices.ContainsFunc(plan.Missing, func(m Missing) bool { return m.Verdict == Deadlocked })
	if !known && f.outcome.Changed() == 0 {
		return &UnknownProviderError{Tier: f.tier.Key, Kinds: kinds}
	}
	return f.await(ctx, kinds, nil)
}

func partialReason(plan TierPlan) string {
	for _, m := range plan.Missing {
		if m.Verdict == Deadlocked {
			return fmt.Sprintf("%s is to be brought by %s, whose operator is part of the same tier", kindName(m.GroupVersionKind), m.Origin.Object.ID())
		}
	}
	return "nothing is known to bring " + kindList(stuckKinds(plan))
}

// ofStage lists what a partial apply may write of one stage, leaving out and naming what it may not.
func (f *freer) ofStage(stage flux.ApplyStage) []wanted {
	var objects []wanted
	for _, o := range f.tier.Objects {
		w := wanted{Object: o, tier: f.tier, why: "part of the tier"}
		switch {
		case flux.Stage(o.Unstructured, nil) != stage || flux.Skipped(o.Unstructured, nil):
		case !f.served.Has(o.GroupVersionKind()):
			f.exclude(w, "its kind is not served")
		case sealed(o):
			f.exclude(w, "encrypted with SOPS")
		default:
			objects = append(objects, w)
		}
	}
	return objects
}

// stuckKinds are the kinds that keep a tier from passing and that freeing it is about.
func stuckKinds(plan TierPlan) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, m := range plan.Missing {
		if m.Verdict == Deadlocked || (plan.Partial && m.Verdict == NotKnown) {
			kinds = append(kinds, m.GroupVersionKind)
		}
	}
	return kinds
}
