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
	for n, in := range r.inputs {
		f.Objects = append(f.Objects, in.ref.String())
		f.Related = append(f.Related, w.locationOf(r.items[n], r.items[n].ID()))
	}
	f.Object = f.Objects[0]
	return f
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
	groups := map[key][]inputRace{}
	var order []key
	for _, r := range list {
		k := key{w.index[*w.tiers[r.tier].Parent], r.maker, words(w.inputFinding(r, r.tier).Objects)}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	var out []Finding
	for _, k := range order {
		group := groups[k]
		parent, maker := w.tiers[k.parent], w.tiers[k.maker]
		if len(group) == 1 || k.parent == k.maker || w.before.Of(maker.Key).Applied(parent.Key) {
			for _, r := range group {
				out = append(out, w.inputRace(r))
			}
			continue
		}
		f := w.inputFinding(group[0], k.parent)
		var readers []string
		for _, r := range group {
			readers = append(readers, w.tiers[r.tier].Key.String())
		}
		f.Message = fmt.Sprintf("%d tiers that %s creates read %s in %s, and nothing puts %s, which applies %s, before them",
			len(readers), parent.Key, words(f.Objects), words(group[0].fields()), maker.Key, verb(len(f.Objects), "it", "them"))
		f.Cause = []string{
			fmt.Sprintf("each of them that is first fails and is retried after its retryInterval, %s for one", shortDuration(w.tiers[group[0].tier].Kustomization.GetRetryInterval())),
			"they are " + strings.Join(readers, ", "),
		}
		f.Fix = fmt.Sprintf("add %s to spec.dependsOn of %s", dependencyName(parent, maker), parent.Key)
		out = append(out, f)
	}
	return out
}
