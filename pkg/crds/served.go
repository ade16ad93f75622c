package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/standup-sh/standup/pkg/tiers"
)

// Resource is how a kind is served.
type Resource struct {
	Plural     string
	Namespaced bool
	// Default says that an API server serves it without being told to; true for anything that was
	// read from a cluster.
	Default bool
}

// Served is a set of kinds: those of a cluster, as discovery lists them, or the built-in ones.
type Served struct {
	kinds map[schema.GroupVersionKind]Resource
	// failed are group versions that discovery lists but cannot describe now: an aggregated API
	// whose server does not answer. Their kinds are neither known nor missing.
	failed map[schema.GroupVersion]string
	owners map[schema.GroupKind]Owner
}

// NewServed returns an empty set.
func NewServed() *Served {
	return &Served{kinds: map[schema.GroupVersionKind]Resource{}, failed: map[schema.GroupVersion]string{}}
}

// Add puts a kind into the set.
func (s *Served) Add(gvk schema.GroupVersionKind, r Resource) { s.kinds[gvk] = r }

// Has reports whether a kind is served in exactly that version.
func (s *Served) Has(gvk schema.GroupVersionKind) bool {
	_, ok := s.kinds[gvk]
	return ok
}

// Resource returns how a kind is served, and whether it is.
func (s *Served) Resource(gvk schema.GroupVersionKind) (Resource, bool) {
	r, ok := s.kinds[gvk]
	return r, ok
}

// Versions lists the versions in which a kind is served, sorted; none if it is not.
func (s *Served) Versions(gk schema.GroupKind) []string {
	var versions []string
	for gvk := range s.kinds {
		if gvk.GroupKind() == gk {
			versions = append(versions, gvk.Version)
		}
	}
	slices.SortFunc(versions, compareVersions)
	return versions
}

// compareVersions puts the version that Kubernetes prefers first: v2, v1, v1beta2, v1alpha1.
func compareVersions(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }

// Failed returns why discovery could not describe a group version, "" if it could.
func (s *Served) Failed(gv schema.GroupVersion) string { return s.failed[gv] }

// With returns the set together with more kinds, for trying out what would be served. The receiver
// is not changed.
func (s *Served) With(kinds ...schema.GroupVersionKind) *Served {
	more := NewServed()
	more.owners = s.owners
	for gvk, r := range s.kinds {
		more.kinds[gvk] = r
	}
	for gv, reason := range s.failed {
		more.failed[gv] = reason
	}
	for _, gvk := range kinds {
		if !more.Has(gvk) {
			more.Add(gvk, Resource{Default: true})
		}
	}
	return more
}

// Discover reads from the API server which kinds it serves now. Group versions that do not answer
// are kept apart (see [Served.Failed]) and are not an error.
func Discover(client discovery.DiscoveryInterface) (*Served, error) {
	_, lists, err := client.ServerGroupsAndResources()
	served := NewServed()
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		for gv, reason := range partial.Groups {
			served.failed[gv] = reason.Error()
		}
	case err != nil:
		return nil, fmt.Errorf("reading which kinds the API server serves: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading which kinds the API server serves: %w", err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				served.Add(gv.WithKind(r.Kind), Resource{Plural: r.Name, Namespaced: r.Namespaced, Default: true})
			}
		}
	}
	return served, nil
}

func (f *freer) discover(ctx context.Context) error {
	served, err := discoverFor(ctx, f.clients.Discovery, []*tiers.Tier{f.tier}, f.opts.Poll)
	if err == nil {
		f.served = served.With(f.opts.assumedKinds()...)
	}
	return err
}

// discoverFor is [Discover], tried again for a while when a group that the tiers use cannot be
// described: for a moment after a CRD was created its group is listed as stale.
func discoverFor(ctx context.Context, client discovery.DiscoveryInterface, needed []*tiers.Tier, poll time.Duration) (*Served, error) {
	const tries = 10
	for try := 1; ; try++ {
		served, err := Discover(client)
		if err != nil || try == tries || !served.failsFor(needed) {
			return served, err
		}
		if err := pause(ctx, poll); err != nil {
			return nil, err
		}
	}
}

func (s *Served) failsFor(needed []*tiers.Tier) bool {
	for _, t := range needed {
		for _, o := range t.Objects {
			if s.Failed(o.GroupVersionKind().GroupVersion()) != "" {
				return true
			}
		}
	}
	return false
}
