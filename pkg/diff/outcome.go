package diff

import (
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// outcome decides whether the old owner deletes the object, and whether the new one comes first.
//
// It follows reconcile, prune and finalize in kustomize-controller's
// internal/controller/kustomization_controller.go, and Delete in fluxcd/pkg's ssa/manager_delete.go:
// what left the inventory is deleted after the pass has applied the rest, if the live object bears
// this Kustomization's owner labels and does not opt out.
func (c *comparison) outcome(from, to owner) (Outcome, string) {
	if kept, why := optsOut(from.object); kept {
		return Adopted, why
	}
	deletes, sure, why := c.deletes(from.tier)
	if !deletes && sure {
		return Adopted, why
	}
	if t := c.after.tier(to.tier.Key); t.Suspend {
		return Deleted, fmt.Sprintf("%s is suspended in git and applies nothing, and %s", to.tier.Key, why)
	}
	if !deletes {
		return Race, why
	}
	if yields(to.object) {
		return Recreated, fmt.Sprintf("its manifest says ssa: IfNotPresent, so %s leaves the labels of %s on it, and %s", to.tier.Key, from.tier.Key, why)
	}
	first, reason := c.first(from.tier, to.tier)
	return first, reason
}

// optsOut reports whether the live object, as the old manifest made it, is never pruned.
func optsOut(o render.Object) (bool, string) {
	group := kustomizev1.GroupVersion.Group
	for key, value := range map[string]string{"/prune": kustomizev1.DisabledValue, "/reconcile": kustomizev1.DisabledValue, "/ssa": kustomizev1.IgnoreValue} {
		if ssautil.AnyInMetadata(o.Unstructured, map[string]string{group + key: value}) {
			return true, fmt.Sprintf("the object opts out of pruning (%s%s: %s)", group, key, value)
		}
	}
	return false, ""
}

// yields reports whether a manifest leaves an object alone that exists.
func yields(o render.Object) bool {
	return ssautil.AnyInMetadata(o.Unstructured, map[string]string{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.IfNotPresentValue})
}

// deletes tells whether the old owner deletes what it no longer applies, and whether that is sure:
// a setting that changes in the same revision counts only if it surely arrives before the pass.
func (c *comparison) deletes(old *tiers.Tier) (deletes, sure bool, why string) {
	now := c.after.tier(old.Key)
	if now == nil {
		return c.deletedWithTier(old)
	}
	was, is := old.Kustomization.Spec, now.Kustomization.Spec
	switch {
	case old.Suspend && now.Suspend:
		return false, true, fmt.Sprintf("%s is suspended and prunes nothing", old.Key)
	case !is.Prune && !was.Prune:
		return false, true, fmt.Sprintf("%s has prune: false", old.Key)
	case !is.Prune && c.heedsParent(old):
		return false, true, fmt.Sprintf("%s gets prune: false before it makes its pass, for which it waits and its parent %s does not", old.Key, *old.Parent)
	case !is.Prune:
		return false, false, fmt.Sprintf("%s gets prune: false in the same revision, but may make its pass before its parent has applied that", old.Key)
	}
	return true, true, fmt.Sprintf("%s prunes what it no longer applies", old.Key)
}

// deletedWithTier tells what becomes of the objects of a tier that leaves git.
func (c *comparison) deletedWithTier(old *tiers.Tier) (deletes, sure bool, why string) {
	if old.Parent == nil {
		return false, true, fmt.Sprintf("nothing in git deletes %s, a root", old.Key)
	}
	if kept, reason := c.tierStays(old); kept {
		return false, true, reason
	}
	spec := old.Kustomization.Spec
	policy := old.Kustomization.GetDeletionPolicy()
	switch {
	case old.Suspend:
		return false, true, fmt.Sprintf("%s is suspended: it is deleted without what it owns", old.Key)
	case policy == kustomizev1.DeletionPolicyOrphan:
		return false, true, fmt.Sprintf("%s has deletionPolicy: Orphan", old.Key)
	case policy == kustomizev1.DeletionPolicyMirrorPrune && !spec.Prune:
		return false, true, fmt.Sprintf("%s has prune: false, which its deletion mirrors", old.Key)
	}
	return true, true, fmt.Sprintf("%s is deleted, and everything that it owns with it", old.Key)
}

// tierStays reports whether the Kustomization object outlives its manifest.
func (c *comparison) tierStays(old *tiers.Tier) (bool, string) {
	id := ID{kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind(), old.Namespace, old.Name}
	for _, o := range c.before.owners[id] {
		if kept, _ := optsOut(o.object); kept {
			return true, fmt.Sprintf("%s itself opts out of pruning and stays on the cluster", old.Key)
		}
	}
	parent := c.before.tier(*old.Parent)
	if parent == nil {
		return false, ""
	}
	if deletes, sure, why := c.deletes(parent); !deletes && sure {
		return true, fmt.Sprintf("%s stays on the cluster: %s", old.Key, why)
	}
	return false, ""
}

// first tells which of the two tiers is first to meet the new revision.
func (c *comparison) first(old, to *tiers.Tier) (Outcome, string) {
	now, fresh := c.after.tier(old.Key), c.before.tier(to.Key) == nil
	if now == nil {
		if fresh {
			return Race, fmt.Sprintf("%s is deleted at the end of the pass that creates %s, which may have applied it by then if that pass changes much else", old.Key, to.Key)
		}
		return Race, fmt.Sprintf("%s is deleted while %s makes its own pass", old.Key, to.Key)
	}
	if c.gated(c.after, now, to) && (c.gated(c.before, old, to) || c.heedsParent(old)) {
		return Adopted, fmt.Sprintf("%s depends on %s and prunes only after it has applied the object", old.Key, to.Key)
	}
	if c.gated(c.after, to, now) && (fresh || c.gated(c.before, to, old)) {
		return Recreated, fmt.Sprintf("%s depends on %s, which prunes the object before it is Ready", to.Key, old.Key)
	}
	if fresh && to.Parent != nil && *to.Parent == old.Key {
		return Race, fmt.Sprintf("%s prunes at the end of the pass that creates %s, which may have applied it by then if that pass changes much else", old.Key, to.Key)
	}
	if fresh {
		return Race, fmt.Sprintf("nothing orders %s and %s; the pass that prunes starts at once, the new tier has to be created first", old.Key, to.Key)
	}
	return Race, fmt.Sprintf("nothing orders %s and %s", old.Key, to.Key)
}

// gated reports whether a tier makes its pass over a revision only after another one has applied
// that revision: a chain of dependsOn whose members share a source (checkDependencies compares
// revisions only then).
func (c *comparison) gated(s *side, from, to *tiers.Tier) bool {
	if from.Key == to.Key {
		return false
	}
	seen := map[tiers.Key]bool{from.Key: true}
	queue := []tiers.Key{from.Key}
	for len(queue) > 0 {
		t := s.tier(queue[0])
		queue = queue[1:]
		if t == nil {
			continue
		}
		for _, k := range t.DependsOn {
			dep := s.tier(k)
			if dep == nil || seen[k] || dep.Source != t.Source {
				continue
			}
			if k == to.Key {
				return true
			}
			seen[k] = true
			queue = append(queue, k)
		}
	}
	return false
}

// heedsParent reports whether a change to a tier's own Kustomization arrives before its pass over the
// revision that makes the change: it depends on its parent, which applies the change first; or it
// waits for some dependency to apply the new revision, and then for the next look at it, while its
// parent waits for nothing.
func (c *comparison) heedsParent(t *tiers.Tier) bool {
	if t.Parent == nil {
		return false
	}
	parent := c.before.tier(*t.Parent)
	if parent == nil {
		return false
	}
	return c.gated(c.before, t, parent) || len(parent.DependsOn) == 0 && c.waitsForRevision(t)
}

// waitsForRevision reports whether a dependency must have applied a revision before the tier does.
func (c *comparison) waitsForRevision(t *tiers.Tier) bool {
	return slices.ContainsFunc(t.DependsOn, func(k tiers.Key) bool {
		dep := c.before.tier(k)
		return dep != nil && dep.Source == t.Source
	})
}
