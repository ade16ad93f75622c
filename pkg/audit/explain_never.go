package audit

import (
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// releaseNever words a tier that waits for a release which helm-controller can never install.
func (r *replay) releaseNever(b stuckOn) Finding {
	f := r.at(releaseNeverHealthy, b.tier, []*item{b.item})
	t := r.tiers[b.tier]
	f.Message = fmt.Sprintf("%s waits for %s, which can never be installed", t.Key, b.item.ID())
	f.Fix = fmt.Sprintf("let %s come after what it needs, or take it out of what %s waits for", b.item.ID(), t.Key)
	if rel := r.releases[b.what]; rel != nil {
		f.Cause, f.Fix = r.releaseCause(rel, f.Fix)
	}
	return f
}

// releaseCause says what a release lacks. Where nothing makes it, the way out is another one.
func (r *replay) releaseCause(rel *release, fix string) ([]string, string) {
	var cause []string
	for _, b := range r.releaseBlockers(rel) {
		switch b.kind {
		case byMissing:
			cause = append(cause, fmt.Sprintf("the release needs %s, which nothing in git makes", b.what))
			fix = fmt.Sprintf("correct the reference to %s in %s, or bring what it names", b.what, rel.ID())
			if near := r.namesake(b.what); near != nil {
				fix += fmt.Sprintf("; did you mean %s? A reference without a namespace means the release's own", near.ID())
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

// stalled words a tier of which an expression does not compile.
func (r *replay) stalled(b stuckOn) Finding {
	t := r.tiers[b.tier]
	f := r.at(invalidExpression, b.tier, nil)
	f.Message = fmt.Sprintf("%s can never be reconciled: %s", t.Key, shorten(strings.Join(strings.Fields(b.err.Error()), " ")))
	f.Cause = []string{"kustomize-controller stalls a Kustomization with an expression that does not compile, and does not try again before git changes it"}
	f.Fix = "correct the expression: it has to be CEL, and a readyExpr true or false for any dep and self"
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
	src := flux.SourceOf(r.tiers[i].Kustomization)
	return what == ref{group: sourcev1.GroupVersion.Group, kind: src.Kind, namespace: src.Namespace, name: src.Name}
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
