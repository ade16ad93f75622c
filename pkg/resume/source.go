package resume

import (
	"cmp"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// sources lists the sources that the selected tiers and their releases read, sorted.
func (c *deciding) sources() []flux.SourceRef {
	seen := make(map[flux.SourceRef]bool)
	for key := range c.selected {
		k := c.s.Kustomizations[key]
		if k == nil {
			k = c.tiers[key].Kustomization
		}
		seen[flux.SourceOf(k)] = true
	}
	for _, h := range c.releases() {
		if ref, ok := chartSource(h); ok && c.s.Sources[ref] != nil {
			seen[ref] = true
		}
	}
	refs := make([]flux.SourceRef, 0, len(seen))
	for ref := range seen {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b flux.SourceRef) int { return cmp.Compare(a.String(), b.String()) })
	return refs
}

// source decides about one source. Sources depend on nothing.
func (c *deciding) source(ref flux.SourceRef) *Standing {
	src := c.s.Sources[ref]
	st := &Standing{Object: sourceObject(ref), Status: flux.ClassifySource(src), Selected: true, Phase: Working}
	if src != nil {
		c.begin(st.Object, src.Revision)
	}
	switch {
	case src == nil:
		c.absentSource(st, ref)
	case src.Suspended && src.SuspendedInGit && !c.opts.IncludeSuspendedInGit:
		st.Phase, st.Cause = Held, CauseSuspended
	case c.inFlight(st.Object):
	case src.Suspended:
		c.act(st.Object, Resume, WhySuspended)
	case !flux.Answered(src.RequestedAt, src.LastHandledReconcile):
	case st.Status.State == flux.Ready:
		st.Phase = Settled
	case st.Status.State == flux.Final:
		st.Phase, st.Cause = Stopped, CauseFailed
	case st.Status.State == flux.MayHeal:
		st.Phase = Failing
		c.heal(st.Object, st.Status)
	case st.Status.Reason == flux.ReasonNoStatus && src.HasFinalizer && c.justFound(st.Object):
		c.act(st.Object, Nudge, WhyNew)
	}
	c.limit(st, sourceLimit)
	return st
}

// absentSource looks at a source that does not exist: a tier of the graph may apply it.
func (c *deciding) absentSource(st *Standing, ref flux.SourceRef) {
	applier, ok := c.appliers[ref]
	if !ok {
		st.Phase, st.Cause = Stopped, CauseAbsent
		return
	}
	st.Phase = Blocked
	st.Blockers = []Blocker{{Object: tierObject(applier), Link: LinkParent}}
	if k := c.s.Kustomizations[applier]; k != nil && flux.Settled(k, c.s) {
		c.overdue(st)
	}
}

// sourceBlockers hold a tier until its source is there, resumed and fetched. A source that fails
// with an artifact at hand holds nobody: Flux goes on with what it has.
func (c *deciding) sourceBlockers(ref flux.SourceRef) []Blocker {
	b := Blocker{Object: sourceObject(ref), Link: LinkSource}
	src := c.s.Sources[ref]
	switch {
	case src == nil:
		b.Message = "Source '" + ref.String() + "' not found"
		return []Blocker{b}
	case src.Revision == "":
		b.Message = "Source artifact not found"
		return []Blocker{b}
	}
	resumed := src.Suspended && !src.SuspendedInGit || src.Suspended && c.opts.IncludeSuspendedInGit
	if st := c.index[b.Object]; st != nil && st.Phase != Stopped &&
		(resumed || c.inFlight(b.Object) || !src.Suspended && !flux.Answered(src.RequestedAt, src.LastHandledReconcile)) {
		b.Message = "Source '" + ref.String() + "' is being fetched"
		return []Blocker{b}
	}
	return nil
}

// releases lists the HelmReleases that the selected tiers have applied, sorted.
func (c *deciding) releases() []*helmv2.HelmRelease {
	var releases []*helmv2.HelmRelease
	for _, h := range c.s.HelmReleases {
		if owner, ok := ownerOf(h); ok && c.selected[owner] {
			releases = append(releases, h)
		}
	}
	slices.SortFunc(releases, func(a, b *helmv2.HelmRelease) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return releases
}

// ownerOf returns the tier that applied a release, from the labels that kustomize-controller sets.
func ownerOf(h *helmv2.HelmRelease) (tiers.Key, bool) {
	const group = "kustomize.toolkit.fluxcd.io"
	name := h.Labels[group+"/name"]
	return tiers.Key{Namespace: h.Labels[group+"/namespace"], Name: name}, name != ""
}

// release decides about one HelmRelease: it is resumed and nudged on its own dependencies. Failed
// releases are helm-controller's to retry.
func (c *deciding) release(h *helmv2.HelmRelease) *Standing {
	st := &Standing{Object: releaseObject(flux.Key{Namespace: h.Namespace, Name: h.Name}), Status: flux.ClassifyHelm(h), Selected: true, Phase: Working}
	switch {
	case h.DeletionTimestamp != nil:
		st.Phase, st.Cause = Stopped, CauseTerminating
	case h.Spec.Suspend && flux.SuspendedInGit(h, true) && !c.opts.IncludeSuspendedInGit:
		st.Phase, st.Cause = Held, CauseSuspended
	case c.inFlight(st.Object):
	case h.Spec.Suspend:
		c.suspendedRelease(st, h)
	case st.Status.State == flux.Ready:
		st.Phase = Settled
	case st.Status.Reconciling && st.Status.Reason != meta.DependencyNotReadyReason,
		!flux.Answered(h.Annotations[flux.RequestAnnotation], h.Status.LastHandledReconcileAt):
	case flux.RetriesExhausted(h) && c.opts.ForceHelm && !c.notes[st.Object].reset:
		c.act(st.Object, Force, WhyReset)
	case flux.RetriesExhausted(h) && c.opts.ResetHelm && !c.notes[st.Object].reset:
		c.act(st.Object, Reset, WhyReset)
	case st.Status.State == flux.Final:
		st.Phase, st.Cause = Stopped, CauseFailed
	case st.Status.Reason == meta.DependencyNotReadyReason:
		if st.Blockers = c.releaseBlockers(h); len(st.Blockers) > 0 {
			st.Phase = Blocked
		} else {
			c.turnedAway(st.Object)
		}
	case st.Status.State == flux.MayHeal:
		st.Phase = Failing
	}
	c.limit(st, 2*h.GetTimeout().Duration+passLimit)
	return st
}

func (c *deciding) suspendedRelease(st *Standing, h *helmv2.HelmRelease) {
	st.Blockers = c.releaseBlockers(h)
	if owner, ok := ownerOf(h); ok {
		if k := c.s.Kustomizations[owner]; k != nil && !c.passed(owner, k) {
			st.Blockers = append(st.Blockers, Blocker{Object: tierObject(owner), Link: LinkParent})
		}
	}
	if ref, ok := chartSource(h); ok && c.s.Sources[ref] != nil && c.s.Sources[ref].Suspended {
		if source := c.index[sourceObject(ref)]; source != nil && source.Phase == Working {
			st.Blockers = append(st.Blockers, Blocker{Object: source.Object, Link: LinkSource})
		}
	}
	if len(st.Blockers) > 0 {
		st.Phase = Blocked
		return
	}
	c.act(st.Object, Resume, WhySuspended)
}

// releaseBlockers are the dependencies that Flux would not go past, and the suspended ones that are
// to be resumed first.
func (c *deciding) releaseBlockers(h *helmv2.HelmRelease) []Blocker {
	var blockers []Blocker
	for _, dep := range c.opts.Rules.HelmDependencies(c.ctx, h, c.s) {
		b := Blocker{Object: releaseObject(dep.Key), Link: LinkDependency, Message: dep.Message}
		switch live := c.s.HelmReleases[dep.Key]; {
		case !dep.Ready():
			blockers = append(blockers, b)
		case live.Spec.Suspend && (c.opts.IncludeSuspendedInGit || !flux.SuspendedInGit(live, true)):
			if owner, ok := ownerOf(live); ok && c.selected[owner] {
				b.Message = "dependency '" + dep.Key.String() + "' is suspended"
				blockers = append(blockers, b)
			}
		}
	}
	return blockers
}

// chartSource names the source that a release's chart comes from.
func chartSource(h *helmv2.HelmRelease) (flux.SourceRef, bool) {
	var ref flux.SourceRef
	switch {
	case h.Spec.ChartRef != nil:
		ref = flux.SourceRef{Kind: h.Spec.ChartRef.Kind, Namespace: h.Spec.ChartRef.Namespace, Name: h.Spec.ChartRef.Name}
	case h.Spec.Chart != nil:
		from := h.Spec.Chart.Spec.SourceRef
		ref = flux.SourceRef{Kind: from.Kind, Namespace: from.Namespace, Name: from.Name}
	default:
		return ref, false
	}
	if ref.Namespace == "" {
		ref.Namespace = h.Namespace
	}
	return ref, ref.Kind != sourcev1.HelmChartKind
}

// The limits that Flux itself has no setting for.
const (
	// passLimit is what a pass takes at most beside its health check: two stages of an apply are
	// waited for up to a minute each (DefaultApplyOptions in fluxcd/pkg's ssa/manager_apply.go).
	passLimit   = 2 * time.Minute
	sourceLimit = 2 * time.Minute
)

// TierLimit is how long a tier may take from the moment that nothing keeps it from a pass: two
// passes of Flux's own timeout where it checks health, so that one failure can heal, or three
// minutes where it only applies.
func TierLimit(k *kustomizev1.Kustomization) time.Duration {
	if flux.Gates(k) {
		return 2*k.GetTimeout() + passLimit
	}
	return passLimit + time.Minute
}

// TotalLimit is how long a graph may take: the tier limits along the chain where they add up to
// most, and never less than five minutes. tierTimeout is the limit of every tier; 0 is each one's
// [TierLimit].
func TotalLimit(g *tiers.Graph, tierTimeout time.Duration) time.Duration {
	ends := make(map[tiers.Key]time.Duration, len(g.Tiers))
	needs := make(map[tiers.Key][]tiers.Key)
	for _, e := range g.Edges {
		needs[e.From] = append(needs[e.From], e.To)
	}
	total := 5 * time.Minute
	for _, t := range g.Tiers {
		var start time.Duration
		for _, need := range slices.Concat(needs[t.Key], t.DependsOn) {
			start = max(start, ends[need])
		}
		limit := tierTimeout
		if limit <= 0 {
			limit = TierLimit(t.Kustomization)
		}
		ends[t.Key] = start + limit
		total = max(total, ends[t.Key]+sourceLimit)
	}
	return total
}

func (c *deciding) tierLimit(k *kustomizev1.Kustomization) time.Duration {
	if c.opts.TierTimeout > 0 {
		return c.opts.TierTimeout
	}
	return TierLimit(k)
}
