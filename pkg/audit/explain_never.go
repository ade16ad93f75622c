package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/tiers"
)

// releaseNever words a tier that waits for releases which helm-controller can never install, all for want
// of the same.
func (r *replay) releaseNever(group []stuckOn) Finding {
	var items []*item
	for _, b := range group {
		items = append(items, b.item)
	}
	f := r.at(releaseNeverHealthy, group[0].tier, items)
	t, what := r.tiers[group[0].tier], words(f.Objects)
	f.Message = fmt.Sprintf("%s waits for %s, which can never be installed", t.Key, what)
	f.Fix = fmt.Sprintf("let %s come after what %s, or take %s out of what %s waits for", what, verb(len(items), "it needs", "they need"), verb(len(items), "it", "them"), t.Key)
	if rel := r.releases[group[0].what]; rel != nil {
		f.Cause, f.Fix = r.releaseCause(rel, f.Fix)
	}
	return f
}

// lacks is what a release needs and nothing makes; the release itself where there is no such thing.
func (r *replay) lacks(release ref) ref {
	if rel := r.releases[release]; rel != nil {
		for _, b := range r.releaseBlockers(rel) {
			if b.kind == byMissing {
				return b.what
			}
		}
	}
	return release
}

// idleReleases finds releases that can never be installed although their tiers become Ready without them:
// each lacks what nothing makes, or is part of a circle. One whose first cause is a suspension was meant so.
func (r *replay) idleReleases(all []Finding) []Finding {
	var out []Finding
	for i := range r.tiers {
		groups := map[ref][]*item{}
		var order []ref
		for _, it := range r.items[i] {
			rel := r.releases[it.ref]
			if rel == nil || rel.item != it || !r.present[it.ref] || r.running[it.ref] || !r.first(rel) {
				continue
			}
			if slices.ContainsFunc(all, func(f Finding) bool { return f.Severity == tiers.Error && slices.Contains(f.Objects, it.ID()) }) {
				continue // it is said
			}
			k := r.lacks(it.ref)
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], it)
		}
		for _, k := range order {
			out = append(out, r.idleRelease(i, groups[k]))
		}
	}
	return out
}

func (r *replay) idleRelease(i int, items []*item) Finding {
	f := r.at(releaseNeverHealthy, i, items)
	f.Severity = tiers.Warning
	what := words(f.Objects)
	f.Message = fmt.Sprintf("%s can never be installed; nothing waits for %s, so that %s is Ready all the same", what, verb(len(items), "it", "them"), r.tiers[i].Key)
	f.Cause, f.Fix = r.releaseCause(r.releases[items[0].ref], fmt.Sprintf("let %s come after what %s", what, verb(len(items), "it needs", "they need")))
	return f
}

// first reports whether a release that cannot run is where the trouble begins: nothing makes what it
// needs, or the releases that it waits for wait for it, and it is the first of them by name.
func (r *replay) first(rel *release) bool {
	if slices.ContainsFunc(r.releaseBlockers(rel), func(b blocker) bool { return b.kind == byMissing }) {
		return true
	}
	needs := r.waitedFor(rel)
	for key := range needs {
		if key.String() < rel.ref.String() && r.waitedFor(r.releases[key])[rel.ref] {
			return false
		}
	}
	return needs[rel.ref]
}

// waitedFor lists the releases that a release which cannot run waits for, however indirectly.
func (r *replay) waitedFor(rel *release) map[ref]bool {
	seen := map[ref]bool{}
	queue := []*release{rel}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, b := range r.releaseBlockers(at) {
			if b.kind == byRelease && !seen[b.what] {
				seen[b.what] = true
				queue = append(queue, r.releases[b.what])
			}
		}
	}
	return seen
}

// firstReleases leaves out the releases that only wait for others of the list: of a chain and of a circle
// one is to be explained.
func (r *replay) firstReleases(list []stuckOn) []stuckOn {
	return slices.DeleteFunc(slices.Clone(list), func(b stuckOn) bool {
		rel := r.releases[b.what]
		if b.kind != byRelease || rel == nil || r.first(rel) {
			return false
		}
		return !slices.ContainsFunc(r.releaseBlockers(rel), func(own blocker) bool {
			return own.kind != byRelease || !slices.ContainsFunc(list, func(other stuckOn) bool { return other.what == own.what })
		})
	})
}

// releaseCause says what a release lacks. Where nothing makes it, the way out is another one.
func (r *replay) releaseCause(rel *release, fix string) ([]string, string) {
	var cause []string
	for _, b := range r.releaseBlockers(rel) {
		switch b.kind {
		case byMissing:
			cause = append(cause, fmt.Sprintf("the release needs %s, which nothing in git makes", b.what))
			fix = fmt.Sprintf("correct the reference to %s, or bring what it names", b.what)
			if near := r.namesake(b.what); near != nil {
				fix += fmt.Sprintf("; did you mean %s? A reference without a namespace means the release's own", near.ID())
			}
		case byRelease:
			cause = append(cause, fmt.Sprintf("the release needs %s first", b.what))
			if r.waitedFor(r.releases[b.what])[rel.ref] {
				cause = append(cause, fmt.Sprintf("and %s, in the end, needs %s: a circle", b.what, rel.ID()))
				fix = fmt.Sprintf("remove one entry of dependsOn from the circle of %s and %s", rel.ID(), b.what)
			}
		case bySuspended:
			cause = append(cause, fmt.Sprintf("the release needs %s, which git keeps suspended", b.what))
		default:
			cause = append(cause, fmt.Sprintf("the release needs %s first", b.what))
		}
	}
	return cause, fix
}

// namesake is an object of the same kind and name in another namespace; nil if there is none.
func (w *world) namesake(what ref) *item {
	for i := range w.tiers {
		for _, it := range w.items[i] {
			if it.gk.Kind == what.kind && it.gk.Group == what.group && it.GetName() == what.name && it.ref != what {
				return it
			}
		}
	}
	return nil
}

// stalled words a tier of which an expression does not compile, or says nothing of some objects.
func (r *replay) stalled(group []stuckOn) Finding {
	b := group[0]
	t, why := r.tiers[b.tier], shorten(strings.Join(strings.Fields(b.err.Error()), " "))
	if b.item != nil {
		var items []*item
		for _, g := range group {
			items = append(items, g.item)
		}
		f := r.at(invalidExpression, b.tier, items)
		f.At = Location{File: t.File, Line: t.Line}
		f.Message = fmt.Sprintf("%s can never become Ready: %s", t.Key, why)
		f.Cause = []string{"kustomize-controller evaluates the expression for the objects that it waits for, and what ends in an error never counts as healthy"}
		f.Fix = "correct the expression: its value has to be true or false, of the fields that the object has"
		return f
	}
	f := r.at(invalidExpression, b.tier, nil)
	f.Message = fmt.Sprintf("%s can never be reconciled: %s", t.Key, why)
	f.Cause = []string{"kustomize-controller stalls a Kustomization with an expression that does not compile, and does not try again before git changes it"}
	f.Fix = "correct the expression: it has to be CEL, and a readyExpr true or false for any dep and self"
	return f
}

// homeless words objects without the namespace that their kinds need.
func (r *replay) homeless(group []stuckOn) Finding {
	var items []*item
	for _, b := range group {
		items = append(items, b.item)
	}
	t := r.tiers[group[0].tier]
	f := r.at(noNamespace, group[0].tier, items)
	f.Message = fmt.Sprintf("%s can never be applied: %s no namespace, and there is no default one", words(f.Objects), verb(len(items), "it has", "they have"))
	f.Cause = []string{"kubectl apply takes the namespace of its context; Flux refuses the object in the dry-run, and with it the pass"}
	f.Fix = fmt.Sprintf("write metadata.namespace, or set namespace in the kustomization, or targetNamespace on %s", t.Key)
	return f
}

// checkOfNothing words a tier whose health checks wait for what nothing makes.
func (r *replay) checkOfNothing(b stuckOn) Finding {
	t := r.tiers[b.tier]
	f := r.at(waitsForMissing, b.tier, nil)
	f.Object = b.what.String()
	f.Objects = []string{f.Object}
	f.Message = fmt.Sprintf("%s names %s in healthChecks, which nothing makes", t.Key, b.what)
	f.Cause = []string{fmt.Sprintf("an object that does not exist is never healthy: every health check of %s fails after %s", t.Key, shortDuration(t.Kustomization.GetTimeout()))}
	f.Fix = fmt.Sprintf("correct or remove the entry in healthChecks of %s", t.Key)
	if near := r.namesake(b.what); near != nil {
		f.Fix += fmt.Sprintf("; did you mean %s?", near.ID())
	}
	return f
}

// reads reports whether something is the source of a tier.
func (r *replay) reads(i int, what ref) bool {
	return what == sourceRef(r.tiers[i])
}

func (r *replay) sourceSuspended(b stuckOn) Finding {
	t := r.tiers[b.tier]
	f := r.at(waitsForSuspended, b.tier, nil)
	f.Object = b.item.ID()
	f.Objects = []string{f.Object}
	f.Related = append(f.Related, r.locationOf(b.item, b.item.ID()))
	f.Message = fmt.Sprintf("%s reads %s, which git keeps suspended", t.Key, b.item.ID())
	f.Cause = []string{"a source that is suspended from the start never has an artifact, and without one there is nothing to build"}
	f.Fix = fmt.Sprintf("remove suspend from %s, or suspend the tiers that read it too", b.item.ID())
	return f
}
