package audit

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
)

// supply is one way in which a kind comes to exist, placed in the world. A kind may have several.
type supply struct {
	crds.Origin
	tier int   // -1 when no tier holds it
	item *item // the CRD, the release, the trigger or what runs the operator; nil when tier is -1
	// sure is false where the catalogue's own evidence is weak: such a supply makes no error.
	sure bool
}

// addSupplies places the origins of every kind. An origin on another cluster than the objects that
// need the kind is none: a kind without a supply is taken to be served.
func (w *world) addSupplies(providers []crds.Provider) {
	for _, p := range providers {
		for _, o := range p.Origins {
			if o.Class == crds.FromUnknown || w.config.Serves(p.GroupKind) {
				continue
			}
			s := supply{Origin: o, tier: -1, sure: o.Evidence != crds.EvidenceCatalogue || o.Reference.Grade == crds.Verified}
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

// find is the item that stands for an object of a tier; nil if Flux skips the object.
func (w *world) find(tier int, o render.Object) *item {
	gvk := o.GroupVersionKind()
	key := ref{cluster: clusterOf(w.tiers[tier]), group: gvk.Group, kind: gvk.Kind, namespace: o.GetNamespace(), name: o.GetName()}
	for _, it := range w.byRef[key] {
		if it.tier == tier {
			return it
		}
	}
	return nil
}

// inGit reports whether the kind comes with a CRD that a tier applies.
func (s supply) inGit() bool { return s.Class == crds.FromGit && s.item != nil }

// there reports whether the kind is there before Flux.
func (s supply) there() bool { return s.item == nil }

func kindRef(cluster string, gk schema.GroupKind) ref {
	return ref{cluster: cluster, group: gk.Group, kind: gk.Kind}
}
