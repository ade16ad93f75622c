package audit

import (
	"strings"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// scopes says of kinds whether their objects are in a namespace; kinds of which that is not known are
// absent.
type scopes map[schema.GroupKind]bool

// scopesOf collects the scopes of the kinds that a graph's objects are of: Kubernetes' and Flux's own, those
// with a CRD in git, and those that others name without a namespace (see usesOf).
func scopesOf(g *tiers.Graph) scopes {
	builtin := crds.Builtin()
	out := scopes{
		{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}:     false,
		{Group: "cert-manager.io", Kind: "ClusterIssuer"}:              false,
		{Group: "external-secrets.io", Kind: "ClusterSecretStore"}:     false,
		{Group: "external-secrets.io", Kind: "ClusterExternalSecret"}:  false,
		{Group: "cdi.kubevirt.io", Kind: "StorageProfile"}:             false,
		{Group: "apiextensions.crossplane.io", Kind: "Composition"}:    false,
		{Group: "templates.gatekeeper.sh", Kind: "ConstraintTemplate"}: false,
	}
	for _, t := range g.Tiers {
		for i := range t.Objects {
			o := t.Objects[i].Unstructured
			if r, ok := builtin.Resource(o.GroupVersionKind()); ok {
				out[o.GroupVersionKind().GroupKind()] = r.Namespaced
			}
			if fluxGroup(o.GroupVersionKind().Group) {
				out[o.GroupVersionKind().GroupKind()] = true
			}
			if ssautil.IsCRD(o) {
				scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
				out[crdKind(o)] = scope != "Cluster"
			}
		}
	}
	return out
}

// ref names an object the way the API server does: what is cluster-scoped has no namespace, although
// kustomize gives one to every kind that it does not know. The API server clears it
// (EnsureObjectNamespaceMatchesRequestNamespace in apiserver's pkg/registry/rest/meta.go).
func (s scopes) ref(cluster string, o *unstructured.Unstructured) ref {
	gk := o.GroupVersionKind().GroupKind()
	r := ref{cluster: cluster, group: gk.Group, kind: gk.Kind, namespace: o.GetNamespace(), name: o.GetName()}
	if namespaced, known := s[gk]; known && !namespaced {
		r.namespace = ""
	}
	return r
}

// namespaceOf is the namespace that has to exist before an object can be applied; empty where there is
// none, and where the object's kind looks as if it were cluster-scoped and nobody says that it is not.
func (s scopes) namespaceOf(it *item) string {
	if _, known := s[it.gk]; !known && looksClusterScoped(it.gk.Kind) {
		return ""
	}
	return it.ref.namespace
}

// homeless reports whether an object lacks the namespace that its kind needs: nothing gives it one, neither
// its manifest nor a kustomization nor the tier's targetNamespace.
func (s scopes) homeless(it *item) bool {
	return s[it.gk] && it.GetNamespace() == ""
}

func looksClusterScoped(kind string) bool {
	return strings.HasPrefix(kind, "Cluster") && kind != "Cluster" || strings.HasSuffix(kind, "Class")
}
