package tiers

import (
	"context"
	"strings"

	"github.com/standup-sh/standup/pkg/render"
)

// instanceGroup is the API group of Flux Operator.
const instanceGroup = "fluxcd.controlplane.io"

// wanted decides, when objects are not asked for, which manifests are worth rendering: those of
// Kustomizations, of what makes Kustomizations, and of what a tier was found to need.
type wanted struct {
	// names are the objects needed, as kind and name.
	names map[needed]bool
	// fresh says that names grew since the last look.
	fresh bool
	// releases says that HelmReleases are asked for.
	releases bool
}

type needed struct{ kind, name string }

func (w *wanted) add(kind, name string) {
	if n := (needed{kind, name}); name != "" && !w.names[n] {
		w.names[n] = true
		w.fresh = true
	}
}

// want is asked concurrently while names do not change.
func (w *wanted) want(id render.Identity) bool {
	if strings.HasPrefix(id.APIVersion, kustomizeGroup+"/") || strings.HasPrefix(id.APIVersion, instanceGroup+"/") ||
		id.Kind == "ArtifactGenerator" || id == (render.Identity{}) || strings.Contains(id.APIVersion+id.Kind, "$") {
		return true
	}
	if w.releases && id.Kind == "HelmRelease" {
		return true
	}
	if w.names[needed{id.Kind, id.Name}] {
		return true
	}
	for n := range w.names {
		// A name may still get a prefix, a suffix, a hash or a variable's value.
		if n.kind == id.Kind && id.Name != "" && (strings.Contains(n.name, id.Name) || strings.Contains(id.Name, "$")) {
			return true
		}
	}
	return false
}

// needs notes what a tier looks for elsewhere in git.
func (l *loader) needs(s *state) {
	ref := s.tier.Kustomization.Spec.SourceRef
	l.wanted.add(ref.Kind, ref.Name)
	if pb := s.tier.Kustomization.Spec.PostBuild; pb != nil {
		for _, f := range pb.SubstituteFrom {
			l.wanted.add(f.Kind, f.Name)
		}
	}
}

// fulfil renders again what was left out before it was known to be needed. It reports whether
// there was anything to look for.
func (l *loader) fulfil(ctx context.Context) (bool, error) {
	if !l.wanted.fresh || l.opts.Objects {
		return false, nil
	}
	l.wanted.fresh = false
	var again []*state
	for _, s := range l.sorted() {
		if s.built && s.res != nil && s.res.Partial {
			again = append(again, s)
		}
	}
	if err := l.build(ctx, again); err != nil {
		return false, err
	}
	for _, s := range again {
		l.absorb(s)
	}
	return true, nil
}
