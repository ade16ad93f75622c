package cdi

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// keepProfiles gives every StorageClass its StorageProfile.
func (op *operator) keepProfiles(ctx context.Context) error {
	classes, err := op.client.Resource(storageClasses()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing StorageClasses: %w", err)
	}
	profiles, err := op.client.Resource(storageProfiles()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing StorageProfiles: %w", err)
	}
	live := map[string]*unstructured.Unstructured{}
	for i := range profiles.Items {
		live[profiles.Items[i].GetName()] = &profiles.Items[i]
	}
	for i := range classes.Items {
		class := &classes.Items[i]
		if err := op.keepProfile(ctx, class, live[class.GetName()]); err != nil {
			return fmt.Errorf("StorageProfile/%s: %w", class.GetName(), err)
		}
	}
	return nil
}

func (op *operator) keepProfile(ctx context.Context, class, profile *unstructured.Unstructured) error {
	client := op.client.Resource(storageProfiles())
	if profile == nil {
		empty := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/" + version, "kind": "StorageProfile", "spec": map[string]any{},
		}}
		empty.SetName(class.GetName())
		empty.SetLabels(map[string]string{"app": "containerized-data-importer", "cdi.kubevirt.io": ""})
		made, err := client.Create(ctx, empty, metav1.CreateOptions{FieldManager: profileManager})
		if err != nil {
			return ignoreAlreadyExists(err)
		}
		op.say("StorageProfile/"+class.GetName(), "Created")
		profile = made
	}
	status := profileStatus(class, profile)
	if current, _, _ := unstructured.NestedMap(profile.Object, "status"); reflect.DeepEqual(current, status) {
		return nil
	}
	profile = profile.DeepCopy()
	if err := unstructured.SetNestedMap(profile.Object, status, "status"); err != nil {
		return err
	}
	_, err := client.UpdateStatus(ctx, profile, metav1.UpdateOptions{FieldManager: profileManager})
	return err
}

// profileStatus is what the spec asks for, and a guess where it asks for nothing.
func profileStatus(class, profile *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(profile.Object, "spec")
	status := map[string]any{
		"storageClass":               class.GetName(),
		"cloneStrategy":              "copy",
		"dataImportCronSourceFormat": "pvc",
		"claimPropertySets": []any{map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Filesystem",
		}},
	}
	if provisioner, ok, _ := unstructured.NestedString(class.Object, "provisioner"); ok {
		status["provisioner"] = provisioner
	}
	for _, field := range []string{"claimPropertySets", "cloneStrategy", "dataImportCronSourceFormat", "snapshotClass"} {
		if value, ok := spec[field]; ok {
			status[field] = value
		}
	}
	return status
}

func ignoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
