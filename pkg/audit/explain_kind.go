package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// kindFindings words the kinds that can never become known: one finding a tier and provider.
func (r *replay) kindFindings(c cause) []Finding {
	type key struct {
		tier     int
		provider *item
	}
	var order []key
	groups := map[key][]stuckOn{}
	supplies := map[key]supply{}
	for _, b := range c.blockers {
		if b.kind != byKind {
			continue
		}
		s := r.chosen(c, b)
		k := key{b.tier, s.item}
		if _, ok := groups[k]; !ok {
			order = append(order, k)
			supplies[k] = s
		}
		groups[k] = append(groups[k], b)
	}
	var out []Finding
	for _, k := range order {
		out = append(out, r.kindFinding(c, groups[k], supplies[k]))
	}
	return out
}

// chosen is the supply to blame: the one in the same pass, or else one that is itself held up.
func (r *replay) chosen(c cause, b stuckOn) supply {
	list := r.supplies[b.what]
	for _, s := range list {
		if s.tier == b.tier {
			return s
		}
	}
	for _, s := range list {
		if slices.Contains(c.members, s.tier) {
			return s
		}
	}
	return list[0]
}

func (r *replay) kindFinding(c cause, group []stuckOn, s supply) Finding {
	i := group[0].tier
	var items []*item
	var kinds []string
	for _, b := range group {
		items = append(items, b.item)
		if k := b.item.gk.String(); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	f := r.at(r.kindRule(c, i, items[0], s), i, items)
	f.Evidence, f.Reference = s.Evidence, reference(s.Origin)
	if !s.sure {
		f.Severity = tiers.Warning
	}
	what := words(f.Objects)
	t := r.tiers[i]
	provider := "nothing"
	if s.item != nil {
		provider = s.item.ID()
		f.Related = append(f.Related, r.locationOf(s.item, provider))
	}
	switch f.Rule {
	case samePassSecondOrder:
		f.Message = fmt.Sprintf("%s can never be applied: %s creates %s only after %s, which is in the same pass", what, operator(s), kindWords(items), provider)
	case constraintBesideTemplate:
		f.Message = fmt.Sprintf("%s can never be applied: %s can exist only after %s, its template, which is in the same pass", what, kindWords(items), provider)
	case samePassChart, classBeforeChart:
		if s.Startup {
			f.Message = fmt.Sprintf("%s can never be applied: %s creates %s once it runs, and %s, which runs it, is in the same pass", what, operator(s), kindWords(items), provider)
			break
		}
		f.Message = fmt.Sprintf("%s can never be applied: %s %s with the chart of %s, which is in the same pass", what, kindWords(items), come(items), provider)
	case providerDownstream:
		f.Message = fmt.Sprintf("%s can never be applied: %s %s with %s in %s, which can come up only after %s", what, kindWords(items), come(items), provider, r.tiers[s.tier].Key, t.Key)
		f.Related = append(f.Related, r.pathBack(c, s.tier, i)...)
	default:
		f.Message = fmt.Sprintf("%s can never be applied: %s %s with %s, which can never run", what, kindWords(items), come(items), provider)
	}
	f.Cause = r.kindCause(f.Rule, t, items[0], provider, s)
	f.Fix, f.FixYAML = r.kindFix(f.Rule, i, items, s)
	return f
}

func (r *replay) kindRule(c cause, i int, it *item, s supply) string {
	switch {
	case s.tier != i && slices.Contains(c.members, s.tier) && len(c.members) > 1:
		return providerDownstream
	case s.tier != i || s.item != nil && suspendedRelease(r.releases[s.item.ref]):
		return providerNeverRuns
	case s.Class == crds.FromRuntime && isTemplate(s.item):
		return constraintBesideTemplate
	case s.Class == crds.FromRuntime && !isRelease(s.item.gk):
		return samePassSecondOrder
	case it.stage == flux.StageClasses:
		return classBeforeChart
	}
	return samePassChart
}

func suspendedRelease(rel *release) bool { return rel != nil && rel.spec.Spec.Suspend }

// isTemplate reports whether an object defines a kind by itself, so that its instances are what one
// writes beside it: Gatekeeper's templates, Crossplane's definitions, kro's graphs.
func isTemplate(it *item) bool {
	return slices.Contains([]string{"ConstraintTemplate", "CompositeResourceDefinition", "ResourceGraphDefinition"}, it.gk.Kind)
}

// reference says where the catalogue's evidence for an origin can be checked, and how far it was.
func reference(o crds.Origin) string {
	if o.Evidence != crds.EvidenceCatalogue {
		return ""
	}
	return strings.TrimSpace(string(o.Reference.Grade) + " " + o.Reference.Link)
}

func operator(s supply) string {
	if s.Name != "" {
		return s.Name
	}
	return "an operator"
}

// kindWords names the kinds of some objects.
func kindWords(items []*item) string {
	kinds := kindNames(items)
	return verb(len(kinds), "kind ", "kinds ") + words(kinds)
}

// come is the verb to go with kindWords.
func come(items []*item) string { return verb(len(kindNames(items)), "comes", "come") }

func kindNames(items []*item) []string {
	var kinds []string
	for _, it := range items {
		if !slices.Contains(kinds, it.gk.Kind) {
			kinds = append(kinds, it.gk.Kind)
		}
	}
	return kinds
}

func (r *replay) kindCause(rule string, t *tiers.Tier, it *item, provider string, s supply) []string {
	never := fmt.Sprintf("an unknown kind ends the pass before anything of its stage is applied: %s is never applied, and so the kind is never created", provider)
	dryRun := "Flux dry-runs every object of a stage before it applies any"
	switch rule {
	case classBeforeChart:
		return []string{fmt.Sprintf("Flux applies kinds that end in Class in a stage of their own, before HelmReleases; %s is a %s", it.ID(), it.gk.Kind), dryRun + "; " + never}
	case samePassSecondOrder, samePassChart, constraintBesideTemplate:
		return []string{dryRun, never}
	case providerDownstream:
		return []string{fmt.Sprintf("%s cannot be applied without the kind, and %s cannot come up without %s", t.Key, r.tiers[s.tier].Key, t.Key)}
	}
	if s.item != nil {
		if rel := r.releases[s.item.ref]; rel != nil {
			var out []string
			for _, b := range r.releaseBlockers(rel) {
				if b.kind == bySuspended {
					out = append(out, fmt.Sprintf("%s is suspended in git", provider))
					continue
				}
				out = append(out, fmt.Sprintf("%s needs %s first", provider, b.what))
			}
			return out
		}
	}
	return nil
}

// pathBack lists the edges by which the provider's tier waits for the tier that needs it.
func (r *replay) pathBack(c cause, from, to int) []Location {
	by := map[int]stuckOn{} // what a tier was reached by; the tier that it holds up is nearer to from
	queue := []int{from}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, b := range c.all {
			if b.tier != i {
				continue
			}
			for _, j := range b.on {
				if _, ok := by[j]; !ok && j != from && slices.Contains(c.members, j) {
					by[j] = b
					queue = append(queue, j)
				}
			}
		}
	}
	var out []Location
	for i := to; i != from; i = by[i].tier {
		b, ok := by[i]
		if !ok {
			return nil
		}
		out = append(out, r.edge(b, i))
	}
	slices.Reverse(out)
	return out
}

// edge says why a tier waits for another one, and where that is written.
func (r *replay) edge(b stuckOn, on int) Location {
	at := r.dependencyAt(r.tiers[b.tier], r.tiers[on].Key)
	why := ""
	switch b.kind {
	case byParent:
		why = ", which creates it"
	case byKind:
		why = fmt.Sprintf(": %s needs its kind", b.item.ID())
		at = r.locationOf(b.item, "")
	case byUse, byNamespace, byAccount, byRelease:
		why = fmt.Sprintf(": %s needs %s", b.item.ID(), b.what)
		at = r.locationOf(b.item, "")
	case byInput, bySource:
		why = fmt.Sprintf(", which applies %s", b.what)
		switch {
		case len(b.lacks) > 0:
			why = fmt.Sprintf(": %s is made only once %s is there", b.what, b.lacks[0])
		case len(r.byRef[b.what]) == 0 && len(r.made[b.what]) > 0:
			why = fmt.Sprintf(", which applies what %s is made from", b.what)
		}
	case byHealth:
		why = ", for whose health it waits"
	}
	at.Note = fmt.Sprintf("%s needs %s%s", r.tiers[b.tier].Key, r.tiers[on].Key, why)
	return at
}

// kindFix is the smallest change that orders the kind before its objects.
func (r *replay) kindFix(rule string, i int, items []*item, s supply) (string, string) {
	t := r.tiers[i]
	what := words(ids(items))
	switch rule {
	case samePassSecondOrder, constraintBesideTemplate, samePassChart, classBeforeChart:
		name := tierName(t, s, rule)
		if t.Parent == nil {
			return fmt.Sprintf("move %s (%s) into a tier of its own with wait: true, and %s into another that depends on it", s.item.ID(), place(s.item), what),
				tierManifest(t, name, strings.TrimSuffix(name, "-config"), "./"+name)
		}
		fix := fmt.Sprintf("move %s into a tier of %s own that depends on %s", what, verb(len(items), "its", "their"), t.Key)
		if watches(t, s.item) {
			fix += ", which waits"
		} else {
			until := s.item.ID() + " is healthy"
			if isRelease(s.item.gk) {
				until = "the kind exists"
			}
			fix += fmt.Sprintf("; and %s, so that it is Ready only once %s", r.awaiting(s.item), until)
		}
		if t.Kustomization.Spec.SourceRef.Kind == "ExternalArtifact" {
			fix += "; the generator of its artifact has to copy the new folder too"
		}
		return fix, tierManifest(t, name, t.Name, "./"+strings.TrimPrefix(siblingDir(t, name), "./"))
	case providerDownstream:
		return fmt.Sprintf("move %s into a tier that depends on %s, or move %s (%s) into a tier that comes before %s",
			what, r.tiers[s.tier].Key, s.item.ID(), place(s.item), t.Key), ""
	}
	return fmt.Sprintf("let %s run, or remove %s", s.item.ID(), what), ""
}

func ids(items []*item) []string {
	var out []string
	for _, it := range items {
		out = append(out, it.ID())
	}
	return out
}

func place(it *item) string {
	if it.File == "" {
		return "made by a generator"
	}
	return it.File
}

// watches reports whether a tier becomes Ready only after one of its objects is healthy.
func watches(t *tiers.Tier, it *item) bool {
	return tiers.Watches(t, it.gk.Group, it.gk.Kind, tiers.Key{Namespace: it.GetNamespace(), Name: it.GetName()})
}

// tierName proposes a name for the tier to split off.
func tierName(t *tiers.Tier, s supply, rule string) string {
	switch {
	case rule == samePassSecondOrder || rule == constraintBesideTemplate:
		suffix := strings.ToLower(s.item.gk.Kind)
		if rule == constraintBesideTemplate {
			suffix = "instances"
		}
		return t.Name + "-" + suffix
	case t.Parent == nil:
		return s.item.GetName() + "-config"
	}
	return t.Name + "-config"
}

func siblingDir(t *tiers.Tier, name string) string {
	dir := strings.TrimSuffix(t.Kustomization.Spec.Path, "/")
	if n := strings.LastIndex(dir, "/"); n >= 0 {
		return dir[:n+1] + name
	}
	return name
}
