package audit

import (
	"fmt"
	"slices"
	"strings"
)

// inputRace is a tier that reads what another one applies, which nothing puts before it.
type inputRace struct {
	tier, maker int
	inputs      []input
	items       []*item // what the maker applies, one an input
}

// inputRaces finds inputs that another tier makes, but not surely before: one race a maker.
func (w *world) inputRaces(i int) []inputRace {
	t := w.tiers[i]
	if t.Parent == nil {
		return nil
	}
	var out []inputRace
	for _, in := range inputsOf(t) {
		makers := w.byRef[in.ref]
		if len(makers) == 0 || w.declared(in.ref) || slices.ContainsFunc(makers, func(m *item) bool {
			return m.Encrypted() && in.ref.kind == "Secret" && strings.HasPrefix(in.field, "spec.decryption")
		}) {
			continue
		}
		if slices.ContainsFunc(makers, func(m *item) bool { return m.tier == i || w.guaranteed(i, m) >= applied }) {
			continue
		}
		n := slices.IndexFunc(out, func(r inputRace) bool { return r.maker == makers[0].tier })
		if n < 0 {
			n = len(out)
			out = append(out, inputRace{tier: i, maker: makers[0].tier})
		}
		out[n].inputs, out[n].items = append(out[n].inputs, in), append(out[n].items, makers[0])
	}
	return out
}

func (w *world) inputRace(r inputRace) Finding {
	t, p := w.tiers[r.tier], w.tiers[r.maker]
	f := w.inputFinding(r, r.tier)
	f.Message = fmt.Sprintf("%s reads %s in %s, and nothing puts %s, which applies %s, before %s",
		t.Key, words(f.Objects), words(r.fields()), p.Key, verb(len(f.Objects), "it", "them"), t.Key)
	f.Cause = []string{fmt.Sprintf("if %s is first, its pass fails and is retried after %s", t.Key, shortDuration(t.Kustomization.GetRetryInterval()))}
	f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(t, p), t.Key)
	return f
}

// inputFinding is a finding at one tier that names the inputs and where they come from.
func (w *world) inputFinding(r inputRace, at int) Finding {
	f := w.at(inputNotUpstream, at, nil)
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
// of the parent mends them all: a tier is created only once its parent has been applied.
func (w *world) joinInputRaces(list []inputRace) []Finding {
	type key struct {
		parent, maker int
		what          string
	}
	same := func(r inputRace, parent int) key {
		return key{parent, r.maker, strings.Join(r.objects(), " ")}
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
		joined[k] = len(group) > 1 && k.parent != k.maker && !w.before.Of(w.tiers[k.maker].Key).Applied(w.tiers[k.parent].Key)
	}
	var out []Finding
	for _, k := range order {
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
	f.Message = fmt.Sprintf("%s read %s in %s, and nothing puts %s, which applies %s, before them",
		who, words(f.Objects), words(races[0].fields()), maker.Key, verb(len(f.Objects), "it", "them"))
	f.Cause = []string{
		fmt.Sprintf("each of them that is first fails and is retried after its retryInterval, %s for one", shortDuration(w.tiers[races[0].tier].Kustomization.GetRetryInterval())),
		"the tiers are " + strings.Join(readers, ", "),
	}
	f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(parent, maker), parent.Key)
	return f
}
