package audit

import (
	"slices"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// replay brings a cold cluster up, as far as Flux's rules let it come. Everything in it only ever
// grows (a tier that was applied stays so, a kind that is served stays served), because Flux tries
// again for ever: so the order of the steps does not matter and the end is unique.
type replay struct {
	*world
	// stage is how far a tier's passes have come: the last stage that was applied; StageRest once
	// the whole tier has been.
	applied []bool
	stages  []flux.ApplyStage
	ready   []bool
	present map[ref]bool // objects of the graph that are on the cluster
	kinds   map[ref]bool // kinds that are served, for those that have a supply
	running map[ref]bool // HelmReleases whose chart has been installed
	asking  map[ref]bool // objects whose way is being looked into: see waitFor
	// forced holds what earlier findings have dealt with: the replay goes on as if it were mended.
	forced map[force]bool
}

// force is one blocker taken as mended; for a tier that is suspended in git that is so for all who
// depend on it, and tier is -1.
type force struct {
	tier int
	kind blockerKind
	what ref
}

func newReplay(w *world) *replay {
	return &replay{
		world: w, applied: make([]bool, len(w.tiers)), stages: make([]flux.ApplyStage, len(w.tiers)), ready: make([]bool, len(w.tiers)),
		present: map[ref]bool{}, kinds: map[ref]bool{}, running: map[ref]bool{}, asking: map[ref]bool{}, forced: map[force]bool{},
	}
}

// run goes on until nothing changes any more.
func (r *replay) run() {
	for r.step() {
	}
}

func (r *replay) step() bool {
	changed := false
	for i := range r.tiers {
		if !r.applied[i] && r.pass(i) {
			changed = true
		}
		if r.applied[i] && !r.ready[i] && len(r.unhealthy(i)) == 0 {
			r.ready[i], changed = true, true
		}
	}
	for key, rel := range r.releases {
		if !r.running[key] && r.present[key] && len(r.releaseBlockers(rel)) == 0 {
			r.running[key], changed = true, true
		}
	}
	for key, list := range r.supplies {
		if !r.kinds[key] && slices.ContainsFunc(list, r.supplied) {
			r.kinds[key], changed = true, true
		}
	}
	return r.make() || changed
}

// pass applies as many stages of a tier as Flux could now, and reports whether that was any more
// than before.
func (r *replay) pass(i int) bool {
	if len(r.gateBlockers(i)) > 0 {
		return false
	}
	before := r.stages[i]
	for _, stage := range stages() {
		if stage <= r.stages[i] {
			continue
		}
		if len(r.stageBlockers(i, stage)) > 0 {
			break
		}
		for _, it := range r.items[i] {
			if it.stage == stage {
				r.present[it.ref] = true
			}
		}
		r.stages[i] = stage
		if stage == flux.StageDefinitions {
			r.established(i)
		}
	}
	r.applied[i] = r.stages[i] == flux.StageRest
	return r.stages[i] != before
}

// established makes the kinds known whose CRDs the first stage has just applied: Flux waits for
// them before the next stage.
func (r *replay) established(i int) {
	for key, list := range r.supplies {
		for _, s := range list {
			if s.tier == i && s.inGit() {
				r.kinds[key] = true
			}
		}
	}
}

// supplied reports whether a supply has delivered.
func (r *replay) supplied(s supply) bool {
	if s.there() {
		return true
	}
	if r.releases[s.item.ref] != nil {
		return r.running[s.item.ref]
	}
	return r.present[s.item.ref]
}

func stages() []flux.ApplyStage {
	return []flux.ApplyStage{flux.StageDefinitions, flux.StageClasses, flux.StageCustom, flux.StageRest}
}

// served reports whether the API server knows a kind: one that has no supply is taken to be known.
func (r *replay) served(key ref) bool {
	_, ok := r.supplies[key]
	return !ok || r.kinds[key]
}

// force names the blocker as held by a tier.
func (b blocker) force(tier int) force {
	if b.kind == bySuspended && b.item == nil {
		tier = -1
	}
	return force{tier, b.kind, b.what}
}

// count is the number of tiers that have become Ready.
func (r *replay) count() int {
	n := 0
	for _, ok := range r.ready {
		if ok {
			n++
		}
	}
	return n
}

// down lists the tiers that are not Ready, in graph order.
func (r *replay) down() []tiers.Key {
	var out []tiers.Key
	for i, t := range r.tiers {
		if !r.ready[i] {
			out = append(out, t.Key)
		}
	}
	return out
}

// stuck lists the tiers that have not become Ready and were meant to, in graph order.
func (r *replay) stuck() []int {
	var out []int
	for i := range r.tiers {
		if !r.ready[i] && r.sleeper(i) < 0 {
			out = append(out, i)
		}
	}
	return out
}
