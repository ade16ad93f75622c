package wait

import (
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inventoryObject is one entry of a Kustomization's inventory.
type inventoryObject struct {
	object.ObjMetadata
}

func (o inventoryObject) id() string { return objectID(o.GroupKind.Kind, o.Namespace, o.Name) }

// parseInventoryID reads an inventory entry's id, namespace_name_group_kind.
func parseInventoryID(id string) (inventoryObject, bool) {
	parsed, err := object.ParseObjMetadata(id)
	return inventoryObject{parsed}, err == nil
}

// kindsByID tells the group, version and kind of the objects that a tier's messages name: by its
// inventory, its health checks, and, for what is applied before there is an inventory, by heart.
func kindsByID(k *kustomizev1.Kustomization) func(id string) (schema.GroupVersionKind, bool) {
	known := map[string]schema.GroupVersionKind{}
	if k.Status.Inventory != nil {
		for _, entry := range k.Status.Inventory.Entries {
			if object, ok := parseInventoryID(entry.ID); ok {
				known[object.id()] = object.GroupKind.WithVersion(entry.Version)
			}
		}
	}
	for _, check := range k.Spec.HealthChecks {
		known[objectID(check.Kind, check.Namespace, check.Name)] = schema.FromAPIVersionAndKind(check.APIVersion, check.Kind)
	}
	return func(id string) (schema.GroupVersionKind, bool) {
		if gvk, ok := known[id]; ok {
			return gvk, true
		}
		kind, _, _ := strings.Cut(id, "/")
		switch kind {
		case "CustomResourceDefinition":
			return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: kind}, true
		case "Namespace":
			return schema.GroupVersionKind{Version: "v1", Kind: kind}, true
		}
		return schema.GroupVersionKind{}, false
	}
}
