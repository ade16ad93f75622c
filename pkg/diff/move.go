package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
