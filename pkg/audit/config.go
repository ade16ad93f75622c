package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConfigFile is where a repository declares what an audit cannot see in it.
const ConfigFile = ".standup.yaml"

// otherConfigFile is what the file is easily called instead, and never read.
const otherConfigFile = ".standup.yml"

// Config is the content of [ConfigFile]:
//
//	beforeFlux:
//	  platform: k3s                          # its own kinds are there
//	  groups: [gateway.networking.k8s.io]    # kinds that are there, whole groups
//	  kinds: [monitoring.coreos.com/ServiceMonitor]
//	  crds: [bootstrap/crds]                 # folders or files of CRDs that a bootstrap step applies
//	  helmfile: [bootstrap/helmfile.yaml]    # charts that a bootstrap step installs
//	  objects: [Namespace/flux-system, Secret/flux-system/sops-age]
//	accept:
//	  - rule: provider-not-upstream
//	    tier: flux-system/apps               # optional, as is object; "*" matches any
//	    reason: the retry costs a minute and nobody minds
//	    expires: 2027-06-30
type Config struct {
	Before Before
	Accept []Acceptance
	// Path is where it was read; used in messages.
	Path string

	declared []declaredKind // what Before.CRDs and Before.Helmfile turn out to hold
}

// Before is what is on the cluster before Flux starts.
type Before struct {
	// Platform names the distribution: its own kinds are there. Groups may begin with "*." for every
	// group below; Kinds are written group/Kind.
	Platform Entry
	Groups   []Entry
	Kinds    []Entry
	// CRDs and Helmfile are repository-relative paths.
	CRDs     []Entry
	Helmfile []Entry
	// Objects are written Kind/namespace/name or Kind/name.
	Objects []Entry
}

// Entry is one value of the configuration and the line it is on.
type Entry struct {
	Value string
	Line  int
}

// Acceptance is a finding that the authors of the repository live with.
type Acceptance struct {
	Rule, Tier, Object, Reason string
	// Expires is the first day on which it no longer holds; never zero.
	Expires time.Time
	Line    int
}

// Unused is an entry of the configuration that no longer does anything.
type Unused struct {
	Line    int
	Message string
}

// ConfigError says what is wrong with a configuration, and where.
type ConfigError struct {
	Path    string
	Line    int
	Message string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("reading %s: line %d: %s", e.Path, e.Line, e.Message)
}

// matches reports whether the acceptance is meant for a finding.
func (a Acceptance) matches(f Finding) bool {
	wild := func(pattern, value string) bool { return pattern == "" || pattern == "*" || pattern == value }
	tier := wild(a.Tier, f.Tier.String()) || a.Tier == f.Tier.Name
	object := wild(a.Object, f.Object) || slices.Contains(f.Objects, a.Object)
	return a.Rule == f.Rule && tier && object
}

// object reports whether an object is declared to be there before Flux. It may be asked of nil.
func (c *Config) object(r ref) bool {
	if c == nil || r.cluster != "" {
		return false
	}
	return slices.ContainsFunc(c.Before.Objects, func(e Entry) bool { return e.Value == r.String() })
}

// Serves reports whether the configuration declares a kind: by itself, by its group, or by a CRD or a
// chart that a bootstrap step brings. It may be asked of nil.
func (c *Config) Serves(gk schema.GroupKind) bool {
	if c == nil {
		return false
	}
	return slices.ContainsFunc(c.allDeclared(), func(d declaredKind) bool { return d.covers(gk) })
}

// allDeclared lists the kinds declared, each with the entry that does.
func (c *Config) allDeclared() []declaredKind {
	out := slices.Clone(c.declared)
	for _, e := range c.Before.Groups {
		out = append(out, declaredKind{schema.GroupKind{Group: e.Value}, e})
	}
	for _, e := range c.Before.Kinds {
		group, kind, _ := strings.Cut(e.Value, "/")
		out = append(out, declaredKind{schema.GroupKind{Group: group, Kind: kind}, e})
	}
	return out
}

// accept splits findings into those that stand and those that the configuration accepts, and adds
// what no entry matched any more.
func (c *Config) accept(all []Finding, now time.Time, used map[Entry]bool) (open, accepted []Finding, unused []Unused) {
	if c == nil {
		return all, nil, nil
	}
	hits := make([]int, len(c.Accept))
	for _, f := range all {
		f.Accepted = nil
		for i := range c.Accept {
			a := &c.Accept[i]
			if !a.matches(f) {
				continue
			}
			hits[i]++
			if now.IsZero() || now.Before(a.Expires) {
				f.Accepted = a
			}
		}
		if f.Accepted != nil {
			accepted = append(accepted, f)
		} else {
			open = append(open, f)
		}
	}
	for i, a := range c.Accept {
		switch {
		case hits[i] == 0:
			unused = append(unused, Unused{a.Line, fmt.Sprintf("accept %s: nothing to accept any more", a.Rule)})
		case !now.IsZero() && !now.Before(a.Expires):
			unused = append(unused, Unused{a.Line, fmt.Sprintf("accept %s: expired on %s", a.Rule, a.Expires.Format(time.DateOnly))})
		}
	}
	for _, list := range [][]Entry{c.Before.Groups, c.Before.Kinds, c.Before.CRDs, c.Before.Helmfile, c.Before.Objects} {
		for _, e := range list {
			if !used[e] {
				unused = append(unused, Unused{e.Line, fmt.Sprintf("beforeFlux: nothing in git needs %s", e.Value)})
			}
		}
	}
	slices.SortStableFunc(unused, func(a, b Unused) int { return a.Line - b.Line })
	return open, accepted, unused
}
