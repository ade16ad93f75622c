package audit

import (
	"cmp"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Run audits a graph that was loaded with its objects. It is pure: it reads nothing but its
// arguments, and gives equal results for equal ones.
func Run(g *tiers.Graph, o Options) *Result {
	w := newWorld(g, o)
	r := newReplay(w)
	var all []Finding
	r.run()
	ready, stuck := r.count(), r.down()
	doubts := doubts{r: r, sure: map[tiers.Key]bool{}}
	for _, c := range r.causes() {
		all = append(all, c.findings...)
		doubts.note(c)
	}
	all = append(all, r.idleReleases(all)...)
	told := toldOf(all)
	all = append(all, w.races(told)...)
	all = append(all, slices.DeleteFunc(w.unordered(), told.covers)...)
	all = append(all, w.shared()...)
	all = append(all, w.leaves()...)
	all = append(all, w.tokens()...)
	all = append(all, w.ciphertexts()...)
	all = append(all, w.versions()...)
	all = append(all, w.lacking()...)
	all = append(all, w.problems(all)...)
	countRepeats(all)
	sortFindings(all)
	res := &Result{Tiers: len(g.Tiers), Ready: ready, Stuck: stuck, Unsure: doubts.among(stuck), Kinds: w.kindTable(), Assumed: w.assumptions()}
	// What is left out below is there all the same: an acceptance of it has its use.
	res.Findings, res.Accepted, res.Unused = o.Config.accept(all, o.Now, w.configUse())
	res.Findings, res.Accepted = filter(res.Findings, o), filter(res.Accepted, o)
	settleAdvice(g, res.Findings)
	return res
}

// doubts tells the tiers that stay down for certain from those of which git alone does not tell.
type doubts struct {
	r    *replay
	sure map[tiers.Key]bool
}

// note notes whom a cause keeps down, and whether it does for sure: one of its findings at least weighs
// what its rule weighs.
func (d doubts) note(c cause) {
	sure := slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Severity == severityOf(f.Rule) })
	for _, i := range slices.Concat(c.members, c.blocked) {
		k := d.r.tiers[i].Key
		d.sure[k] = d.sure[k] || sure
	}
}

// among lists those of some tiers that every cause leaves in doubt.
func (d doubts) among(list []tiers.Key) []tiers.Key {
	var out []tiers.Key
	for _, k := range list {
		if sure, ok := d.sure[k]; ok && !sure {
			out = append(out, k)
		}
	}
	return out
}

// told remembers what the replay's findings are about: a tier, and what it does not get. The weaker
// rules say nothing of it a second time.
type told map[[2]string]bool

func toldOf(all []Finding) told {
	out := told{}
	for _, f := range all {
		for _, t := range append(slices.Clone(f.also), f.Tier) {
			for _, at := range f.Related {
				out[[2]string{t.String(), at.Note}] = true
			}
		}
	}
	return out
}

func (t told) covers(f Finding) bool {
	return slices.ContainsFunc(f.Related, func(at Location) bool { return at.Note != "" && t[[2]string{f.Tier.String(), at.Note}] })
}

func filter(all []Finding, o Options) []Finding {
	most := rank(tiers.Info)
	if o.Severity != "" {
		most = rank(o.Severity)
	}
	return slices.DeleteFunc(all, func(f Finding) bool {
		return rank(f.Severity) > most || len(o.Rules) > 0 && !slices.Contains(o.Rules, f.Rule)
	})
}

// kindTable lists every kind that the tiers use.
func (w *world) kindTable() []Kind {
	out := make([]Kind, 0, len(w.providers))
	for _, p := range w.providers {
		o := p.Primary()
		k := Kind{Group: p.Group, Kind: p.Kind, Provider: string(o.Class), Evidence: o.Evidence, Tier: o.Tier, Hint: p.Hint}
		if o.Class == crds.FromRuntime {
			k.Trigger = o.Trigger()
		}
		if o.Class == crds.FromUnknown && w.config.Serves(p.GroupKind) {
			k.Provider = string(crds.FromPlatform)
		}
		for _, u := range p.Uses {
			if !slices.Contains(k.UsedBy, u.Tier) {
				k.UsedBy = append(k.UsedBy, u.Tier)
			}
		}
		out = append(out, k)
	}
	return out
}

// assumptions lists what the replay took to be there because nothing in git makes it.
func (w *world) assumptions() []Assumption {
	byWhat := map[string][]tiers.Key{}
	note := func(what string, i int) {
		if k := w.tiers[i].Key; !slices.Contains(byWhat[what], k) {
			byWhat[what] = append(byWhat[what], k)
		}
	}
	for key, users := range w.users {
		gk := schema.GroupKind{Group: key.group, Kind: key.kind}
		if key.cluster == "" && len(w.supplies[key]) == 0 && !w.config.Serves(gk) && !fluxGroup(gk.Group) {
			for _, i := range users {
				note("kind "+gk.String(), i)
			}
		}
	}
	for key, users := range w.inhabitants {
		if key.cluster == "" && len(w.namespaces[key]) == 0 && !w.initialNamespace("", key.name) {
			for _, i := range users {
				note(key.String(), i)
			}
		}
	}
	for i, t := range w.tiers {
		for _, in := range inputsOf(t) {
			if len(w.bringing(in.ref)) == 0 && !w.declared(in.ref) {
				note(in.ref.String(), i)
			}
		}
		if w.sourceUnseen(i) {
			note(sourceRef(t).String(), i)
		}
	}
	for _, it := range w.skipped {
		if it.ref.cluster == "" && len(w.byRef[it.ref]) == 0 && !w.declared(it.ref) {
			note(it.ref.String(), it.tier)
		}
	}
	out := make([]Assumption, 0, len(byWhat))
	for what, keys := range byWhat {
		slices.SortFunc(keys, compareKeys)
		out = append(out, Assumption{what, keys})
	}
	slices.SortFunc(out, func(a, b Assumption) int { return cmp.Compare(a.What, b.What) })
	return out
}

// sourceUnseen reports whether nothing in git makes the source of a tier. One that is generated is no
// object of a tier; what it generates is known, or the tier is opaque.
func (w *world) sourceUnseen(i int) bool {
	t := w.tiers[i]
	src := sourceRef(t)
	generated := src.kind == sourcev1.ExternalArtifactKind && t.Opaque == ""
	return t.Parent != nil && !w.isRootSource(t.Source) && !generated && len(w.byRef[src]) == 0 && len(w.sources[i]) == 0 && !w.declared(src)
}

// configUse marks the entries of beforeFlux that something in git needs.
func (w *world) configUse() map[Entry]bool {
	used := map[Entry]bool{}
	if w.config == nil {
		return used
	}
	b := w.config.Before
	for _, d := range w.config.allDeclared() {
		for key := range w.users {
			used[d.entry] = used[d.entry] || d.covers(schema.GroupKind{Group: key.group, Kind: key.kind})
		}
	}
	for _, e := range b.Objects {
		used[e] = w.needed(e.Value)
	}
	return used
}

// needed reports whether a tier depends on, reads or lives in a declared object, or one of its objects
// needs it.
func (w *world) needed(object string) bool {
	if slices.ContainsFunc(w.skipped, func(it *item) bool { return it.ref.String() == object }) {
		return true // Flux waits for it
	}
	for i, t := range w.tiers {
		for _, k := range t.DependsOn {
			if "Kustomization/"+k.String() == object {
				return true
			}
		}
		for _, in := range inputsOf(t) {
			if in.ref.String() == object {
				return true
			}
		}
		if t.Source == object || slices.ContainsFunc(w.checks(i), func(r ref) bool { return r.String() == object }) {
			return true
		}
		for _, it := range w.items[i] {
			if "Namespace/"+it.GetNamespace() == object || slices.ContainsFunc(usesOf(it), func(u use) bool { return u.ref.String() == object }) {
				return true
			}
			if rel := w.releases[it.ref]; rel != nil && slices.ContainsFunc(releaseNeeds(rel), func(r ref) bool { return r.String() == object }) {
				return true
			}
		}
	}
	return false
}

// breaksBuild reports whether a problem of the graph means that Flux cannot build the tier.
func breaksBuild(rule string) bool {
	return slices.Contains([]string{problemBuild, problemPath, problemFile, problemUnreadable, problemVariable}, rule)
}

// problems passes on the graph's own findings that the replay has not put into its own words.
func (w *world) problems(all []Finding) []Finding {
	said := map[string]bool{}
	for _, f := range all {
		said[f.Rule+" "+f.Tier.String()] = true
		said[f.Rule+" "+f.Object] = true
	}
	var out []Finding
	for _, p := range w.graph.Problems {
		switch {
		case p.Rule == "unknown-input": // listed among the assumptions
			continue
		case p.Rule == cycle || p.Rule == childOfWaitingParent, p.Rule == missingDependency && p.Severity == tiers.Error:
			continue // the replay finds them, and how much they block
		case p.Rule == problemVariable && p.Severity == tiers.Info && said[ownInput+" "+p.Tier.String()]:
			continue // what defines it is in git after all
		case said[p.Rule+" "+p.Tier.String()], said[p.Rule+" Kustomization/"+p.Tier.String()]:
			continue
		}
		message := strings.TrimPrefix(p.Message, "reading "+p.File+": ")
		if p.Rule != problemVariable || p.Severity != tiers.Info { // a list that somebody needs in full
			message = shorten(message)
		}
		f := Finding{Rule: p.Rule, Severity: p.Severity, Tier: p.Tier, At: Location{File: p.File, Line: p.Line}, Evidence: crds.EvidenceGit, Message: message, Fix: fixOf(p)}
		if why := w.doubtful(p); why != "" && f.Severity == tiers.Error {
			f.Severity, f.Cause = tiers.Warning, []string{"not certain: " + why}
			if p.Rule == problemVariable {
				f.Severity = tiers.Info // what adds variables is in git, and most likely adds this one
			}
		}
		out = append(out, f)
	}
	return out
}

// fixOf says what to do about a problem of the graph; empty where the message says it all.
func fixOf(p tiers.Problem) string {
	switch {
	case p.Rule == problemRemote:
		return "nothing, if it can be fetched on the day; a copy in git makes sure of it, and the audit complete (so does --allow-remote-bases)"
	case p.Rule == problemSymlink:
		return "put the file itself where the link is"
	case p.Rule == problemArtifact:
		return "correct the copy rule's from, which is relative to the root of the source"
	case p.Rule == problemPath:
		return "correct spec.path, or bring the folder back"
	case p.Rule == problemFile:
		return "add the file, or remove the line that names it"
	case p.Rule == problemBuild, p.Rule == problemUnreadable:
		return "mend what the message names; kustomize build on the folder shows the same"
	case p.Rule == problemVariable && p.Severity == tiers.Info:
		return "see that it is defined there before Flux starts, or give it a default"
	case p.Rule == problemVariable:
		return "define it in postBuild, give it a default, or write it with $$ if it is meant literally"
	}
	return ""
}
