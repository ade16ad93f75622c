package cdi

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	group   = "cdi.kubevirt.io"
	version = "v1beta1"
)

func cdiResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "cdis"}
}

func storageProfiles() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "storageprofiles"}
}

func storageClasses() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
}

func customResourceDefinitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// runtimeCRDs are the CRDs that the operator registers, with the label by which
// the real ones can be told.
func runtimeCRDs() ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(crdStream), 4096)
	var crds []*unstructured.Unstructured
	for {
		crd := &unstructured.Unstructured{}
		err := decoder.Decode(&crd.Object)
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the stand-in's CRDs: %w", err)
		}
		if len(crd.Object) > 0 {
			crd.SetLabels(map[string]string{"operator.cdi.kubevirt.io": ""})
			crds = append(crds, crd)
		}
	}
}

// own makes cdi the controlling owner of o.
func own(o, cdi *unstructured.Unstructured) {
	yes := true
	o.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: cdi.GetAPIVersion(), Kind: cdi.GetKind(), Name: cdi.GetName(), UID: cdi.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}})
}
