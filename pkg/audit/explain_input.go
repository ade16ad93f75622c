package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// inputNever words a tier that must read what only itself, or something after it, applies.
func (r *replay) inputNever(group []stuckOn) Finding {
	b := group[0]
	for _, other := range group {
		if maker := r.makerAmong(other); maker != nil && maker.tier == other.tier {
			b = other // the one that could help itself says most
		}
	}
	t := r.tiers[b.tier]
	if b.item != nil {
		return r.releaseNever([]stuckOn{b})
	}
	maker := r.makerAmong(b)
	own := slices.Contains(b.on, b.tier)
	if maker != nil {
		own = maker.tier == b.tier
	}
	rule := inputDownstream
	if own {
		rule = ownInput
	}
	f := r.at(rule, b.tier, nil)
	f.Object = b.what.String()
	f.Objects = []string{f.Object}
	field := "spec.sourceRef"
	if b.source != (ref{}) {
		field = "its source, " + b.source.String()
	}
	if b.kind == byInput {
		for _, in := range inputsOf(t) {
			if in.ref == b.what {
				field = in.field
			}
		}
	}
	where := t.Key.String()
	if maker != nil {
		where = r.tiers[maker.tier].Key.String()
		f.Related = append(f.Related, r.locationOf(maker, maker.ID()))
	}
	does := "builds"
	if field == "spec.serviceAccountName" || strings.HasPrefix(field, "spec.kubeConfig") {
		does = "applies"
	}
	if maker != nil && maker.makes(b.what) {
		f = r.madeInputNever(f, b, maker, field)
		r.addReaders(&f, group)
		return f
	}
	if own {
		f.Message = fmt.Sprintf("%s reads %s in %s, and applies it itself", t.Key, b.what, field)
		f.Cause = []string{fmt.Sprintf("Flux reads it before it %s the tier, so the pass that would create it never gets that far", does)}
		f.Fix = fmt.Sprintf("move %s to a tier that %s depends on", b.what, t.Key)
		return f
	}
	f.Message = fmt.Sprintf("%s reads %s in %s, and %s, which applies it, can come up only after %s", t.Key, b.what, field, where, t.Key)
	f.Cause = []string{fmt.Sprintf("Flux reads it before it %s the tier", does)}
	f.Fix = fmt.Sprintf("move %s to a tier that comes before %s%s", b.what, t.Key, orOptional(field))
	return f
}

// madeInputNever words a tier that must read what a controller makes for an object, of the tier itself
// or of one that can do so only after it.
func (r *replay) madeInputNever(f Finding, b stuckOn, maker *item, field string) Finding {
	t := r.tiers[b.tier]
	f.Message = fmt.Sprintf("%s reads %s in %s, which is made only from %s, and %s applies that itself", t.Key, b.what, field, maker.ID(), t.Key)
	f.Cause = []string{"Flux reads it before it builds or applies the tier, so the pass that would apply what it is made from never gets that far"}
	if maker.tier != b.tier {
		f.Message = fmt.Sprintf("%s reads %s in %s, which is made only from %s of %s, and that can be done only after %s",
			t.Key, b.what, field, maker.ID(), r.tiers[maker.tier].Key, t.Key)
		f.Cause = []string{"Flux reads it before it builds or applies the tier"}
	}
	f.Cause = append(f.Cause, lacking(maker, b)...)
	f.Fix = fmt.Sprintf("let it be made before %s: move %s, with what it needs, to a tier with wait: true that %s depends on%s", t.Key, maker.ID(), t.Key, orOptional(field))
	return f
}

// addReaders adds the other tiers that read what a finding is about.
func (r *replay) addReaders(f *Finding, group []stuckOn) {
	var names []string
	for _, other := range group {
		if k := r.tiers[other.tier].Key; k != f.Tier && !slices.Contains(f.also, k) {
			f.also, names = append(f.also, k), append(names, k.String())
		}
	}
	if len(names) > 0 {
		f.Cause = append(f.Cause, fmt.Sprintf("%s %s it too", words(names), verb(len(names), "reads", "read")))
	}
}

// lacking says what an object still needs before anything is made from it.
func lacking(maker *item, b stuckOn) []string {
	var out []string
	for _, what := range b.lacks {
		out = append(out, fmt.Sprintf("nothing is made from %s before %s is there", maker.ID(), what))
	}
	return out
}

// orOptional is the other way out for inputs that a tier can do without.
func orOptional(field string) string {
	if field == "spec.postBuild.substituteFrom" {
		return ", or mark it optional and give its variables defaults"
	}
	return ""
}

// makerAmong is the object in git that a blocker waits for, one in the same tier if there is.
func (r *replay) makerAmong(b stuckOn) *item {
	list := r.bringing(b.what)
	if b.kind == byNamespace {
		list = r.namespaces[b.what]
		// A release that would make the namespace is not to blame where a tier makes it on purpose.
		if n := slices.IndexFunc(list, func(it *item) bool { return !isRelease(it.gk) }); n >= 0 {
			return list[n]
		}
	}
	for _, it := range list {
		if it.tier == b.tier {
			return it
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

func (r *replay) namespaceNever(_ cause, group []stuckOn) Finding {
	b := group[0]
	var items []*item
	for _, g := range group {
		items = append(items, g.item)
	}
	t := r.tiers[b.tier]
	maker := r.makerAmong(b)
	rule := namespaceDownstream
	if maker.tier == b.tier {
		rule = samePassNamespace
	}
	f := r.at(rule, b.tier, items)
	f.Related = append(f.Related, r.locationOf(maker, maker.ID()))
	what := words(f.Objects)
	if rule == samePassNamespace {
		f.Message = fmt.Sprintf("%s can never be applied: only %s creates namespace %s, in the same pass", what, maker.ID(), b.what.name)
		f.Cause = []string{"Flux dry-runs every object of the stage before it applies any, and the API server refuses an object whose namespace does not exist: the release is never applied"}
		f.Fix = fmt.Sprintf("add a Namespace %s to %s: Flux applies Namespaces in a stage before", b.what.name, t.Key)
		f.FixYAML = fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", b.what.name)
		return f
	}
	f.Message = fmt.Sprintf("%s can never be applied: namespace %s comes with %s in %s, which can come up only after %s",
		what, b.what.name, maker.ID(), r.tiers[maker.tier].Key, t.Key)
	f.Cause = []string{"the API server refuses an object whose namespace does not exist, and the refusal ends the pass"}
	f.Fix = fmt.Sprintf("move the Namespace into %s, or into a tier before it", t.Key)
	return f
}

func (r *replay) accountNever(_ cause, group []stuckOn) Finding {
	b := group[0]
	f := r.at(samePassAccount, b.tier, []*item{b.item})
	maker := r.makerAmong(b)
	f.Related = append(f.Related, r.locationOf(maker, maker.ID()))
	f.Message = fmt.Sprintf("%s can never be applied: its %s is in the same pass", b.item.ID(), b.what)
	if maker.tier != b.tier {
		f.Message = fmt.Sprintf("%s can never be applied: its %s is in %s, which can come up only after it", b.item.ID(), b.what, r.tiers[maker.tier].Key)
	}
	f.Cause = []string{"admission looks the ServiceAccount of a bare Pod up during the dry-run, which comes before anything of the stage is applied"}
	f.Fix = "make it a Deployment or a Job, whose pods are created later; or move the ServiceAccount to a tier before"
	return f
}

// useNever words a tier that waits for an object which needs something that comes only after the tier.
func (r *replay) useNever(b stuckOn) Finding {
	f := r.at(useDownstream, b.tier, []*item{b.item})
	t := r.tiers[b.tier]
	maker := r.makerAmong(b)
	f.Related = append(f.Related, r.locationOf(maker, maker.ID()))
	last := r.tiers[maker.tier].Key
	f.Message = fmt.Sprintf("%s waits for %s, which needs %s of %s, and that can come up only after %s", t.Key, b.item.ID(), maker.bringing(b.what), last, t.Key)
	f.Cause = append([]string{"without it the object never becomes healthy, and until it is healthy the tier is not Ready"}, lacking(maker, b)...)
	there := len(b.lacks) > 0 && len(b.on) > 0 // what it is made from, which lacks something itself
	if there {
		last = r.tiers[b.on[0]].Key
	}
	f.Fix = fmt.Sprintf("move %s into a tier that depends on %s", b.item.ID(), last)
	if !there && maker.tier != b.tier && r.kindBefore(b.tier, maker) {
		f.Fix += fmt.Sprintf(", or %s into %s or a tier before it", maker.source(b.what), t.Key)
	}
	f.Fix += fmt.Sprintf("; or set wait: false on %s", t.Key)
	return f
}

// kindBefore reports whether an object could be applied with a tier as far as its kind goes: the kind
// comes with nothing in git, or surely before.
func (r *replay) kindBefore(i int, it *item) bool {
	list, ok := r.supplies[kindRef(it.ref.cluster, it.gk)]
	return !ok || slices.ContainsFunc(list, func(s supply) bool { return r.surelyBefore(i, s) })
}

// shortDuration writes a duration as people do in manifests: 1h, 10m, 1h30m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
