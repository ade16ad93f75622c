package crds

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnerKind says what sort of thing applied a CRD that a cluster has.
type OwnerKind string

// The sorts.
const (
	OwnerFlux       OwnerKind = "flux"       // a Kustomization applied it: it is in git
	OwnerHelm       OwnerKind = "helm"       // a release installed it: it is in a chart
	OwnerPerson     OwnerKind = "person"     // someone ran kubectl, or a script did
	OwnerController OwnerKind = "controller" // a controller made it at run time: nobody applied it
	OwnerPlatform   OwnerKind = "platform"   // the distribution brought it
)

// Owner is what a CRD's metadata tells about where it came from.
type Owner struct {
	By OwnerKind
	// Name is the Kustomization or release as namespace/name, the owning object as Kind/name, or the
	// field manager.
	Name string
}

// OwnerOf tells who brought a CRD, from what is certain to what is likely: Flux's and Helm's labels,
// owner references, then the field managers of its spec.
func OwnerOf(crd *apiextensionsv1.CustomResourceDefinition) Owner {
	labels, annotations := crd.Labels, crd.Annotations
	if name := labels["kustomize.toolkit.fluxcd.io/name"]; name != "" {
		return Owner{OwnerFlux, labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + name}
	}
	if name := labels["helm.toolkit.fluxcd.io/name"]; name != "" {
		return Owner{OwnerHelm, labels["helm.toolkit.fluxcd.io/namespace"] + "/" + name}
	}
	if name := annotations["meta.helm.sh/release-name"]; name != "" {
		return Owner{OwnerHelm, annotations["meta.helm.sh/release-namespace"] + "/" + name}
	}
	if len(crd.OwnerReferences) > 0 {
		return Owner{OwnerController, crd.OwnerReferences[0].Kind + "/" + crd.OwnerReferences[0].Name}
	}
	return ownerByManager(crd.ManagedFields)
}

// ownerByManager goes by the names that clients give themselves: kubectl and flux write what people
// apply, helm-controller the crds folder of a chart (which carries no labels), k3s and RKE2 their own.
// Any other manager is a controller that made the CRD itself.
func ownerByManager(entries []metav1.ManagedFieldsEntry) Owner {
	var managers []string
	for _, e := range entries {
		if e.Subresource == "" && e.Manager != "kube-apiserver" && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	known := []struct {
		pattern string // a name, or the beginning of one before "*"
		by      OwnerKind
	}{
		{"kustomize-controller", OwnerFlux},
		{"flux", OwnerFlux},
		{"helm-controller", OwnerHelm},
		{"helm", OwnerHelm},
		{"kubectl*", OwnerPerson},
		{"k3s*", OwnerPlatform},
		{"rke2*", OwnerPlatform},
		{"deploy@*", OwnerPlatform},
	}
	for _, k := range known {
		prefix, open := strings.CutSuffix(k.pattern, "*")
		for _, m := range managers {
			if m == prefix || (open && strings.HasPrefix(m, prefix)) {
				return Owner{k.by, m}
			}
		}
	}
	if len(managers) == 0 {
		return Owner{}
	}
	return Owner{OwnerController, managers[0]}
}

// AddOwners tells the set who brought the CRDs behind its kinds, so that [Providers] can name what
// neither git nor the catalogue knows.
func (s *Served) AddOwners(list []apiextensionsv1.CustomResourceDefinition) {
	s.owners = make(map[schema.GroupKind]Owner, len(list))
	for i := range list {
		gk := schema.GroupKind{Group: list[i].Spec.Group, Kind: list[i].Spec.Names.Kind}
		s.owners[gk] = OwnerOf(&list[i])
	}
}

// known returns what a cluster tells about a kind: its versions, who brought its CRD, and whether it
// is served at all. s may be nil.
func (s *Served) known(gk schema.GroupKind) ([]string, Owner, bool) {
	if s == nil {
		return nil, Owner{}, false
	}
	versions := s.Versions(gk)
	return versions, s.owners[gk], len(versions) > 0
}
