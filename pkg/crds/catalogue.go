package crds

import (
	_ "embed"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed catalogue.yaml
var embeddedCatalogue []byte

// Catalogue is what is known about operators, charts and platforms that bring kinds of their own.
// Its form is described at the top of catalogue.yaml. It must not be changed once loaded.
type Catalogue struct {
	Operators []*Operator
	Charts    []*Chart
	Platforms []*Platform
}

// Existing says what an operator does when a CRD that it is about to create exists already.
type Existing string

// What operators do.
const (
	Adopts          Existing = "adopts"
	Refuses         Existing = "refuses"
	ExistingUnknown Existing = "unknown"
)

// Grade says how far an entry of the catalogue was checked.
type Grade string

// The grades, best first.
const (
	Verified Grade = "verified"
	Partial  Grade = "partial"
	Reported Grade = "reported"
)

// Reference is where an entry of the catalogue can be checked, and how far it was.
type Reference struct {
	Link  string `yaml:"link"`
	Grade Grade  `yaml:"grade"`
	Note  string `yaml:"note,omitempty"`
}

// Place is where in a catalogue file an entry is written.
type Place struct {
	File string
	Line int
}

// Operator is a controller that registers CRDs at run time.
type Operator struct {
	Place    `yaml:"-"`
	Name     string            `yaml:"name"`
	Trigger  *Trigger          `yaml:"trigger,omitempty"`
	Startup  *Runner           `yaml:"startup,omitempty"`
	Operator *Runner           `yaml:"operator,omitempty"`
	Existing Existing          `yaml:"existing"`
	Labelled map[string]string `yaml:"adoptsLabelled,omitempty"`
	Evidence Reference         `yaml:"evidence"`
	Creates  []Creation        `yaml:"creates"`
}

// Trigger selects the objects after whose reconciliation an operator registers its CRDs.
type Trigger struct {
	Group string `yaml:"group"`
	Kind  string `yaml:"kind"`
	Where *Where `yaml:"where,omitempty"`
}

// Where narrows a Trigger: the text at a dotted path must match a regular expression. The items of a
// list are matched as one text, with spaces between them.
type Where struct {
	Path    string `yaml:"path"`
	Matches string `yaml:"matches"`
	pattern *regexp.Regexp
}

// Runner selects what runs a controller, by any of its names.
type Runner struct {
	// Charts are names of Helm charts.
	Charts []string `yaml:"charts,omitempty"`
	// Workloads are names of Deployments, StatefulSets and DaemonSets.
	Workloads []string `yaml:"workloads,omitempty"`
	// Images are repositories of container images without registry, tag or digest.
	Images []string `yaml:"images,omitempty"`
}

// Creation is a set of kinds of one API group.
type Creation struct {
	// Group is an API group; "*." at its beginning stands for any group below.
	Group string `yaml:"group,omitempty"`
	// GroupFrom is a dotted path in the trigger; Group counts where it is absent.
	GroupFrom string `yaml:"groupFrom,omitempty"`
	// When narrows the triggers for this set alone.
	When  *Where         `yaml:"when,omitempty"`
	Kinds []CreationKind `yaml:"kinds"`
}

// CreationKind is one kind of a Creation: written out, "*", or read from the trigger.
type CreationKind struct {
	Kind       string `yaml:"kind,omitempty"`
	KindFrom   string `yaml:"kindFrom,omitempty"`
	Plural     string `yaml:"plural,omitempty"`
	PluralFrom string `yaml:"pluralFrom,omitempty"`
	Scope      string `yaml:"scope,omitempty"`
}

// Chart is a Helm chart that brings CRDs.
type Chart struct {
	Place  `yaml:"-"`
	Name   string   `yaml:"name"`
	Charts []string `yaml:"charts"`
	Groups []string `yaml:"groups"`
	// Kinds are those that the chart brings of its groups, where other charts bring others; empty means
	// all.
	Kinds     []string  `yaml:"kinds,omitempty"`
	Folder    bool      `yaml:"folder,omitempty"`
	EnabledBy []string  `yaml:"enabledBy,omitempty"`
	Default   *bool     `yaml:"default,omitempty"`
	Evidence  Reference `yaml:"evidence"`
}

// Brings lists the kinds that the chart brings; one named "*" stands for all of its group, which may
// begin with "*." for every group below.
func (c *Chart) Brings() []schema.GroupKind {
	kinds := c.Kinds
	if len(kinds) == 0 {
		kinds = []string{"*"}
	}
	var out []schema.GroupKind
	for _, group := range c.Groups {
		for _, kind := range kinds {
			out = append(out, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	return out
}

// brings reports whether a kind is among those that the chart brings.
func (c *Chart) brings(gk schema.GroupKind) bool {
	return slices.ContainsFunc(c.Brings(), func(b schema.GroupKind) bool {
		return groupCovers(b.Group, gk.Group) && (b.Kind == "*" || b.Kind == gk.Kind)
	})
}

// Platform is a distribution, or Flux itself, and the kinds that are there before any tier.
type Platform struct {
	Place `yaml:"-"`
	Name  string `yaml:"name"`
	// Always says that no cluster with Flux is without these kinds.
	Always   bool       `yaml:"always,omitempty"`
	Creates  []Creation `yaml:"creates"`
	Evidence Reference  `yaml:"evidence"`
}

// DefaultCatalogue returns the catalogue that is part of the program.
func DefaultCatalogue() (*Catalogue, error) { return LoadCatalogue() }

// Source is a catalogue file: its content, and the name that errors use for it.
type Source struct {
	Name string
	Data []byte
}

// LoadCatalogue returns the embedded catalogue extended by files of the same form, in order: an
// entry with the name of an earlier one of its list replaces it. Everything that is wrong with a
// file is reported at once, as *CatalogueError joined in the order of the lines.
func LoadCatalogue(extra ...Source) (*Catalogue, error) {
	catalogue, err := parseCatalogue(Source{Name: "catalogue.yaml", Data: embeddedCatalogue})
	if err != nil {
		return nil, err
	}
	for _, source := range extra {
		more, err := parseCatalogue(source)
		if err != nil {
			return nil, err
		}
		catalogue.extend(more)
	}
	return catalogue, nil
}

func (c *Catalogue) extend(more *Catalogue) {
	c.Operators = replace(c.Operators, more.Operators, func(o *Operator) string { return o.Name })
	c.Charts = replace(c.Charts, more.Charts, func(ch *Chart) string { return ch.Name })
	c.Platforms = replace(c.Platforms, more.Platforms, func(p *Platform) string { return p.Name })
}

// replace puts the entries of more ahead of the others, so that a user's word goes first.
func replace[T any](old, more []T, name func(T) string) []T {
	result := slices.Clone(more)
	for _, entry := range old {
		if !slices.ContainsFunc(more, func(m T) bool { return name(m) == name(entry) }) {
			result = append(result, entry)
		}
	}
	return result
}
