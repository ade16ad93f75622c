package audit

import (
	"fmt"
	"slices"
	"strings"
)

// inputRace is a tier that reads what another one brings, not surely before.
type inputRace struct {
	tier, maker int
	way
	inputs []input
	items  []*item // what brings them, one an input
}

// way is how an input comes about.
type way struct {
	made     bool // a controller makes it
	upstream bool // what it is made from is applied before, but not waited for
	within   bool // and that by the tier that applies the reader
}

// inputRaces finds inputs that another tier brings, but not surely before: one race a maker and way.
func (w *world) inputRaces(i int) []inputRace {
	t := w.tiers[i]
	if t.Parent == nil {
		return nil
	}
	var out []inputRace
	for _, in := range inputsOf(t) {
		makers := w.bringing(in.ref)
		if len(makers) == 0 || w.declared(in.ref) || w.broughtByHand(in) {
			continue
		}
		if slices.ContainsFunc(makers, func(m *item) bool { return m.tier == i || w.broughtBefore(i, m, in.ref) }) {
			continue
		}
		it, how := w.nearestMaker(i, makers, in.ref)
		if how.upstream && w.readBefore(i, in.ref) {
			continue
		}
		n := slices.IndexFunc(out, func(r inputRace) bool { return r.maker == it.tier && r.way == how })
		if n < 0 {
			n = len(out)
			out = append(out, inputRace{tier: i, maker: it.tier, way: how})
		}
		out[n].inputs, out[n].items = append(out[n].inputs, in), append(out[n].items, it)
	}
	return out
}

// readBefore reports whether a tier that is applied before i reads the same: then it was there for that one.
func (w *world) readBefore(i int, what ref) bool {
	before := w.before.Of(w.tiers[i].Key)
	return slices.ContainsFunc(w.readers[what], func(j int) bool { return j != i && before.Applied(w.tiers[j].Key) })
}

// nearestMaker is the one of several that bring an input which comes nearest to being surely before.
func (w *world) nearestMaker(i int, makers []*item, what ref) (*item, way) {
	for _, it := range makers {
		if it.makes(what) && w.guaranteed(i, it) >= applied {
			return it, way{made: true, upstream: true, within: w.within(i, it.tier)}
		}
	}
	return makers[0], way{made: makers[0].makes(what)}
}

func (w *world) inputRace(r inputRace) Finding {
	t, p := w.tiers[r.tier], w.tiers[r.maker]
	f := w.inputFinding(r, r.tier)
	f.Message = fmt.Sprintf("%s reads %s in %s, and %s", t.Key, words(f.Objects), words(r.fields()), w.notBefore(r, t.Key.String()))
	f.Cause = []string{fmt.Sprintf("if %s is first, its pass fails and is retried after %s", t.Key, shortDuration(t.Kustomization.GetRetryInterval()))}
	if !r.upstream {
		f.advise(t, p)
		f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(t, p), t.Key)
		if r.made && slices.ContainsFunc(r.items, func(it *item) bool { return !watches(p, it) }) {
			f.Fix += ", and " + w.awaitingMade(r)
		}
		return f
	}
	f.Cause = []string{
		w.readyTooSoon(r),
		fmt.Sprintf("the pass of %s may then fail, and is retried after %s", t.Key, shortDuration(t.Kustomization.GetRetryInterval())),
	}
	f.Fix = w.awaitingUpstream(r, t.Key.String())
	w.adviseUpstream(&f, r)
	return f
}

// inputOfReaders words the races of several tiers with one that does not wait.
func (w *world) inputOfReaders(races []inputRace) Finding {
	all := races[0]
	all.inputs, all.items = slices.Clone(all.inputs), slices.Clone(all.items)
	var readers []string
	for n, r := range races {
		readers = append(readers, w.tiers[r.tier].Key.String())
		for m, it := range r.items {
			if n > 0 && !slices.ContainsFunc(all.inputs, func(in input) bool { return in.ref == r.inputs[m].ref }) {
				all.inputs, all.items = append(all.inputs, r.inputs[m]), append(all.items, it)
			}
		}
	}
	f := w.inputFinding(all, all.maker)
	f.Message = fmt.Sprintf("%d tiers read %s in %s, and %s", len(readers), words(f.Objects), words(all.fields()), w.notBefore(all, "them"))
	f.Cause = []string{
		w.readyTooSoon(all),
		fmt.Sprintf("each of them that is too early fails and is retried after its retryInterval, %s for one", shortDuration(w.tiers[all.tier].Kustomization.GetRetryInterval())),
		"the tiers are " + strings.Join(readers, ", "),
	}
	f.Fix = w.awaitingUpstream(all, "each of them")
	for _, r := range races {
		w.adviseUpstream(&f, r)
	}
	return f
}

// readyTooSoon says why an edge to the tier that does not wait is not enough.
func (w *world) readyTooSoon(r inputRace) string {
	if r.within {
		return "a tier is created with everything else that its parent applies, before anything has been made from that"
	}
	return fmt.Sprintf("%s is Ready as soon as its objects are applied, before anything has been made from them", w.tiers[r.maker].Key)
}

// notBefore says why the inputs of a race may come too late for a tier.
func (w *world) notBefore(r inputRace, reader string) string {
	p := w.tiers[r.maker].Key
	switch n := len(r.inputs); {
	case r.upstream:
		return fmt.Sprintf("%s, which applies what %s made from, %s, does not wait for it", p, verb(n, "it is", "they are"), words(ids(r.items)))
	case r.made:
		return fmt.Sprintf("nothing puts %s, which applies what %s made from, %s, before %s", p, verb(n, "it is", "they are"), words(ids(r.items)), reader)
	default:
		return fmt.Sprintf("nothing puts %s, which applies %s, before %s", p, verb(n, "it", "them"), reader)
	}
}

// awaitingUpstream says how to make readers wait for objects of a tier that is applied before them.
func (w *world) awaitingUpstream(r inputRace, readers string) string {
	t, p := w.tiers[r.tier], w.tiers[r.maker]
	depend := fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(t, p), readers)
	switch {
	case r.within && p.Kustomization.Spec.Wait: // and so for its children
		how := "wait: true"
		if r.silent() {
			how = words(r.objects()) + " in healthChecks"
		}
		return fmt.Sprintf("move %s into a tier of its own with %s, and add that to spec.dependsOn of %s", words(ids(r.items)), how, readers)
	case r.within:
		return fmt.Sprintf("name %s in healthChecks of %s and %s", words(r.objects()), p.Key, depend)
	case w.before.Of(t.Key).Ready(p.Key):
		return w.awaitingMade(r)
	}
	return w.awaitingMade(r) + ", and " + depend
}

// adviseUpstream notes the dependency that awaitingUpstream asks for, if it does.
func (w *world) adviseUpstream(f *Finding, r inputRace) {
	t, p := w.tiers[r.tier], w.tiers[r.maker]
	if r.within && !p.Kustomization.Spec.Wait || !r.within && !w.before.Of(t.Key).Ready(p.Key) {
		f.advise(t, p)
	}
}

// awaitingMade says how to make a tier wait for what is made from objects that it applies.
func (w *world) awaitingMade(r inputRace) string {
	if r.silent() {
		return fmt.Sprintf("name %s in healthChecks of %s", words(r.objects()), w.tiers[r.maker].Key)
	}
	return w.awaiting(r.items...)
}

// silent reports whether some of what the inputs are made from has no condition Ready, so that to a health
// check it is healthy at once (see need). What is made can be waited for all the same, by its own name.
func (r inputRace) silent() bool {
	return slices.ContainsFunc(r.items, func(it *item) bool {
		return it.gk.Kind == "SealedSecret" || it.gk.Kind == "ObjectBucketClaim"
	})
}

// inputFinding is a finding at one tier that names the inputs and where they come from.
func (w *world) inputFinding(r inputRace, at int) Finding {
	f := w.at(inputNotUpstream, at, nil)
	if r.upstream {
		f.Rule, f.Severity = inputNotAwaited, severityOf(inputNotAwaited)
	}
	f.Objects = r.objects()
	for _, it := range r.items {
		f.Related = append(f.Related, w.locationOf(it, it.ID()))
	}
	f.Object = f.Objects[0]
	return f
}

func (r inputRace) objects() []string {
	var out []string
	for _, in := range r.inputs {
		out = append(out, in.ref.String())
	}
	return out
}

func (r inputRace) fields() []string {
	var out []string
	for _, in := range r.inputs {
		if !slices.Contains(out, in.field) {
			out = append(out, in.field)
		}
	}
	return out
}

// joinInputRaces words the races. Tiers of one parent that lack the same are one finding where one edge
// of the parent mends them all: a tier is created only once its parent has been applied. So are those
// that read what is made from objects of one tier which does not wait.
func (w *world) joinInputRaces(list []inputRace) []Finding {
	type key struct {
		parent, maker int
		way
		what string
	}
	same := func(r inputRace, parent int) key {
		if r.upstream { // one finding a tier that does not wait, whoever reads what
			return key{maker: r.maker, way: r.way}
		}
		return key{parent, r.maker, r.way, strings.Join(r.objects(), " ")}
	}
	groups := map[key][]inputRace{}
	var order []key
	for _, r := range list {
		k := same(r, w.index[*w.tiers[r.tier].Parent])
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	joined := map[key]bool{}
	for k, group := range groups {
		joined[k] = len(group) > 1 && k.parent != k.maker && !k.upstream && !w.before.Of(w.tiers[k.maker].Key).Applied(w.tiers[k.parent].Key)
	}
	var out []Finding
	for _, k := range order {
		if k.upstream && len(groups[k]) > 1 {
			out = append(out, w.inputOfReaders(groups[k]))
			continue
		}
		if joined[k] {
			self := slices.ContainsFunc(list, func(r inputRace) bool { return r.tier == k.parent && same(r, k.parent) == k })
			out = append(out, w.inputOfChildren(k.parent, groups[k], self))
			continue
		}
		for _, r := range groups[k] {
			if !joined[same(r, r.tier)] { // it would be said twice
				out = append(out, w.inputRace(r))
			}
		}
	}
	return out
}

// inputOfChildren words the races of tiers of one parent, and of the parent too if it reads the same.
func (w *world) inputOfChildren(i int, races []inputRace, self bool) Finding {
	parent, maker := w.tiers[i], w.tiers[races[0].maker]
	f := w.inputFinding(races[0], i)
	var readers []string
	for _, r := range races {
		readers = append(readers, w.tiers[r.tier].Key.String())
	}
	who := fmt.Sprintf("%d tiers that %s creates", len(readers), parent.Key)
	if self {
		who = fmt.Sprintf("%s and %d tiers that it creates", parent.Key, len(readers))
	}
	f.Message = fmt.Sprintf("%s read %s in %s, and %s", who, words(f.Objects), words(races[0].fields()), w.notBefore(races[0], "them"))
	f.Cause = []string{
		fmt.Sprintf("each of them that is first fails and is retried after its retryInterval, %s for one", shortDuration(w.tiers[races[0].tier].Kustomization.GetRetryInterval())),
		"the tiers are " + strings.Join(readers, ", "),
	}
	f.advise(parent, maker)
	f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(parent, maker), parent.Key)
	return f
}
