// Package operators stands in for controllers that register CRDs at run time, where no image can
// run. Each does to the API what the real one does with the CRDs that it is about, and nothing else:
//
//   - Gatekeeper makes the CRD that a ConstraintTemplate names, and takes over one that exists
//     (open-policy-agent/gatekeeper, pkg/controller/constrainttemplate, generateCRD);
//   - Crossplane makes the CRDs of a CompositeResourceDefinition and of its claim, and takes over one
//     that nobody else controls (crossplane/crossplane, internal/controller/apiextensions,
//     MustBeControllableBy);
//   - Kro makes the CRD of a ResourceGraphDefinition, and refuses one that does not carry its label
//     (kubernetes-sigs/kro, pkg/client/crd.go, Ensure);
//   - Cilium registers its CRDs as soon as its Deployment runs, and updates those that exist
//     (cilium/cilium, pkg/k8s/apis/crdhelpers/register.go);
//   - FluxOperator applies the CRDs of the components that a FluxInstance asks for, server-side and
//     by force (controlplaneio-fluxcd/flux-operator, internal/controller/fluxinstance_controller.go).
//
// Limits. They poll where the real ones watch, and the CRDs' schemas accept anything.
package operators

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// poll is the time between two looks at the API.
const poll = 250 * time.Millisecond

// Operator is one stand-in.
type Operator struct {
	// name is the operator's field manager and, with a note, its user agent.
	name string
	// trigger is the resource whose objects it reconciles.
	trigger   schema.GroupVersionResource
	reconcile func(context.Context, client, *unstructured.Unstructured) error
}

// Run works until ctx ends and then returns nil. Errors of single requests are reported to emit,
// which may be nil, and the work is tried again.
func (o Operator) Run(ctx context.Context, config *rest.Config, emit func(error)) error {
	config = rest.CopyConfig(config)
	config.UserAgent = o.name + " (stand-in)"
	config.WarningHandler = rest.NoWarnings{}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c := client{Interface: dynamicClient, manager: o.name}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := o.pass(ctx, c); err != nil && ctx.Err() == nil && emit != nil {
			emit(err)
		}
		timer.Reset(poll)
	}
}

func (o Operator) pass(ctx context.Context, c client) error {
	list, err := c.Resource(o.trigger).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", o.trigger.Resource, err)
	}
	for i := range list.Items {
		if err := o.reconcile(ctx, c, &list.Items[i]); err != nil {
			return fmt.Errorf("%s/%s: %w", list.Items[i].GetKind(), list.Items[i].GetName(), err)
		}
	}
	return nil
}

// client writes under the operator's name.
type client struct {
	dynamic.Interface
	manager string
}

func crdResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func (c client) crd(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	live, err := c.Resource(crdResource()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not there is an answer
	}
	return live, err
}

func (c client) create(ctx context.Context, crd *unstructured.Unstructured) error {
	_, err := c.Resource(crdResource()).Create(ctx, crd, metav1.CreateOptions{FieldManager: c.manager})
	return err
}

// takeOver puts the wanted spec, labels and owners on a CRD that exists, unless they are there.
func (c client) takeOver(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	if live.GetLabels()["managed-by"] == c.manager {
		return nil
	}
	next := live.DeepCopy()
	next.Object["spec"] = wanted.Object["spec"]
	next.SetLabels(wanted.GetLabels())
	next.SetOwnerReferences(wanted.GetOwnerReferences())
	_, err := c.Resource(crdResource()).Update(ctx, next, metav1.UpdateOptions{FieldManager: c.manager})
	return err
}

// condition sets one condition of an object, if it is not as it should be.
func (c client) condition(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured, kind, status, reason, message string) error {
	wanted := map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range list {
		if old, ok := entry.(map[string]any); ok && old["type"] == kind && old["status"] == status && old["message"] == message {
			return nil
		}
	}
	next := o.DeepCopy()
	if err := unstructured.SetNestedSlice(next.Object, []any{wanted}, "status", "conditions"); err != nil {
		return err
	}
	_, err := c.Resource(resource).Namespace(o.GetNamespace()).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: c.manager})
	return err
}

// definition is a CRD that accepts anything.
func definition(group, version, kind, plural, scope string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{"kind": kind, "plural": plural, "singular": plural, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// controlledBy makes an object the controller of a CRD.
func controlledBy(crd, owner *unstructured.Unstructured) *unstructured.Unstructured {
	yes := true
	crd.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes,
	}})
	return crd
}

func labelled(crd *unstructured.Unstructured, pairs ...string) *unstructured.Unstructured {
	labels := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	crd.SetLabels(labels)
	return crd
}

func text(o *unstructured.Unstructured, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}
