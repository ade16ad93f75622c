package audit

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// supply is one way in which a kind comes to exist, placed in the world. A kind may have several.
type supply struct {
	crds.Origin
	tier int   // -1 when no tier holds it
	item *item // the CRD, the release, the trigger or what runs the operator; nil when tier is -1
	// sure is false where the catalogue has been checked in part only: such a supply makes no error.
	sure bool
}

// addSupplies places the origins of every kind. An origin on another cluster than the objects that
// need the kind is none: a kind without a supply is taken to be served.
func (w *world) addSupplies(providers []crds.Provider) {
	for _, p := range providers {
		for _, o := range p.Origins {
			if o.Class == crds.FromUnknown || w.config.Serves(p.GroupKind) || w.broughtByFlux(p.GroupKind, o) {
				continue
			}
			s := supply{Origin: o, tier: -1, sure: o.Evidence != crds.EvidenceCatalogue || o.Reference.Grade != crds.Partial}
			cluster := ""
			if o.Object.Unstructured != nil {
				i, ok := w.index[o.Tier]
				if !ok {
					continue
				}
				s.tier = i
				if s.item = w.find(i, o.Object); s.item == nil {
					continue // Flux skips it
				}
				cluster = s.item.ref.cluster
				if r := w.releases[s.item.ref]; r != nil {
					cluster = r.cluster()
				}
			}
			key := kindRef(cluster, p.GroupKind)
			w.supplies[key] = append(w.supplies[key], s)
		}
	}
}

// broughtByFlux reports whether an origin of one of Flux's own kinds says nothing about a cold start:
// a cluster that applies tiers has Flux, and whatever in git brings Flux's kinds again, an instance
// or a chart, only takes over what is there. The exception is a folder that is applied by hand: it
// holds, at its top, the instance that is to install Flux, and other objects of Flux's kinds.
func (w *world) broughtByFlux(gk schema.GroupKind, o crds.Origin) bool {
	if !fluxGroup(gk.Group) {
		return false
	}
	if w.installer == nil {
		return o.Class != crds.FromGit
	}
	return o.Object.Unstructured != w.installer
}

// fluxGroup reports whether an API group is one of Flux's components.
func fluxGroup(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || group == "source.extensions.fluxcd.io"
}

// findInstaller looks for a FluxInstance in the pass of an entry path that nothing in git syncs,
// unless it is what makes Flux sync that path.
func findInstaller(g *tiers.Graph) *unstructured.Unstructured {
	for _, t := range g.Tiers {
		if t.Parent != nil || !t.Synthetic {
			continue
		}
		for _, o := range t.Objects {
			if o.GetKind() != "FluxInstance" || o.GroupVersionKind().Group != "fluxcd.controlplane.io" {
				continue
			}
			if sync := nestedString(o.Object, "spec", "sync", "path"); sync == "" || path.Clean("/"+sync) != path.Clean("/"+t.Dir) {
				return o.Unstructured
			}
		}
	}
	return nil
}

// find is the item that stands for an object of a tier; nil if Flux skips the object.
func (w *world) find(tier int, o render.Object) *item {
	for _, it := range w.byRef[w.scopes.ref(clusterOf(w.tiers[tier]), o.Unstructured)] {
		if it.tier == tier {
			return it
		}
	}
	return nil
}

// isNetwork reports whether the kind comes with a network plug-in: without one no pod runs, Flux's own
// included, so that somebody installs it before Flux can take it over.
func (s supply) isNetwork() bool {
	if s.item == nil || s.inGit() {
		return false
	}
	name := strings.ToLower(s.Name + " " + s.item.GetName())
	return slices.ContainsFunc([]string{"cilium", "calico", "tigera"}, func(n string) bool { return strings.Contains(name, n) })
}

// inGit reports whether the kind comes with a CRD that a tier applies.
func (s supply) inGit() bool { return s.Class == crds.FromGit && s.item != nil }

// there reports whether the kind is there before Flux.
func (s supply) there() bool { return s.item == nil }

func kindRef(cluster string, gk schema.GroupKind) ref {
	return ref{cluster: cluster, group: gk.Group, kind: gk.Kind}
}
