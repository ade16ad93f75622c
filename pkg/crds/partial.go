package crds

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
)

// partial applies all of a tier whose kinds exist, stage by stage as Flux would, and again with every
// kind that comes of it: an object of that may be what brings the next.
func (f *freer) partial(ctx context.Context, plan TierPlan) error {
	f.outcome.Partial = true
	missing := stuckKinds(plan)
	f.announce = &Event{Kind: EventPartial, Tier: f.tier.Key, Kinds: missing, Message: partialReason(plan)}
	known := slices.ContainsFunc(plan.Missing, func(m Missing) bool { return m.Verdict == Deadlocked })
	applied := map[objectKey]bool{}
	for {
		if err := f.applyServed(ctx, applied); err != nil || f.opts.DryRun {
			return err
		}
		if !known && f.outcome.Changed() == 0 {
			return &UnknownProviderError{Tier: f.tier.Key, Kinds: missing}
		}
		still, err := f.awaitNext(ctx, missing, f.maybe(missing))
		if err != nil || len(still) == 0 {
			return err
		}
		missing = still
	}
}

// applyServed applies what of a tier has not been applied yet and whose kinds are served now.
func (f *freer) applyServed(ctx context.Context, applied map[objectKey]bool) error {
	f.outcome.Excluded = nil // they are gone through again
	for stage := flux.StageDefinitions; stage <= flux.StageRest; stage++ {
		objects := slices.DeleteFunc(f.ofStage(stage), func(w wanted) bool { return applied[keyOf(w.Object)] })
		if len(objects) == 0 {
			continue
		}
		if err := f.applyAll(ctx, objects); err != nil {
			return err
		}
		for _, w := range objects {
			applied[keyOf(w.Object)] = true
		}
		if stage == flux.StageDefinitions && !f.opts.DryRun {
			if err := f.discover(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// maybe takes the objects that may bring kinds for those that are to: what their controllers report
// says why nothing comes.
func (f *freer) maybe(missing []schema.GroupVersionKind) []Planned {
	var planned []Planned
	builtin := Builtin()
	for _, o := range f.tier.Objects {
		if f.served.Has(o.GroupVersionKind()) && mayBring(o, builtin) {
			planned = append(planned, Planned{Origin: Origin{Tier: f.tier.Key, Object: o}, Brings: missing})
		}
	}
	return planned
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
