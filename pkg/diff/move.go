package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Outcome says what becomes of an object that another tier applies than before.
type Outcome string

// The outcomes, the worst first.
const (
	// Deleted: the old owner deletes it and the new one never applies it.
	Deleted Outcome = "deleted"
	// Recreated: the old owner deletes it before the new one applies it.
	Recreated Outcome = "deleted and re-created"
	// Race: nothing decides who is first; plan for the worse.
	Race Outcome = "adopted or re-created"
	// Adopted: the new owner takes it over, and it is never away.
	Adopted Outcome = "adopted"
)

// Move is an object that another tier applies than before.
type Move struct {
	ID
	From, To tiers.Key
	// FromFile and ToFile are where it was and is written; empty when unknown.
	FromFile, ToFile string
	Outcome          Outcome
	// Why says what decides over the outcome, in one sentence.
	Why string
	// Lost says what does not survive; empty for adopted objects.
	Lost string
	// Severity is Error where data or other tiers' objects are lost, Warning where the object is
	// away for a while, Info where it is adopted.
	Severity tiers.Severity
}

// Loss is an object that no tier applies any more.
type Loss struct {
	ID
	Tier tiers.Key
	File string
	// Deleted says that Flux deletes it; otherwise it stays on the cluster and nobody owns it.
	Deleted  bool
	Why      string
	Lost     string
	Severity tiers.Severity
}

// Gone is a tier that leaves git.
type Gone struct {
	Tier tiers.Key
	// Deletes says that everything the tier still owns is deleted with it.
	Deletes bool
	Why     string
	// Objects counts those that go, Moves those that another tier takes over.
	Objects, Moves int
	// Below are the tiers that go with it because it holds them, sorted.
	Below []tiers.Key
}

// moves compares the owners of every object.
func (c *comparison) moves() ([]Move, []Loss) {
	var moves []Move
	var losses []Loss
	for id, before := range c.before.owners {
		after := c.after.owners[id]
		from, left := leaving(before, after)
		if !left || c.hidden(from.tier) {
			continue
		}
		if len(after) == 0 && c.regenerated(id, from.tier.Key) {
			continue
		}
		if len(after) == 0 {
			losses = append(losses, c.loss(id, from))
			continue
		}
		to := arriving(before, after)
		m := Move{ID: id, From: from.tier.Key, To: to.tier.Key, FromFile: from.object.File, ToFile: to.object.File}
		m.Outcome, m.Why = c.outcome(from, to)
		m.Severity = tiers.Info
		if m.Outcome != Adopted {
			m.Lost, m.Severity = c.lost(from.object)
		}
		moves = append(moves, m)
	}
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(outcomeRank(a.Outcome), outcomeRank(b.Outcome)), compareKeys(a.From, b.From), compareKeys(a.To, b.To), cmp.Compare(a.String(), b.String()), cmp.Compare(a.Group, b.Group))
	})
	slices.SortFunc(losses, func(a, b Loss) int {
		return cmp.Or(compareKeys(a.Tier, b.Tier), cmp.Compare(a.String(), b.String()), cmp.Compare(a.Group, b.Group))
	})
	return moves, losses
}

// regenerated reports whether an object is a generated ConfigMap or Secret whose content has changed,
// and with it the hash at the end of its name: the same tier applies its successor, and what reads it
// is told the new name in the same pass.
func (c *comparison) regenerated(id ID, tier tiers.Key) bool {
	base, ok := hashed(id.Name)
	if !ok || id.Group != "" || id.Kind != "ConfigMap" && id.Kind != "Secret" {
		return false
	}
	t := c.after.tier(tier)
	return t != nil && slices.ContainsFunc(t.Objects, func(o render.Object) bool {
		other := idOf(o)
		name, ok := hashed(other.Name)
		return ok && name == base && other.GroupKind == id.GroupKind && other.Namespace == id.Namespace
	})
}

// hashed takes the hash from the end of a name, as kustomize's generators write it: see encode in its
// api/hasher/hasher.go.
func hashed(name string) (string, bool) {
	const length = 10
	at := len(name) - length - 1
	if at < 1 || name[at] != '-' || strings.Trim(name[at+1:], "bcdfghkmt2456789") != "" {
		return "", false
	}
	return name[:at], true
}

// hidden reports whether a tier of the graph before is one whose objects are not known after.
func (c *comparison) hidden(t *tiers.Tier) bool {
	other := c.after.tier(t.Key)
	return other != nil && other.Opaque != ""
}

func outcomeRank(o Outcome) int { return slices.Index([]Outcome{Deleted, Recreated, Race, Adopted}, o) }

// leaving is the first owner that applies the object no longer.
func leaving(before, after []owner) (owner, bool) {
	for _, o := range before {
		if !slices.ContainsFunc(after, func(a owner) bool { return a.tier.Key == o.tier.Key }) {
			return o, true
		}
	}
	return owner{}, false
}

// arriving is the owner that takes over: one that is new, or else one that stays.
func arriving(before, after []owner) owner {
	for _, o := range after {
		if !slices.ContainsFunc(before, func(b owner) bool { return b.tier.Key == o.tier.Key }) {
			return o
		}
	}
	return after[0]
}

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
			return Recreated, fmt.Sprintf("%s is deleted in the pass that creates %s, before that can apply anything", old.Key, to.Key)
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
		return Recreated, fmt.Sprintf("%s creates %s and prunes in the same pass", old.Key, to.Key)
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

func (c *comparison) loss(id ID, from owner) Loss {
	l := Loss{ID: id, Tier: from.tier.Key, File: from.object.File, Severity: tiers.Info}
	if kept, why := optsOut(from.object); kept {
		l.Why = why
		return l
	}
	l.Deleted, _, l.Why = c.deletes(from.tier)
	if l.Deleted {
		l.Lost, l.Severity = c.lost(from.object)
		if hidden := c.unknown(); len(hidden) > 0 {
			l.Severity = tiers.Warning
			l.Why += fmt.Sprintf("; unless %s holds it now, whose objects are not known", hidden[0])
		}
	}
	return l
}

// gone lists the tiers that leave git and what goes with them.
func (c *comparison) gone(d *Diff) []Gone {
	var out []Gone
	for _, k := range d.Removed {
		old := c.before.tier(k)
		g := Gone{Tier: k}
		g.Deletes, _, g.Why = c.deletedWithTier(old)
		for _, l := range d.Losses {
			if l.Tier == k && l.Deleted {
				g.Objects++
			}
		}
		for _, m := range d.Moves {
			if m.From == k {
				g.Moves++
			}
		}
		for _, t := range c.before.Tiers {
			if t.Parent != nil && *t.Parent == k && c.after.tier(t.Key) == nil {
				g.Below = append(g.Below, t.Key)
			}
		}
		slices.SortFunc(g.Below, compareKeys)
		out = append(out, g)
	}
	return out
}
