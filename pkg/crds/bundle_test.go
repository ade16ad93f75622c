package crds

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestLoadBundleSaysWhereItIsWrong(t *testing.T) {
	good := crdYAML("x.example", "as", "A", "v1")
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing in it", map[string]string{"README.md": "# hello"}, "reading the bundle: .: there is no CustomResourceDefinition in it"},
		{"another kind", map[string]string{"a.yaml": good + separator + configMap}, "reading the bundle: a.yaml:11: ConfigMap of v1 is not a CustomResourceDefinition"},
		{"twice", map[string]string{"a.yaml": good, "b/c.yaml": good}, "reading the bundle: b/c.yaml:1: as.x.example is there twice, first in a.yaml"},
		{"a wrong name", map[string]string{"a.yaml": strings.Replace(good, "as.x.example", "a.x.example", 1)}, "reading the bundle: a.yaml:1: a.x.example: its name must be as.x.example"},
		{"broken YAML", map[string]string{"a.yaml": "a: [\n"}, "reading the bundle: a.yaml: line 1: did not find expected node content"},
		{"nothing stored", map[string]string{"a.yaml": strings.Replace(good, "storage: true", "storage: false", 1)}, "reading the bundle: a.yaml:1: as.x.example: no version is stored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, data := range test.files {
				tree[name] = &fstest.MapFile{Data: []byte(data)}
			}
			_, err := LoadBundle(tree)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOperatorsThatRefuseABundle(t *testing.T) {
	catalogue := loadDefault(t)
	labelled := func(crd, labels string) string {
		return strings.Replace(crd, "metadata: {", "metadata: {labels: {"+labels+"}, ", 1)
	}
	rgd := objectsOf(t, "a", "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: w}\nspec: {schema: {kind: WebApp}}\n")
	tests := []struct{ name, crd, want string }{
		{"an operator with an orphan check", crdYAML("cdi.kubevirt.io", "storageprofiles", "StorageProfile", "v1beta1"), "KubeVirt CDI"},
		{"the same group, the operator's own kind", crdYAML("cdi.kubevirt.io", "cdis", "CDI", "v1beta1"), ""},
		{"an operator that adopts", crdYAML("cilium.io", "ciliumnodes", "CiliumNode", "v2"), ""},
		{"without the label by which it knows its own", crdYAML("kubevirt.io", "virtualmachines", "VirtualMachine", "v1"), "KubeVirt"},
		{"with it", labelled(crdYAML("kubevirt.io", "virtualmachines", "VirtualMachine", "v1"), "app.kubernetes.io/managed-by: virt-operator"), ""},
		{"a kind that an object in git names", crdYAML("kro.run", "webapps", "WebApp", "v1alpha1"), "kro"},
		{"a kind of that group that no object names", crdYAML("kro.run", "others", "Other", "v1alpha1"), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if o := catalogue.refuser(objectsOf(t, "a", test.crd)[0], rgd); o != nil {
				got = o.Name
			}
			if got != test.want {
				t.Errorf("refused by %q, want %q", got, test.want)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	managed := func(managers ...string) metav1.ObjectMeta {
		var m metav1.ObjectMeta
		for _, name := range managers {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: name})
		}
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kube-apiserver", Subresource: "status"})
		return m
	}
	tests := []struct {
		name string
		meta metav1.ObjectMeta
		want Owner
	}{
		{"a Kustomization", metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "platform", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}, Owner{OwnerFlux, "flux-system/platform"}},
		{"a release", metav1.ObjectMeta{Annotations: map[string]string{"meta.helm.sh/release-name": "certs", "meta.helm.sh/release-namespace": "default"}}, Owner{OwnerHelm, "default/certs"}},
		{"the crds folder of a chart", managed("helm-controller"), Owner{OwnerHelm, "helm-controller"}},
		{"a person", managed("kubectl-client-side-apply"), Owner{OwnerPerson, "kubectl-client-side-apply"}},
		{"k3s", managed("deploy@server"), Owner{OwnerPlatform, "deploy@server"}},
		{"another object", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "CDI", Name: "cdi"}}}, Owner{OwnerController, "CDI/cdi"}},
		{"a controller, by its name alone", managed("cilium-operator-generic"), Owner{OwnerController, "cilium-operator-generic"}},
		{"the operator of Flux, which is not Flux's command line", managed("flux-operator"), Owner{OwnerController, "flux-operator"}},
		{"nothing to go by", managed(), Owner{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := OwnerOf(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: test.meta}); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestExportedFilesCanBeReadBack(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(crdYAML("x.example", "as", "A", "v1")), &crd); err != nil {
		t.Fatal(err)
	}
	crd.UID, crd.ResourceVersion, crd.Labels = "u", "7", map[string]string{"by": "operator"}
	crd.Annotations = map[string]string{"controller-gen.kubebuilder.io/version": "v1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	crd.OwnerReferences = []metav1.OwnerReference{{Kind: "A", Name: "a"}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("secret"), Service: &apiextensionsv1.ServiceReference{Name: "a", Namespace: "b"}},
	}}
	crd.Status.StoredVersions = []string{"v1"}
	data, err := clean(&crd)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"uid", "resourceVersion", "ownerReferences", "status", "caBundle", "last-applied", "creationTimestamp"} {
		if strings.Contains(string(data), gone) {
			t.Errorf("%s is still there:\n%s", gone, data)
		}
	}
	dir := t.TempDir()
	exported := []Exported{{Name: crd.Name, File: crd.Name + ".yaml", Data: data}}
	for _, want := range []int{1, 0} {
		written, err := WriteBundle(dir, exported)
		if err != nil || len(written) != want {
			t.Errorf("wrote %v, %v, want %d", written, err, want)
		}
	}
	bundle, err := LoadBundle(fstest.MapFS{"a.yaml": &fstest.MapFile{Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	if o := bundle.Definitions[0]; o.GetName() != "as.x.example" || o.GetLabels()["by"] != "operator" {
		t.Errorf("%+v", o)
	}
}
