package crds

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Exported is a CRD that nobody applied, as a file for git.
type Exported struct {
	Name string
	// Owner is what made it.
	Owner Owner
	// File is the name of the file, Data its content: the CRD without status and without what the
	// API server and the owner of this cluster keep in its metadata.
	File string
	Data []byte
}

// Export learns from a healthy cluster which CRDs nobody applied: neither Flux, nor Helm, nor a
// person, nor the platform, as far as [OwnerOf] can tell. They are sorted by name. It writes nothing.
func Export(ctx context.Context, client apiextensions.Interface) ([]Exported, error) {
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the CRDs: %w", err)
	}
	var exported []Exported
	for i := range list.Items {
		owner := OwnerOf(&list.Items[i])
		if owner.By != OwnerController {
			continue
		}
		data, err := clean(&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition/%s: writing: %w", list.Items[i].Name, err)
		}
		exported = append(exported, Exported{Name: list.Items[i].Name, Owner: owner, File: list.Items[i].Name + ".yaml", Data: data})
	}
	slices.SortFunc(exported, func(a, b Exported) int { return strings.Compare(a.Name, b.Name) })
	return exported, nil
}

// clean keeps of a CRD what another cluster can use. Labels stay: some operators know their own CRDs
// by them. The certificate of a conversion webhook is this cluster's own.
func clean(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	c := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels},
		Spec:       *crd.Spec.DeepCopy(),
	}
	for key, value := range crd.Annotations {
		if strings.HasPrefix(key, "api-approved.kubernetes.io") || strings.HasPrefix(key, "controller-gen.kubebuilder.io/") {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value)
		}
	}
	if w := c.Spec.Conversion; w != nil && w.Webhook != nil && w.Webhook.ClientConfig != nil {
		w.Webhook.ClientConfig.CABundle = nil
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return yaml.Marshal(object)
}

// WriteBundle writes exported CRDs into a folder, which is made if it is not there. Files that hold
// what they should are not written again; their names are not returned. Other files of the folder are
// left alone.
func WriteBundle(dir string, exported []Exported) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	for _, e := range exported {
		file := filepath.Join(dir, e.File)
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, e.Data) {
			continue
		}
		if err := os.WriteFile(file, e.Data, 0o644); err != nil {
			return written, fmt.Errorf("writing the bundle: %w", err)
		}
		written = append(written, file)
	}
	return written, nil
}
