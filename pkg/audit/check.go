package audit

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// checks lists the objects that a tier's healthChecks name, apps/v1 where they name no API version
// (ReferenceToObjMetadataSet in kustomize-controller's internal/inventory/inventory.go).
func (w *world) checks(i int) []ref {
	var out []ref
	for _, h := range w.tiers[i].Kustomization.Spec.HealthChecks {
		gv, err := schema.ParseGroupVersion(h.APIVersion)
		if err != nil {
			continue
		}
		if h.APIVersion == "" {
			gv = schema.GroupVersion{Group: "apps", Version: "v1"}
		}
		out = append(out, ref{cluster: clusterOf(w.tiers[i]), group: gv.Group, kind: h.Kind, namespace: h.Namespace, name: h.Name})
	}
	return out
}

// checksOfNothing lists the objects that a tier's health checks wait for and that nothing makes. Of
// Flux's own kinds alone one can say so: others come with charts and operators.
func (w *world) checksOfNothing(i int) []ref {
	t := w.tiers[i]
	if t.Kustomization.Spec.Wait || clusterOf(t) != "" || !w.complete() {
		return nil
	}
	var out []ref
	for _, what := range w.checks(i) {
		_, isTier := w.index[tiers.Key{Namespace: what.namespace, Name: what.name}]
		isTier = isTier && what.group == kustomizev1.GroupVersion.Group && what.kind == kustomizev1.KustomizationKind
		if fluxGroup(what.group) && len(w.byRef[what]) == 0 && !isTier && !w.isRootSource(what.String()) && !w.declared(what) {
			out = append(out, what)
		}
	}
	return out
}

// healthFault is why a tier's healthCheckExprs can never call an object of a kind healthy; nil if they may.
func (w *world) healthFault(i int, gk schema.GroupKind) error {
	checks := w.tiers[i].Kustomization.Spec.HealthCheckExprs
	if len(checks) == 0 {
		return nil
	}
	key := kindOfTier{i, gk}
	if _, ok := w.healthFaults[key]; !ok {
		w.healthFaults[key] = flux.CheckHealthExpressions(checks, gk)
	}
	return w.healthFaults[key]
}

type kindOfTier struct {
	tier int
	kind schema.GroupKind
}

// complete reports whether the objects of every tier are known, and nothing but Kustomizations can come
// beside them: of what a ResourceSet generates the graph has taken up only those.
func (w *world) complete() bool {
	return !w.opaque && len(w.users[ref{group: "fluxcd.controlplane.io", kind: "ResourceSet"}]) == 0
}

// suspended reports whether git says suspend: true of an object of Flux's.
func suspended(it *item) bool {
	on, _, _ := unstructured.NestedBool(it.Object.Object, "spec", "suspend")
	return on
}

// servesItself reports whether a chart's source needs no reconciliation: helm-controller asks a registry
// itself, and what a HelmRepository of type oci holds is never fetched ahead.
func servesItself(it *item) bool {
	return it.gk.Kind == sourcev1.HelmRepositoryKind && nestedString(it.Object.Object, "spec", "type") == sourcev1.HelmRepositoryTypeOCI
}
