package operators

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gatekeeper stands in for gatekeeper-controller-manager.
func Gatekeeper() Operator {
	return Operator{
		name:    "gatekeeper",
		trigger: schema.GroupVersionResource{Group: "templates.gatekeeper.sh", Version: "v1", Resource: "constrainttemplates"},
		reconcile: func(ctx context.Context, c client, template *unstructured.Unstructured) error {
			kind := text(template, "spec", "crd", "spec", "names", "kind")
			wanted := controlledBy(labelled(definition("constraints.gatekeeper.sh", "v1beta1", kind, strings.ToLower(kind), "Cluster"), "managed-by", c.manager), template)
			return c.createOrTakeOver(ctx, wanted)
		},
	}
}

func (c client) createOrTakeOver(ctx context.Context, wanted *unstructured.Unstructured) error {
	live, err := c.crd(ctx, wanted.GetName())
	switch {
	case err != nil:
		return err
	case live == nil:
		return c.create(ctx, wanted)
	}
	return c.takeOver(ctx, live, wanted)
}

// Crossplane stands in for Crossplane's core, as far as composite resources go.
func Crossplane() Operator {
	resource := schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositeresourcedefinitions"}
	return Operator{name: "crossplane", trigger: resource, reconcile: func(ctx context.Context, c client, xrd *unstructured.Unstructured) error {
		group := text(xrd, "spec", "group")
		for field, scope := range map[string]string{"names": "Cluster", "claimNames": "Namespaced"} {
			kind, plural := text(xrd, "spec", field, "kind"), text(xrd, "spec", field, "plural")
			if kind == "" {
				continue
			}
			wanted := controlledBy(labelled(definition(group, "v1", kind, plural, scope), "managed-by", c.manager), xrd)
			live, err := c.crd(ctx, wanted.GetName())
			if err != nil {
				return err
			}
			if live != nil && metav1.GetControllerOf(live) != nil && !metav1.IsControlledBy(live, xrd) {
				return fmt.Errorf("%s: it is not controllable by %s", live.GetName(), xrd.GetName())
			}
			if err := c.createOrTakeOver(ctx, wanted); err != nil {
				return err
			}
		}
		return c.condition(ctx, resource, xrd, "Established", "True", "WatchingCompositeResource", "")
	}}
}

// Kro stands in for kro.
func Kro() Operator {
	resource := schema.GroupVersionResource{Group: "kro.run", Version: "v1alpha1", Resource: "resourcegraphdefinitions"}
	return Operator{name: "kro", trigger: resource, reconcile: func(ctx context.Context, c client, graph *unstructured.Unstructured) error {
		kind := text(graph, "spec", "schema", "kind")
		wanted := labelled(definition("kro.run", "v1alpha1", kind, strings.ToLower(kind)+"s", "Namespaced"),
			"kro.run/owned", "true", "kro.run/resource-graph-definition-name", graph.GetName())
		live, err := c.crd(ctx, wanted.GetName())
		if err != nil {
			return err
		}
		if live == nil {
			return c.create(ctx, wanted)
		}
		if live.GetLabels()["kro.run/owned"] != "true" {
			message := fmt.Sprintf("failed to update CRD %s: CRD already exists and is not owned by KRO", live.GetName())
			return c.condition(ctx, resource, graph, "Ready", "False", "Failed", message)
		}
		return c.condition(ctx, resource, graph, "Ready", "True", "Ready", "")
	}}
}

// Cilium stands in for cilium-operator.
func Cilium() Operator {
	return Operator{
		name:    "cilium-operator",
		trigger: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		reconcile: func(ctx context.Context, c client, d *unstructured.Unstructured) error {
			ready, _, _ := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
			if d.GetName() != "cilium-operator" || ready == 0 {
				return nil
			}
			for kind, plural := range map[string]string{"CiliumNetworkPolicy": "ciliumnetworkpolicies", "CiliumNode": "ciliumnodes"} {
				scope := map[string]string{"CiliumNetworkPolicy": "Namespaced", "CiliumNode": "Cluster"}[kind]
				wanted := labelled(definition("cilium.io", "v2", kind, plural, scope), "managed-by", c.manager, "io.cilium.k8s.crd.schema.version", "1.32.0")
				if err := c.createOrTakeOver(ctx, wanted); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// FluxOperator stands in for flux-operator, for the component that a test cluster has not got:
// notification-controller.
func FluxOperator() Operator {
	resource := schema.GroupVersionResource{Group: "fluxcd.controlplane.io", Version: "v1", Resource: "fluxinstances"}
	return Operator{name: "flux-operator", trigger: resource, reconcile: func(ctx context.Context, c client, instance *unstructured.Unstructured) error {
		components, _, _ := unstructured.NestedStringSlice(instance.Object, "spec", "components")
		if !strings.Contains(strings.Join(components, " "), "notification-controller") {
			return nil
		}
		for kind, plural := range map[string]string{"Alert": "alerts", "Provider": "providers"} {
			wanted := labelled(definition("notification.toolkit.fluxcd.io", "v1beta3", kind, plural, "Namespaced"), "fluxcd.controlplane.io/name", instance.GetName())
			if _, err := c.Resource(crdResource()).Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: c.manager, Force: true}); err != nil {
				return err
			}
		}
		return c.condition(ctx, resource, instance, "Ready", "True", "ReconciliationSucceeded", "")
	}}
}
