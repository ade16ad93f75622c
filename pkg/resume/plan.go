package resume

import (
	"slices"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Intent is what a run means to do with a tier.
type Intent string

// The intents.
const (
	// IntentNone: the tier is ready at its source's revision.
	IntentNone Intent = "none"
	// IntentResume: it is suspended, and resumed when all that it needs is ready.
	IntentResume Intent = "resume"
	// IntentFree: no pass of it can succeed before it is freed.
	IntentFree Intent = "free"
	// IntentNudge: it is asked for a pass if Flux turns it away at its dependencies.
	IntentNudge Intent = "nudge"
	// IntentCreate: its parent's pass will create it.
	IntentCreate Intent = "create"
	// IntentSuspend: it is suspended.
	IntentSuspend Intent = "suspend"
	// IntentLeave: it is left alone on purpose; Why says which.
	IntentLeave Intent = "leave"
)

// Planned is what a run means to do with one tier.
type Planned struct {
	Tier   tiers.Key
	Wave   int
	Intent Intent
	// Why is empty, or says why the tier is left alone.
	Why Cause
	// Prune are the objects that the tier's next pass deletes, as Kind/namespace/name, sorted: those
	// in its live inventory that git no longer has.
	Prune []string
	// PruneUnknown says that the pass may prune and that the graph does not tell what.
	PruneUnknown bool
}

// Plan says what [Run] would do, tier by tier in the graph's order, if nothing but that happened. It
// is pure. Without objects in the graph, what is pruned is unknown. Its errors are those of
// [Selection.Of].
func Plan(opts Options, s flux.Snapshot) ([]Planned, error) {
	opts = opts.withDefaults()
	selected, err := opts.Selection.Of(opts.Graph)
	if err != nil {
		return nil, err
	}
	planned := make([]Planned, 0, len(opts.Graph.Tiers))
	for _, t := range opts.Graph.Tiers {
		p := Planned{Tier: t.Key, Wave: t.Wave}
		p.Intent, p.Why = intent(opts, t, selected[t.Key], s)
		if k := s.Kustomizations[t.Key]; k != nil && p.Intent != IntentNone && p.Intent != IntentLeave {
			p.Prune, p.PruneUnknown = pruned(t, k)
		}
		planned = append(planned, p)
	}
	return planned, nil
}

// PlanSuspend says what [SuspendTiers] would do, in the order in which it would be done. Its errors
// are those of [Selection.Of].
func PlanSuspend(opts Options, s flux.Snapshot) ([]Planned, error) {
	selected, err := opts.Selection.Of(opts.Graph)
	if err != nil {
		return nil, err
	}
	waves := make(map[tiers.Key]int, len(opts.Graph.Tiers))
	for _, t := range opts.Graph.Tiers {
		waves[t.Key] = t.Wave
	}
	var planned []Planned
	for _, o := range slices.Concat(suspendWaves(opts.Graph, selected, s)...) {
		key, _ := o.Tier()
		planned = append(planned, Planned{Tier: key, Wave: waves[key], Intent: IntentSuspend})
	}
	return planned, nil
}

func intent(opts Options, t *tiers.Tier, selected bool, s flux.Snapshot) (Intent, Cause) {
	k := s.Kustomizations[t.Key]
	switch {
	case !selected:
		return IntentLeave, CauseUnselected
	case k == nil && t.Parent == nil:
		return IntentLeave, CauseAbsent
	case k == nil && t.Suspend && !opts.IncludeSuspendedInGit:
		return IntentLeave, CauseSuspended
	case k == nil:
		return IntentCreate, CauseNone
	case k.Spec.Suspend && (t.Suspend || flux.SuspendedInGit(k, true)) && !opts.IncludeSuspendedInGit:
		return IntentLeave, CauseSuspended
	case opts.Stuck != nil && opts.Stuck(t.Key, s):
		return IntentFree, CauseNone
	case k.Spec.Suspend:
		return IntentResume, CauseNone
	case flux.Settled(k, s):
		return IntentNone, CauseNone
	}
	return IntentNudge, CauseNone
}

// pruned compares a tier's live inventory with what git has: prune in kustomize-controller's
// internal/controller/kustomization_controller.go deletes the difference after the apply.
func pruned(t *tiers.Tier, k *kustomizev1.Kustomization) (gone []string, unknown bool) {
	if !t.Kustomization.Spec.Prune || k.Status.Inventory == nil || len(k.Status.Inventory.Entries) == 0 {
		return nil, false
	}
	if t.Objects == nil || t.Opaque != "" {
		return nil, true
	}
	kept := make(map[object.ObjMetadata]bool, len(t.Objects))
	for _, o := range t.Objects {
		kept[object.ObjMetadata{Namespace: o.GetNamespace(), Name: o.GetName(), GroupKind: o.GroupVersionKind().GroupKind()}] = true
	}
	for _, entry := range k.Status.Inventory.Entries {
		id, err := object.ParseObjMetadata(entry.ID)
		if err != nil {
			unknown = true
			continue
		}
		if !kept[id] {
			gone = append(gone, objectID(id.GroupKind, id.Namespace, id.Name))
		}
	}
	slices.Sort(gone)
	return gone, unknown
}

func objectID(kind schema.GroupKind, namespace, name string) string {
	if namespace == "" {
		return kind.Kind + "/" + name
	}
	return kind.Kind + "/" + namespace + "/" + name
}
