package crds

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Class says what sort of thing brings a kind.
type Class string

// The classes.
const (
	FromBuiltin  Class = "builtin"  // Kubernetes itself
	FromGit      Class = "git"      // a CRD among the tiers' objects
	FromChart    Class = "chart"    // the chart of a release
	FromRuntime  Class = "runtime"  // a controller, once it runs or once it has reconciled its trigger
	FromPlatform Class = "platform" // the distribution, or Flux itself
	FromUnknown  Class = "unknown"  // nothing that is known
)

// Evidence says on what ground an Origin stands.
type Evidence string

// The kinds of evidence.
const (
	EvidenceGit       Evidence = "git"       // the CRD is in the repository
	EvidenceChart     Evidence = "chart"     // the chart was rendered
	EvidenceCatalogue Evidence = "catalogue" // the catalogue says so
	EvidenceCluster   Evidence = "cluster"   // the API server serves it, or its CRD says so
)

// Origin is one thing that brings a kind.
type Origin struct {
	Class    Class
	Evidence Evidence
	// Tier is the tier whose pass applies Object; zero where nothing in git brings the kind.
	Tier tiers.Key
	// Object is the CRD, the release, the trigger, or the workload that runs the controller; its
	// Unstructured is nil where nothing in git brings the kind.
	Object render.Object
	// Stage is the stage of the pass in which Object is applied.
	Stage flux.ApplyStage
	// Versions are the versions that the CRD serves; nil when that is not known.
	Versions []string
	// Plural is the resource's name; empty when it is not known.
	Plural string
	// Name says who brings the kind: an operator, a chart, a platform of the catalogue, the manager
	// of the CRD on the cluster. Empty for builtin and git.
	Name string
	// Startup says that the controller registers the kind as soon as it runs: Object is what runs it.
	Startup bool
	// Suspended says that Object is a release that git keeps suspended: it brings nothing until somebody
	// resumes it.
	Suspended bool
	// Operator is the catalogue's entry behind a runtime origin; nil for others.
	Operator *Operator
	// Reference is the catalogue's evidence; zero for others.
	Reference Reference
}

// Trigger names the object that has to be reconciled before the kind appears: Kind/namespace/name.
// It is empty for kinds that need none.
func (o Origin) Trigger() string {
	if o.Object.Unstructured == nil || (o.Class != FromRuntime && o.Class != FromChart) {
		return ""
	}
	return o.Object.ID()
}

// Use is one object of a kind.
type Use struct {
	Tier   tiers.Key
	Object string // Kind/namespace/name
	File   string
	Line   int
	// Version is the API version of the object.
	Version string
	// Stage is the stage of the pass in which it is applied.
	Stage flux.ApplyStage
}

// Provider says where one kind comes from.
type Provider struct {
	schema.GroupKind
	// Versions are the versions in which the tiers use the kind, preferred first.
	Versions []string
	// Origins are all things that bring the kind, the most certain first; never empty.
	Origins []Origin
	// Uses are the objects of the kind, in tier order.
	Uses []Use
	// Hint says what is known about a kind whose provider is not: an operator that could bring it
	// but whose trigger is not in git, a chart whose CRDs are switched off.
	Hint string
}

// Primary is the most certain origin.
func (p Provider) Primary() Origin { return p.Origins[0] }

// Unserved lists the versions in use that no origin serves, as far as the origins' versions are
// known.
func (p Provider) Unserved() []string {
	var unserved []string
	for _, v := range p.Versions {
		if !slices.ContainsFunc(p.Origins, func(o Origin) bool { return o.Versions == nil || slices.Contains(o.Versions, v) }) {
			unserved = append(unserved, v)
		}
	}
	return unserved
}

// Providers says for every kind that the tiers' objects are of where it comes from, sorted by group
// and kind. The graph must have been built with objects. served, if not nil, is what a cluster
// serves; it decides only where neither git nor the catalogue knows. Objects that Flux skips need
// no kind and are left out. rendered adds what charts were found to install (see pkg/crds/charts);
// it may be nil.
func Providers(graph *tiers.Graph, catalogue *Catalogue, served *Served, rendered *Rendered) []Provider {
	c := collect(graph, catalogue, rendered)
	builtin := Builtin()
	var providers []Provider
	for _, gk := range sortedKinds(c.uses) {
		p := Provider{GroupKind: gk, Uses: c.uses[gk], Versions: usedVersions(c.uses[gk])}
		p.Origins = c.originsOf(gk, builtin)
		if len(p.Origins) == 0 {
			p.Origins = []Origin{outsideGit(gk, catalogue, served)}
			if p.Primary().Class == FromUnknown {
				p.Hint = c.hint(gk)
			}
		}
		providers = append(providers, p)
	}
	return providers
}

// collector gathers who uses and who brings which kind.
type collector struct {
	catalogue *Catalogue
	index     objectIndex
	rendered  *Rendered
	uses      map[schema.GroupKind][]Use
	offers    []offer
	// off are releases of known charts that do not bring their CRDs, with the reason.
	off []switchedOff
}

type offer struct {
	kind   createdKind
	origin Origin
}

type switchedOff struct {
	chart  *Chart
	object render.Object
	reason string
}

func collect(graph *tiers.Graph, catalogue *Catalogue, rendered *Rendered) *collector {
	c := &collector{catalogue: catalogue, index: indexObjects(graph), rendered: rendered, uses: map[schema.GroupKind][]Use{}}
	for _, t := range graph.Tiers {
		for _, o := range t.Objects {
			if flux.Skipped(o.Unstructured, nil) {
				continue
			}
			c.add(t.Key, o)
		}
	}
	return c
}

func (c *collector) add(tier tiers.Key, o render.Object) {
	gvk := o.GroupVersionKind()
	if strings.HasPrefix(gvk.Kind, "ENC[") || strings.HasPrefix(o.GetAPIVersion(), "ENC[") {
		return // a file that is encrypted whole: of what kind it is, only Flux will know
	}
	stage := flux.Stage(o.Unstructured, nil)
	c.uses[gvk.GroupKind()] = append(c.uses[gvk.GroupKind()],
		Use{Tier: tier, Object: o.ID(), File: o.File, Line: o.Line, Version: gvk.Version, Stage: stage})
	base := Origin{Tier: tier, Object: o, Stage: stage}
	if isCRD(o) {
		c.addCRD(base)
	}
	if isAPIService(o) {
		c.addAPIService(base)
	}
	if r, ok := releaseOf(o, c.index); ok {
		release := base
		release.Suspended = r.suspended
		c.addRelease(release, r)
	}
	for _, operator := range c.catalogue.Operators {
		if operator.Trigger.matches(o) {
			c.addOperator(base, operator, false)
		}
		if operator.Startup.runsWorkload(o) {
			c.addOperator(base, operator, true)
		}
	}
}

func isCRD(o render.Object) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func isAPIService(o render.Object) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
}

func (c *collector) addCRD(base Origin) {
	kind, versions := definition(base.Object)
	base.Class, base.Evidence, base.Versions, base.Plural = FromGit, EvidenceGit, versions, kind.plural
	c.offers = append(c.offers, offer{kind, base})
}

// definition reads what a CRD defines: its kind and the versions that it serves.
func definition(o render.Object) (createdKind, []string) {
	kind := createdKind{schema.GroupKind{Group: text(o, "spec", "group"), Kind: text(o, "spec", "names", "kind")}, text(o, "spec", "names", "plural")}
	versions := []string{}
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, entry := range list {
		version, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			versions = append(versions, name)
		}
	}
	slices.SortFunc(versions, compareVersions)
	return kind, versions
}

// definedKinds are the kinds that a CRD serves, in all its versions.
func definedKinds(o render.Object) []schema.GroupVersionKind {
	kind, versions := definition(o)
	kinds := make([]schema.GroupVersionKind, 0, len(versions))
	for _, v := range versions {
		kinds = append(kinds, kind.WithVersion(v))
	}
	return kinds
}

// addAPIService offers every kind of an aggregated API: it is served once the service behind it is.
func (c *collector) addAPIService(base Origin) {
	if _, external, _ := unstructured.NestedMap(base.Object.Object, "spec", "service"); !external {
		return
	}
	base.Class, base.Evidence, base.Name = FromRuntime, EvidenceGit, "aggregated API"
	base.Versions = []string{text(base.Object, "spec", "version")}
	c.offers = append(c.offers, offer{createdKind{GroupKind: schema.GroupKind{Group: text(base.Object, "spec", "group"), Kind: "*"}}, base})
}

func (c *collector) addRelease(base Origin, r release) {
	if kinds, ok := c.rendered.of(base.Object); ok {
		for _, k := range kinds {
			origin := base
			origin.Class, origin.Evidence, origin.Versions, origin.Plural, origin.Name = FromChart, EvidenceChart, k.Versions, k.Plural, r.chart
			c.offers = append(c.offers, offer{createdKind{k.GroupKind, k.Plural}, origin})
		}
	} else {
		c.addKnownChart(base, r)
	}
	for _, operator := range c.catalogue.Operators {
		if operator.Startup.runsRelease(r) {
			c.addOperator(base, operator, true)
		}
	}
}

func (c *collector) addKnownChart(base Origin, r release) {
	for _, chart := range c.catalogue.Charts {
		if r.chart == "" || !slices.Contains(chart.Charts, r.chart) {
			continue
		}
		if installs, reason := chart.installsCRDs(r); !installs {
			c.off = append(c.off, switchedOff{chart, base.Object, reason})
			continue
		}
		for _, kind := range chart.Brings() {
			origin := base
			origin.Class, origin.Evidence, origin.Name, origin.Reference = FromChart, EvidenceCatalogue, r.chart, chart.Evidence
			c.offers = append(c.offers, offer{createdKind{GroupKind: kind}, origin})
		}
	}
}

func (c *collector) addOperator(base Origin, operator *Operator, startup bool) {
	for _, creation := range operator.Creates {
		for _, kind := range creation.created(base.Object) {
			origin := base
			origin.Class, origin.Evidence, origin.Name = FromRuntime, EvidenceCatalogue, operator.Name
			origin.Operator, origin.Reference, origin.Startup, origin.Plural = operator, operator.Evidence, startup, kind.plural
			c.offers = append(c.offers, offer{kind, origin})
		}
	}
}

// originsOf lists what brings a kind, most certain first: built in, a CRD in git, Flux itself for
// its own kinds, then whatever names the kind itself, then whatever names only its group, then what is suspended;
// among equals the earlier tier.
func (c *collector) originsOf(gk schema.GroupKind, builtin *Served) []Origin {
	if versions := builtin.Versions(gk); len(versions) > 0 {
		return []Origin{{Class: FromBuiltin, Evidence: EvidenceGit, Versions: versions}}
	}
	type ranked struct {
		rank   int
		origin Origin
	}
	var found []ranked
	for _, o := range c.offers {
		if !o.kind.covers(gk) {
			continue
		}
		rank := 2
		switch {
		case o.origin.Suspended:
			rank = 3
		case o.origin.Class == FromGit:
			rank = 0
		case o.kind.exact():
			rank = 1
		}
		found = append(found, ranked{rank, o.origin})
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	origins := make([]Origin, 0, len(found)+1)
	for _, f := range found {
		origins = append(origins, f.origin)
	}
	if o, ok := platformOrigin(gk, c.catalogue, true); ok {
		at := slices.IndexFunc(origins, func(o Origin) bool { return o.Class != FromGit })
		if at < 0 {
			at = len(origins)
		}
		origins = slices.Insert(origins, at, o)
	}
	return origins
}

func sortedKinds(uses map[schema.GroupKind][]Use) []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(uses))
	for gk := range uses {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

func usedVersions(uses []Use) []string {
	var versions []string
	for _, u := range uses {
		if !slices.Contains(versions, u.Version) {
			versions = append(versions, u.Version)
		}
	}
	slices.SortFunc(versions, compareVersions)
	return versions
}
