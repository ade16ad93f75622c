package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// findings puts one cause into words: one finding a fault, however many objects share it.
func (r *replay) findings(c cause) []Finding {
	var out []Finding
	out = append(out, r.kindFindings(c)...)
	for _, group := range r.groupBlockers(r.firstReleases(c.blockers)) {
		if f, ok := r.explain(c, group); ok {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		out = append(out, r.circle(c))
	}
	for i := range out {
		r.addBlast(&out[i], c)
		r.doubt(&out[i], c)
	}
	return out
}

// groupBlockers joins the blockers that differ only in the object that stumbles. Kinds are grouped
// by their provider elsewhere, and edges of a circle as a whole.
func (r *replay) groupBlockers(list []stuckOn) [][]stuckOn {
	type key struct {
		tier int
		kind blockerKind
		what ref
	}
	at := map[key]int{}
	var out [][]stuckOn
	for _, b := range list {
		if b.kind == byKind || b.kind == byDependency || b.kind == byHealth || b.kind == byParent {
			continue
		}
		k := key{b.tier, b.kind, b.what}
		if b.kind == byRelease {
			k.what = r.lacks(b.what)
		}
		if b.kind == bySuspended && b.item == nil {
			k.tier = -1 // one finding a suspended tier, whoever depends on it
		}
		if b.kind == byInput && b.item == nil && len(r.made[b.what]) > 0 {
			k.tier = -1 // and one an object that is made, whoever reads it
		}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], b)
	}
	return out
}

// explain words one group of blockers of the same tier, kind and target.
func (r *replay) explain(c cause, group []stuckOn) (Finding, bool) {
	b := group[0]
	switch b.kind {
	case byMissing:
		return r.missing(b), true
	case bySuspended:
		return r.suspended(group), true
	case byBuild:
		return r.unbuildable(b), true
	case bySOPS:
		return r.encrypted(b), true
	case byNamespace:
		return r.namespaceNever(c, group), true
	case byAccount:
		return r.accountNever(c, group), true
	case byInput, bySource:
		return r.inputNever(group), true
	case byRelease:
		return r.releaseNever(group), true
	case byUse:
		return r.useNever(b), true
	case byAccess:
		return r.forbidden(b), true
	case byExpression:
		return r.stalled(group), true
	case byScope:
		return r.homeless(group), true
	case byCheck:
		return r.checkOfNothing(b), true
	}
	return Finding{}, false
}

func (w *world) at(rule string, i int, items []*item) Finding {
	t := w.tiers[i]
	f := Finding{Rule: rule, Severity: severityOf(rule), Tier: t.Key, At: Location{File: t.File, Line: t.Line}, Evidence: crds.EvidenceGit}
	if len(items) > 0 {
		f.Object = items[0].ID()
		f.At = w.locationOf(items[0], "")
		if f.At.File == "" {
			f.At = Location{File: t.File, Line: t.Line}
		}
		for _, it := range items {
			f.Objects = append(f.Objects, it.ID())
			if at := w.locationOf(it, it.ID()); at.File != "" && !samePlace(at, f.At) {
				f.Related = append(f.Related, at)
			}
		}
	}
	return f
}

func (w *world) locationOf(it *item, note string) Location {
	line := it.Line
	if line == 0 && it.File != "" && w.lines != nil {
		line = w.lines(*it.Object)
	}
	return Location{File: it.File, Line: line, Note: note}
}

func samePlace(a, b Location) bool { return a.File == b.File && a.Line == b.Line }

// doubt makes a warning of an error that rests on what git does not hold, where something outside of
// what was read may hold it.
func (r *replay) doubt(f *Finding, c cause) {
	if f.Severity != tiers.Error {
		return
	}
	if why := r.doubtAbout(*f, c); why != "" {
		f.Severity = tiers.Warning
		f.Cause = append(f.Cause, "not certain: "+why)
	}
}

// doubtAbout says why an error may be none; empty when it is certain.
func (r *replay) doubtAbout(f Finding, c cause) string {
	absence := []string{
		samePassSecondOrder, constraintBesideTemplate, samePassChart, classBeforeChart, providerDownstream, providerNeverRuns,
		samePassNamespace, namespaceDownstream, samePassAccount, ownInput, inputDownstream, useDownstream,
	}
	if !slices.Contains(absence, f.Rule) {
		return ""
	}
	for i, t := range r.tiers {
		if t.Opaque != "" && (slices.Contains(c.members, i) || !slices.Contains(c.blocked, i)) {
			return fmt.Sprintf("the objects of %s are not all known (%s)", t.Key, shorten(t.Opaque))
		}
	}
	root := r.tiers[r.index[f.Tier]].Parent == nil
	for _, b := range c.blockers {
		reads := b.kind == byInput || b.kind == bySource
		switch {
		case b.kind == byNamespace && root:
			return fmt.Sprintf("who creates %s by hand may create the namespace as well; if so, declare %s in %s under beforeFlux.objects", f.Tier, b.what, ConfigFile)
		case reads && slices.ContainsFunc(r.byRef[b.what], func(it *item) bool { return it.Encrypted() }):
			return fmt.Sprintf("%s is encrypted in git, and a bootstrap step may apply it first; if one does, declare it in %s under beforeFlux.objects", b.what, ConfigFile)
		case reads && r.fromOutside(b.what):
			return fmt.Sprintf("the values of %s come from outside of git, and a bootstrap step may create it first; if one does, declare it in %s under beforeFlux.objects", b.what, ConfigFile)
		case b.kind == byKind && slices.Contains(f.Objects, b.item.ID()):
			if slices.ContainsFunc(r.supplies[b.what], supply.isNetwork) {
				return "Flux's own pods need a network, so that what brings it is likely to be there before Flux"
			}
			if why := r.stepBefore(b.item); why != "" {
				return why
			}
		}
	}
	return ""
}

// shorten keeps a message to what fits on a few lines.
func shorten(s string) string {
	const most = 240
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func (r *replay) addBlast(f *Finding, c cause) {
	for _, i := range slices.Concat(c.members, c.blocked) {
		if k := r.tiers[i].Key; k != f.Tier && (f.Rule == dependsOnSuspended || slices.Contains(c.blocked, i)) {
			f.Blocked = append(f.Blocked, k)
		}
	}
	for _, t := range r.tiers {
		if slices.Contains(t.DependsOn, f.Tier) && slices.Contains(f.Blocked, t.Key) {
			f.BlockedDirectly++
		}
	}
	slices.SortFunc(f.Blocked, compareKeys)
}

func (r *replay) unbuildable(b stuckOn) Finding {
	p := b.problem
	f := r.at(p.Rule, b.tier, nil)
	if p.File != "" {
		f.At = Location{File: p.File, Line: p.Line}
	}
	f.Message = fmt.Sprintf("%s cannot be built: %s", r.tiers[b.tier].Key, shorten(p.Message))
	if b.item != nil {
		f.Object, f.Objects = b.item.ID(), []string{b.item.ID()}
		f.Message = fmt.Sprintf("%s can never be applied: the API server refuses %s", r.tiers[b.tier].Key, shorten(p.Message))
		f.Fix = "mend the field that the message names"
		return f
	}
	f.Fix = fixOf(*p)
	if more := r.alike(p); len(more) > 0 {
		f.Message += fmt.Sprintf("; and %d more of the kind", len(more))
		for _, other := range more {
			f.Related = append(f.Related, Location{File: other.File, Line: other.Line, Note: shorten(other.Message)})
		}
	}
	return f
}

// alike lists the other problems of a tier that break its build in the same way.
func (w *world) alike(p *tiers.Problem) []tiers.Problem {
	var out []tiers.Problem
	for i := range w.graph.Problems {
		other := &w.graph.Problems[i]
		if other != p && other.Rule == p.Rule && other.Tier == p.Tier && other.Severity == p.Severity {
			out = append(out, *other)
		}
	}
	return out
}

func (r *replay) encrypted(b stuckOn) Finding {
	f := r.at(encryptedWithoutKey, b.tier, []*item{b.item})
	t := r.tiers[b.tier]
	f.Message = fmt.Sprintf("%s is encrypted with SOPS, and %s has no spec.decryption", b.item.ID(), t.Key)
	f.Cause = []string{"kustomize-controller refuses the whole pass before it applies anything: it would write the ciphertext to the cluster"}
	if b.item.Unreadable() { // even its name is ciphertext
		f.Object, f.Objects = "", nil
		f.Message = fmt.Sprintf("a manifest is encrypted with SOPS as a whole, and %s has no spec.decryption", t.Key)
		f.Cause = []string{"what kind of object it is, is ciphertext too: the dry-run fails, and with it the pass"}
	}
	f.Fix = r.decryptionFix(t)
	f.Related = append(f.Related, Location{File: t.File, Line: t.Line, Note: "the tier"})
	return f
}

func (r *replay) forbidden(b stuckOn) Finding {
	f := r.at(crossNamespaceSource, b.tier, nil)
	t := r.tiers[b.tier]
	f.Message = fmt.Sprintf("%s reads %s of another namespace, and the controllers run with --no-cross-namespace-refs", t.Key, b.what)
	f.Cause = []string{"kustomize-controller stalls such a Kustomization with AccessDenied and does not try again"}
	f.Fix = fmt.Sprintf("give namespace %s a source of its own, or move the tier into namespace %s", t.Namespace, b.what.namespace)
	return f
}

func compareKeys(a, b tiers.Key) int { return strings.Compare(a.String(), b.String()) }

// words joins names as prose does, the first few of many.
func words(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
