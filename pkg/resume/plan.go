package resume

import (
	"context"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Step is what a run would do about one tier.
type Step struct {
	Tier tiers.Key `json:"tier"`
	Wave int       `json:"wave"`
	// Verb is Resume for a tier that is suspended, Nudge for one that is not ready and will be asked
	// for a pass as soon as that helps, Free for one that is stuck; empty when nothing is written.
	Verb Verb `json:"verb,omitempty"`
	// Standing is where the tier stands now.
	Standing Standing `json:"standing"`
	// Prunes lists what the tier's next pass deletes, as Kind/namespace/name, sorted: what is in its
	// inventory and no longer in what git renders. Objects that opt out of it on the cluster are not
	// told apart. It is nil where the graph was read without objects.
	Prunes []string `json:"prunes,omitempty"`
}

// Plan says what a run on a snapshot would do, tier by tier in the graph's order, without doing it.
// What happens to a tier that is not ready depends on what happens before it: the plan holds what
// each will get if all goes well.
func Plan(ctx context.Context, opts Options, s flux.Snapshot, now time.Time) ([]Step, error) {
	d, err := NewDispatcher(opts)
	if err != nil {
		return nil, err
	}
	decision := d.Decide(ctx, s, Memory{}, now)
	steps := make([]Step, 0, len(d.opts.Graph.Tiers))
	for _, standing := range decision.Standings {
		key, _ := standing.Object.Tier()
		t := d.tiers[key]
		if t == nil || tierObject(key) != standing.Object {
			continue
		}
		k := s.Kustomizations[key]
		steps = append(steps, Step{Tier: key, Wave: t.Wave, Verb: d.plannedVerb(standing, k, s), Standing: standing, Prunes: prunes(t, k)})
	}
	return steps, nil
}

func (d *Dispatcher) plannedVerb(st Standing, k *kustomizev1.Kustomization, s flux.Snapshot) Verb {
	key, _ := st.Object.Tier()
	switch {
	case !st.Selected || st.Phase == Settled || st.Phase == Held || st.Phase == Stopped || k == nil:
		return ""
	case d.opts.Stuck != nil && d.opts.Stuck(key, s):
		return Free
	case k.Spec.Suspend:
		return Resume
	}
	return Nudge
}

// prunes compares a tier's live inventory with what git renders, as the garbage collection of
// kustomize-controller does (inventory.Diff in its internal/inventory/inventory.go): by group, kind,
// namespace and name, whatever the version.
func prunes(t *tiers.Tier, k *kustomizev1.Kustomization) []string {
	if k == nil || t.Objects == nil || !k.Spec.Prune || k.Status.Inventory == nil {
		return nil
	}
	rendered := make(map[object.ObjMetadata]bool, len(t.Objects))
	for _, o := range t.Objects {
		rendered[object.UnstructuredToObjMetadata(o.Unstructured)] = true
	}
	deleted := []string{}
	for _, entry := range k.Status.Inventory.Entries {
		if id, err := object.ParseObjMetadata(entry.ID); err == nil && !rendered[id] {
			deleted = append(deleted, ssautil.FmtObjMetadata(id))
		}
	}
	slices.Sort(deleted)
	return deleted
}
