package audit

import (
	"fmt"
	"slices"

	"github.com/standup-sh/standup/pkg/tiers"
)

// races finds what comes up in the end, but only after a pass has failed and been retried: nothing
// guarantees that it is there at the first pass.
func (w *world) races(told told) []Finding {
	var out []Finding
	var inputs []inputRace
	for i := range w.tiers {
		var of []Finding
		of = append(of, w.kindRaces(i)...)
		of = append(of, w.namespaceRaces(i)...)
		of = slices.DeleteFunc(of, told.covers)
		out = append(out, of...)
		for _, r := range w.inputRaces(i) {
			if f := w.inputRace(r); !told.covers(f) {
				inputs, of = append(inputs, r), append(of, f)
			}
		}
		if f, ok := w.slowRetry(i, of); ok {
			out = append(out, f)
		}
	}
	return append(out, w.joinInputRaces(inputs)...)
}

// guarantee says how far an object of another tier has come before a tier's first pass.
type guarantee int

const (
	nothing guarantee = iota
	applied           // it has been applied
	healthy           // it has been healthy
)

// guaranteed tells how far an item has come before the first pass of tier i.
func (w *world) guaranteed(i int, it *item) guarantee {
	before := w.before.Of(w.tiers[i].Key)
	if it.tier != i && before.Ready(w.tiers[it.tier].Key) && watches(w.tiers[it.tier], it) {
		return healthy
	}
	if w.awaitedThrough(i, it) {
		return healthy
	}
	if it.tier != i && before.Applied(w.tiers[it.tier].Key) {
		return applied
	}
	return nothing
}

// awaitedThrough reports whether some other HelmRelease that depends on this one is waited for.
func (w *world) awaitedThrough(i int, it *item) bool {
	if w.releases[it.ref] == nil {
		return false
	}
	before := w.before.Of(w.tiers[i].Key)
	for _, other := range w.releases {
		if other.tier == i || !before.Ready(w.tiers[other.tier].Key) || !watches(w.tiers[other.tier], other.item) {
			continue
		}
		for _, d := range other.spec.Spec.DependsOn {
			ns := d.Namespace
			if ns == "" {
				ns = other.GetNamespace()
			}
			if d.Name == it.GetName() && ns == it.GetNamespace() {
				return true
			}
		}
	}
	return false
}

// kindRaces finds kinds that are provided, but not surely before the tier needs them.
func (w *world) kindRaces(i int) []Finding {
	type key struct {
		rule     string
		provider *item
		step     string // why the kind may be there all the same
	}
	groups := map[key][]*item{}
	var order []key
	for _, it := range w.items[i] {
		kind := kindRef(it.ref.cluster, it.gk)
		list := w.supplies[kind]
		if len(list) == 0 || slices.ContainsFunc(list, func(s supply) bool { return w.surelyBefore(i, s) }) {
			continue
		}
		if w.usedBefore(i, kind) {
			continue
		}
		s := w.bestSupply(i, list)
		if s.tier == i && !s.inGit() {
			continue // a deadlock, or else another supply than this one is at work
		}
		k := key{providerNotUpstream, s.item, w.stepBefore(it)}
		if w.guaranteed(i, s.item) == applied {
			k.rule = providerNotAwaited
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], it)
	}
	var out []Finding
	for _, k := range order {
		f := w.kindRace(i, k.rule, groups[k], k.provider)
		if k.step != "" {
			f.Severity = tiers.Info
			f.Cause = append(f.Cause, "not certain: "+k.step)
		}
		out = append(out, f)
	}
	return out
}

// surelyBefore reports whether a supply has delivered before tier i needs it.
func (w *world) surelyBefore(i int, s supply) bool {
	if s.there() {
		return true
	}
	if s.inGit() {
		return s.tier == i || w.guaranteed(i, s.item) >= applied
	}
	return w.guaranteed(i, s.item) == healthy
}

// usedBefore reports whether a tier that is applied before i holds objects of the same kind: then
// the kind was there for it.
func (w *world) usedBefore(i int, kind ref) bool {
	before := w.before.Of(w.tiers[i].Key)
	for _, j := range w.users[kind] {
		if j != i && before.Applied(w.tiers[j].Key) {
			return true
		}
	}
	return false
}

// bestSupply is the supply that comes nearest to being guaranteed.
func (w *world) bestSupply(i int, list []supply) supply {
	best, most := list[0], guarantee(-1)
	for _, s := range list {
		if s.item == nil {
			continue
		}
		if g := w.guaranteed(i, s.item); g > most {
			best, most = s, g
		}
	}
	return best
}

func (w *world) kindRace(i int, rule string, items []*item, provider *item) Finding {
	t, p := w.tiers[i], w.tiers[provider.tier]
	f := w.at(rule, i, items)
	list := w.supplies[kindRef(items[0].ref.cluster, items[0].gk)]
	for _, s := range list {
		if s.item == provider {
			f.Evidence, f.Reference = s.Evidence, reference(s.Origin)
		}
	}
	f.Related = append(f.Related, w.locationOf(provider, provider.ID()))
	what := words(f.Objects)
	retry := shortDuration(t.Kustomization.GetRetryInterval())
	late := fmt.Sprintf("the pass of %s then fails and is retried after %s", t.Key, retry)
	switch {
	case rule == providerNotAwaited && w.within(i, provider.tier):
		f.Message = fmt.Sprintf("%s may come too early: %s %s with %s in %s, which creates %s in the same pass", what, kindWords(items), come(items), provider.ID(), p.Key, t.Key)
		f.Cause = []string{"a tier is created with everything else that its parent applies, before the kind exists", late}
		f.Fix = fmt.Sprintf("name %s in healthChecks of %s and add %s to spec.dependsOn of %s", provider.ID(), p.Key, dependencyName(t, p), t.Key)
		if p.Kustomization.Spec.Wait { // and so for its children
			f.Fix = fmt.Sprintf("move %s into a tier of its own with wait: true, and add that to spec.dependsOn of %s", provider.ID(), t.Key)
		} else {
			f.advise(t, p)
		}
		return f
	case rule == providerNotAwaited:
		f.Message = fmt.Sprintf("%s may come too early: %s %s with %s in %s, which is upstream but does not wait for it", what, kindWords(items), come(items), provider.ID(), p.Key)
		f.Cause = []string{fmt.Sprintf("without wait or healthChecks %s is Ready as soon as its objects are applied, before the kind exists", p.Key), late}
		f.Fix = w.awaiting(provider)
		if b := w.before.Of(t.Key); !b.Ready(p.Key) {
			f.advise(t, p)
			f.Fix += fmt.Sprintf(", and add %s to spec.dependsOn of %s", dependencyName(t, p), t.Key)
		}
		return f
	}
	f.Message = fmt.Sprintf("%s may come too early: %s %s with %s in %s, which nothing puts before %s", what, kindWords(items), come(items), provider.ID(), p.Key, t.Key)
	f.Cause = []string{fmt.Sprintf("if %s is first, its pass fails and is retried after %s", t.Key, retry)}
	f.advise(t, p)
	f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(t, p), t.Key)
	if !watches(p, provider) && !isGitCRD(provider) {
		f.Fix += ", and " + w.awaiting(provider)
	}
	return f
}

// awaiting says how to make a tier wait for objects that it applies. With wait: true it would wait for
// all the others too: not where some are tiers, which may need this one, or are suspended.
func (w *world) awaiting(items ...*item) string {
	i := items[0].tier
	t := w.tiers[i]
	held := slices.ContainsFunc(w.items[i], func(other *item) bool {
		child := isKustomization(other.gk) && (other.GetName() != t.Name || other.GetNamespace() != t.Namespace)
		return child || isRelease(other.gk) && suspended(other)
	})
	if held {
		return fmt.Sprintf("name %s in healthChecks of %s", words(ids(items)), t.Key)
	}
	return fmt.Sprintf("set wait: true on %s, or name %s in its healthChecks", t.Key, words(ids(items)))
}

func isGitCRD(it *item) bool { return it.gk.Kind == "CustomResourceDefinition" }

// dependencyName writes a dependency as the dependent would: without its own namespace.
func dependencyName(t, p *tiers.Tier) string {
	if t.Namespace == p.Namespace {
		return p.Name
	}
	return p.Key.String()
}

// namespaceRaces finds namespaces that another tier makes, but not surely before.
func (w *world) namespaceRaces(i int) []Finding {
	groups := map[ref][]*item{}
	var order []ref
	for _, it := range w.items[i] {
		ns := namespaceRef(it.ref.cluster, w.scopes.namespaceOf(it))
		makers := w.namespaces[ns]
		if ns.name == "" || len(makers) == 0 || w.initialNamespace(ns.cluster, ns.name) {
			continue
		}
		if slices.ContainsFunc(makers, func(m *item) bool { return w.namespaceSurely(i, m) }) || w.namespaceUsedBefore(i, ns) {
			continue
		}
		if slices.ContainsFunc(makers, func(m *item) bool { return m.tier == i }) {
			continue // the same pass: the replay has its say
		}
		if groups[ns] == nil {
			order = append(order, ns)
		}
		groups[ns] = append(groups[ns], it)
	}
	var out []Finding
	for _, ns := range order {
		maker := w.namespaces[ns][0]
		t, p := w.tiers[i], w.tiers[maker.tier]
		f := w.at(namespaceNotUpstream, i, groups[ns])
		f.Related = append(f.Related, w.locationOf(maker, maker.ID()))
		f.Message = fmt.Sprintf("%s may come too early: namespace %s comes with %s in %s, which nothing puts before %s", words(f.Objects), ns.name, maker.ID(), p.Key, t.Key)
		f.Cause = []string{fmt.Sprintf("if %s is first, its pass fails and is retried after %s", t.Key, shortDuration(t.Kustomization.GetRetryInterval()))}
		f.advise(t, p)
		f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s, or the Namespace to the tier", dependencyName(t, p), t.Key)
		out = append(out, f)
	}
	return out
}

func (w *world) namespaceSurely(i int, maker *item) bool {
	if isRelease(maker.gk) {
		return w.guaranteed(i, maker) == healthy
	}
	return maker.tier == i || w.guaranteed(i, maker) >= applied
}

// namespaceUsedBefore reports whether a tier that is applied before i has objects in the namespace.
func (w *world) namespaceUsedBefore(i int, ns ref) bool {
	before := w.before.Of(w.tiers[i].Key)
	for _, j := range w.inhabitants[ns] {
		if j != i && before.Applied(w.tiers[j].Key) {
			return true
		}
	}
	return false
}

// slowRetry finds a tier whose first pass may fail and that would be retried only after its whole
// interval.
func (w *world) slowRetry(i int, races []Finding) (Finding, bool) {
	t := w.tiers[i]
	if len(races) == 0 || t.Kustomization.Spec.RetryInterval != nil {
		return Finding{}, false
	}
	f := w.at(noRetryInterval, i, nil)
	f.Message = fmt.Sprintf("%s has no retryInterval, and its first pass may fail: it would be retried only after its interval, %s", t.Key, shortDuration(t.Kustomization.Spec.Interval.Duration))
	f.Cause = []string{races[0].Message}
	f.Fix = fmt.Sprintf("add retryInterval: 1m to %s", t.Key)
	return f, true
}
