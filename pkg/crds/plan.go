package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Verdict says what can be done about a kind that a cluster lacks.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// FluxWill: a tier brings the kind by itself, and Flux comes to it without help.
	FluxWill Verdict = "flux"
	// Deadlocked: what brings the kind is in the same pass or comes after it, so that no pass can
	// ever succeed. Applying that object ahead of the pass does.
	Deadlocked Verdict = "stuck"
	// OtherVersion: the kind is served, but not in the version that git uses.
	OtherVersion Verdict = "version"
	// Absent: Kubernetes or the platform should serve the kind, and this cluster does not.
	Absent Verdict = "absent"
	// Unreachable: discovery fails for the group, an aggregated API whose server does not answer.
	Unreachable Verdict = "unreachable"
	// NotKnown: nothing says what brings the kind.
	NotKnown Verdict = "unknown"
)

// Missing is one kind that a tier needs and the cluster lacks.
type Missing struct {
	schema.GroupVersionKind
	// Uses are the tier's objects of that kind.
	Uses    []Use
	Verdict Verdict
	// Origin is what brings the kind: for FluxWill and Deadlocked the object in git.
	Origin Origin
	// Reason says in words why the verdict is what it is.
	Reason string
}

// TierPlan is what one tier lacks and what would make its next pass succeed.
type TierPlan struct {
	Tier    tiers.Key
	Missing []Missing
	// Rounds are the triggers to apply, in rounds: those of one round need the kinds that the round
	// before it brings. Empty when nothing of this tier is to be freed, or in a partial apply.
	Rounds [][]Planned
	// Partial says that no trigger is known, or that the trigger's own operator is in the same pass:
	// every object of the tier whose kind exists is to be applied, in Flux's stages.
	Partial bool
	// Candidates are the objects of the tier, as Kind/namespace/name, that may bring the kinds that
	// nothing is known to bring; nil where no such kind is missing. Without any a partial apply would
	// help nothing, and is not made.
	Candidates []string
	// NotYet says what has to happen first; empty when the tier can be freed now.
	NotYet string
}

// Planned is an object to be applied and the kinds that it brings.
type Planned struct {
	Origin Origin
	Brings []schema.GroupVersionKind
}

// Plan says for every tier that lacks kinds what to do about it.
type Plan struct {
	// Tiers are in tier order; only those that lack kinds.
	Tiers []TierPlan
}

// PlanOptions is what else a plan may know. The zero value knows nothing more.
type PlanOptions struct {
	// Snapshot is the live state of the tiers. Without it every tier counts as waiting for nothing.
	Snapshot flux.Snapshot
	// Rendered are charts that were rendered.
	Rendered *Rendered
	// Rules are Flux's rules; nil is Flux as it is shipped.
	Rules *flux.Rules
	// Providers saves computing them again; nil computes them.
	Providers []Provider
}

// Stuck reports whether no pass of a tier can succeed unless something is applied ahead of it.
func (p Plan) Stuck(tier tiers.Key) bool {
	t, ok := p.Of(tier)
	return ok && t.stuck()
}

// Of returns the plan for one tier; ok is false for a tier that lacks nothing.
func (p Plan) Of(tier tiers.Key) (plan TierPlan, ok bool) {
	i := slices.IndexFunc(p.Tiers, func(t TierPlan) bool { return t.Tier == tier })
	if i < 0 {
		return TierPlan{}, false
	}
	return p.Tiers[i], true
}

func (t TierPlan) stuck() bool { return t.Partial || len(t.Rounds) > 0 }

// NewPlan compares what the tiers need with what a cluster serves. It asks nobody and changes
// nothing. The graph must have been built with objects.
func NewPlan(ctx context.Context, graph *tiers.Graph, served *Served, catalogue *Catalogue, opts PlanOptions) Plan {
	providers := opts.Providers
	if providers == nil {
		providers = Providers(graph, catalogue, served, opts.Rendered)
	}
	if opts.Rules == nil {
		opts.Rules = new(flux.Rules)
	}
	planner := &planner{ctx: ctx, graph: graph, served: served, opts: opts, providers: providers, order: newOrder(graph)}
	var plan Plan
	for _, t := range graph.Tiers {
		if tp, lacks := planner.tier(t); lacks {
			plan.Tiers = append(plan.Tiers, tp)
		}
	}
	return plan
}

type planner struct {
	ctx       context.Context
	graph     *tiers.Graph
	served    *Served
	opts      PlanOptions
	providers []Provider
	order     order
}

func (p *planner) tier(t *tiers.Tier) (TierPlan, bool) {
	if t.Kustomization.Spec.KubeConfig != nil {
		return TierPlan{}, false // its objects go to another cluster, of which we know nothing
	}
	tp := TierPlan{Tier: t.Key, Missing: p.missing(t)}
	if len(tp.Missing) == 0 {
		return tp, false
	}
	if len(tp.Unknown()) > 0 {
		tp.Candidates = p.candidates(t)
	}
	if slices.ContainsFunc(tp.Missing, func(m Missing) bool { return m.Verdict == Deadlocked }) {
		p.plan(t, &tp)
	} else {
		tp.Partial = len(tp.Candidates) > 0 && failedForUnknown(p.opts.Snapshot.Kustomizations[t.Key], tp.Missing)
	}
	if tp.stuck() && tp.NotYet == "" {
		tp.NotYet = p.waitsFor(t)
	}
	return tp, true
}

// missing lists the kinds that a tier needs and the cluster lacks, sorted by group and kind.
func (p *planner) missing(t *tiers.Tier) []Missing {
	var all []Missing
	for _, provider := range p.providers {
		uses := map[string][]Use{}
		for _, u := range provider.Uses {
			if u.Tier == t.Key {
				uses[u.Version] = append(uses[u.Version], u)
			}
		}
		for _, version := range provider.Versions {
			gvk := provider.WithVersion(version)
			if len(uses[version]) > 0 && !p.served.Has(gvk) {
				all = append(all, p.judge(t, provider, Missing{GroupVersionKind: gvk, Uses: uses[version]}))
			}
		}
	}
	return all
}

// judge picks the most hopeful of all things that bring a kind.
func (p *planner) judge(t *tiers.Tier, provider Provider, m Missing) Missing {
	if reason := p.served.Failed(m.GroupVersion()); reason != "" {
		m.Verdict, m.Reason = Unreachable, reason
		return m
	}
	ranks := []Verdict{FluxWill, Deadlocked, Absent, NotKnown}
	best := len(ranks)
	for _, origin := range provider.Origins {
		verdict, reason := p.weigh(t, origin, m)
		if rank := slices.Index(ranks, verdict); rank < best {
			best, m.Verdict, m.Reason, m.Origin = rank, verdict, reason, origin
		}
	}
	if m.Verdict == NotKnown && provider.Hint != "" {
		m.Reason = provider.Hint
	}
	others := p.served.Versions(m.GroupKind())
	if len(others) > 0 && m.Verdict != FluxWill {
		m.Verdict = OtherVersion
		m.Reason = fmt.Sprintf("the cluster serves %s, git uses %s", strings.Join(others, ", "), m.Version)
	}
	return m
}

func (p *planner) weigh(t *tiers.Tier, o Origin, m Missing) (Verdict, string) {
	switch {
	case o.Class == FromBuiltin:
		if !slices.Contains(o.Versions, m.Version) {
			return Absent, fmt.Sprintf("Kubernetes does not serve it in version %s; it serves %s", m.Version, strings.Join(o.Versions, ", "))
		}
		return Absent, "Kubernetes serves it, but not this cluster: the version is older, or an API is switched off"
	case o.Class == FromPlatform:
		return Absent, o.Name + " brings it, and this cluster does not have it"
	case o.Class == FromUnknown || o.Object.Unstructured == nil:
		return NotKnown, "nothing in git or in the catalogue brings it"
	case o.Suspended:
		return NotKnown, o.Object.ID() + " brings it, and git keeps that suspended"
	case o.Versions != nil && !slices.Contains(o.Versions, m.Version):
		return NotKnown, fmt.Sprintf("%s serves %s, not %s", o.Object.ID(), strings.Join(o.Versions, ", "), m.Version)
	}
	return p.position(t, o, m)
}

// position decides by where in the order the object that brings a kind stands.
func (p *planner) position(t *tiers.Tier, o Origin, m Missing) (Verdict, string) {
	where := o.Object.ID()
	switch {
	case o.Tier == t.Key && o.Stage < m.Uses[0].Stage:
		return FluxWill, where + " is applied in an earlier stage of the same pass"
	case o.Tier == t.Key:
		return Deadlocked, where + " is in the same pass, which Flux aborts because the kind is missing"
	case p.order.after(o.Tier, t.Key):
		return Deadlocked, fmt.Sprintf("%s is in %s, which comes after this tier", where, o.Tier)
	case p.order.after(t.Key, o.Tier):
		return FluxWill, fmt.Sprintf("%s is in %s, which comes before this tier", where, o.Tier)
	}
	return FluxWill, fmt.Sprintf("%s is in %s; nothing orders the two, so that Flux retries until it is there", where, o.Tier)
}

// plan orders the triggers into rounds.
func (p *planner) plan(t *tiers.Tier, tp *TierPlan) {
	served := p.served.With(ownDefinitions(t.Key, tp.Missing)...)
	var waiting []Missing
	for _, m := range tp.Missing {
		if m.Verdict == Deadlocked {
			if p.operatorInside(t, m.Origin) {
				tp.Partial = true
			}
			waiting = append(waiting, m)
		}
	}
	for len(waiting) > 0 {
		round, rest := nextRound(waiting, served)
		if len(round) == 0 {
			break
		}
		tp.Rounds = append(tp.Rounds, round)
		for _, planned := range round {
			served = served.With(planned.Brings...)
		}
		waiting = rest
	}
	if len(waiting) > 0 && !tp.Partial {
		p.explainWaiting(tp, waiting)
	}
	if tp.Partial {
		tp.Rounds = nil
	}
}

// ownDefinitions are the missing kinds whose CRD is in the tier itself: it is applied along with the
// triggers of that kind.
func ownDefinitions(tier tiers.Key, missing []Missing) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, m := range missing {
		if m.Verdict == FluxWill && m.Origin.Class == FromGit && m.Origin.Tier == tier {
			kinds = append(kinds, m.GroupVersionKind)
		}
	}
	return kinds
}

// explainWaiting says which trigger cannot be applied yet because its own kind is missing.
func (p *planner) explainWaiting(tp *TierPlan, waiting []Missing) {
	gvk := waiting[0].Origin.Object.GroupVersionKind()
	tp.NotYet = fmt.Sprintf("%s: its own kind is not served yet", waiting[0].Origin.Object.ID())
	for _, m := range tp.Missing {
		if m.GroupVersionKind == gvk && m.Verdict == NotKnown {
			tp.NotYet = fmt.Sprintf("%s: its own kind is missing and nothing is known to bring it", waiting[0].Origin.Object.ID())
		}
	}
	if len(tp.Rounds) == 0 {
		tp.Rounds = [][]Planned{plannedOf(waiting)}
	}
}

// nextRound takes the triggers whose own kind is served.
func nextRound(waiting []Missing, served *Served) (round []Planned, rest []Missing) {
	var now []Missing
	for _, m := range waiting {
		if served.Has(m.Origin.Object.GroupVersionKind()) {
			now = append(now, m)
		} else {
			rest = append(rest, m)
		}
	}
	return plannedOf(now), rest
}

// plannedOf groups missing kinds by the object that brings them.
func plannedOf(missing []Missing) []Planned {
	var planned []Planned
	for _, m := range missing {
		i := slices.IndexFunc(planned, func(q Planned) bool {
			return q.Origin.Tier == m.Origin.Tier && keyOf(q.Origin.Object) == keyOf(m.Origin.Object)
		})
		if i < 0 {
			planned, i = append(planned, Planned{Origin: m.Origin}), len(planned)
		}
		planned[i].Brings = append(planned[i].Brings, m.GroupVersionKind)
	}
	return planned
}

// operatorInside reports whether what answers a trigger is part of the same pass, so that the
// trigger alone would wait for ever. Only workloads and releases that the catalogue names count.
func (p *planner) operatorInside(t *tiers.Tier, o Origin) bool {
	if o.Tier != t.Key || o.Operator == nil {
		return false
	}
	if o.Startup {
		// A workload needs its account, its configuration, its rights. A release brings its own.
		return isWorkload(o.Object)
	}
	return slices.ContainsFunc(t.Objects, o.Operator.Operator.runsWorkload)
}

// waitsFor names the first dependency that is not ready, "" if Flux would start a pass now.
func (p *planner) waitsFor(t *tiers.Tier) string {
	if p.opts.Snapshot.Kustomizations == nil {
		return ""
	}
	live := p.opts.Snapshot.Kustomizations[t.Key]
	if live == nil {
		return fmt.Sprintf("Kustomization/%s is not on the cluster yet", t.Key)
	}
	for _, d := range p.opts.Rules.Dependencies(p.ctx, live, p.opts.Snapshot) {
		if !d.Ready() {
			return d.Message
		}
	}
	return ""
}

// order answers which tier comes after which.
type order struct {
	before map[tiers.Key]map[tiers.Key]bool
}

func newOrder(graph *tiers.Graph) order {
	needs := map[tiers.Key][]tiers.Key{}
	for _, e := range graph.Edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	o := order{before: map[tiers.Key]map[tiers.Key]bool{}}
	for _, t := range graph.Tiers {
		seen := map[tiers.Key]bool{}
		queue := slices.Clone(needs[t.Key])
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if !seen[next] {
				seen[next] = true
				queue = append(queue, needs[next]...)
			}
		}
		o.before[t.Key] = seen
	}
	return o
}

// after reports whether later needs earlier, by any number of edges.
func (o order) after(later, earlier tiers.Key) bool { return o.before[later][earlier] }
