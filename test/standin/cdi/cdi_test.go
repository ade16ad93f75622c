package cdi_test

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/standin/cdi"
)

var (
	cdiGVK        = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "CDI"}
	profileGVK    = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}
	crdGVK        = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	configMapGVK  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deploymentGVK = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// What git holds: the operator's namespace, its one CRD, and, apart, the CR. The
// CRD has no status subresource, as the real one has none.
const installed = `
apiVersion: v1
kind: Namespace
metadata: {name: cdi}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: longhorn-vm}
provisioner: driver.longhorn.io
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cdis.cdi.kubevirt.io}
spec:
  group: cdi.kubevirt.io
  scope: Cluster
  names: {kind: CDI, listKind: CDIList, plural: cdis, singular: cdi}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const cr = `
apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata: {name: cdi}
spec: {imagePullPolicy: IfNotPresent}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cdi-operator, namespace: cdi}
spec:
  selector: {matchLabels: {app: cdi-operator}}
  template:
    metadata: {labels: {app: cdi-operator}}
    spec: {containers: [{name: cdi-operator, image: quay.io/kubevirt/cdi-operator}]}
`

// operatorIn runs the stand-in on a new cluster until the test ends.
func operatorIn(t *testing.T, o cdi.Options) (*cluster.Cluster, *record) {
	t.Helper()
	c := cluster.New(t, cluster.Options{Components: cluster.API()})
	if err := c.Apply(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, done := &record{}, make(chan error, 1)
	go func() { done <- cdi.Run(ctx, c.RESTConfig(), o, events.add) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, events
}

type record struct {
	mu   sync.Mutex
	list []cdi.Event
}

func (r *record) add(e cdi.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *record) has(want cdi.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.list {
		if e == want {
			return true
		}
	}
	return false
}

func deployed(o *unstructured.Unstructured) bool {
	if o == nil {
		return false
	}
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return phase == "Deployed" && cluster.ConditionTrue(o, "Available")
}

func exists(o *unstructured.Unstructured) bool { return o != nil }

func wait(t *testing.T, c *cluster.Cluster, gvk schema.GroupVersionKind, namespace, name string, ok func(*unstructured.Unstructured) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.WaitFor(ctx, gvk, namespace, name, ok); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, c *cluster.Cluster, manifests string) {
	t.Helper()
	if err := c.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
}

func TestOperatorDeploysOnceItsDeploymentIsAvailable(t *testing.T) {
	c, _ := operatorIn(t, cdi.Options{})
	apply(t, c, cr)
	apply(t, c, deployment)
	time.Sleep(time.Second)
	if _, err := c.Get(t.Context(), configMapGVK, "cdi", cdi.ConfigMap); !apierrors.IsNotFound(err) {
		t.Fatalf("it works before its Deployment is Available: %v", err)
	}

	available := &unstructured.Unstructured{}
	available.SetGroupVersionKind(deploymentGVK)
	available.SetNamespace("cdi")
	available.SetName("cdi-operator")
	available.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Available", "status": "True", "reason": "Test", "message": "no pods here",
	}}}
	if err := c.ApplyStatus(t.Context(), available); err != nil {
		t.Fatal(err)
	}
	wait(t, c, cdiGVK, "", "cdi", deployed)

	config, err := c.Get(t.Context(), configMapGVK, "cdi", cdi.ConfigMap)
	if err != nil {
		t.Fatal(err)
	}
	live, err := c.Get(t.Context(), cdiGVK, "", "cdi")
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(config, live) {
		t.Error("the ConfigMap is not the CDI's")
	}
	for _, field := range live.GetManagedFields() {
		if field.Manager != cluster.FieldManager && ownsSpec(t, field) {
			t.Errorf("%s owns fields of the CDI's spec", field.Manager)
		}
	}
	for _, name := range []string{
		"datavolumes", "storageprofiles", "cdiconfigs", "datasources", "dataimportcrons", "objecttransfers",
		"volumeimportsources", "volumeuploadsources", "volumeclonesources",
	} {
		crd, err := c.Get(t.Context(), crdGVK, "", name+".cdi.kubevirt.io")
		if err != nil {
			t.Error(err)
			continue
		}
		if !cluster.ConditionTrue(crd, "Established") || cluster.ConditionTrue(crd, "NonStructuralSchema") {
			t.Errorf("%s is not established with a structural schema", name)
		}
	}
}

func ownsSpec(t *testing.T, field metav1.ManagedFieldsEntry) bool {
	t.Helper()
	var owned map[string]any
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(`{"kind":"x","f":` + string(field.FieldsV1.GetRawBytes()) + `}`)); err != nil {
		t.Fatal(err)
	}
	owned, _, _ = unstructured.NestedMap(o.Object, "f")
	_, ok := owned["f:spec"]
	return ok
}

func TestOperatorNeverDeploysOverACRDItDidNotMake(t *testing.T) {
	c, events := operatorIn(t, cdi.Options{Ungated: true})
	apply(t, c, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: storageprofiles.cdi.kubevirt.io}
spec:
  group: cdi.kubevirt.io
  scope: Cluster
  names: {kind: StorageProfile, listKind: StorageProfileList, plural: storageprofiles, singular: storageprofile}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	apply(t, c, cr)
	time.Sleep(3 * time.Second)
	if _, err := c.Get(t.Context(), configMapGVK, "cdi", cdi.ConfigMap); !apierrors.IsNotFound(err) {
		t.Errorf("it has begun to deploy: %v", err)
	}
	if _, err := c.Get(t.Context(), crdGVK, "", "datavolumes.cdi.kubevirt.io"); !apierrors.IsNotFound(err) {
		t.Errorf("it has registered its CRDs: %v", err)
	}
	live, err := c.Get(t.Context(), cdiGVK, "", "cdi")
	if err != nil {
		t.Fatal(err)
	}
	if deployed(live) {
		t.Error("it says that it is deployed")
	}
	if want := (cdi.Event{Object: "CustomResourceDefinition/storageprofiles.cdi.kubevirt.io", Message: "Orphan object exists"}); !events.has(want) {
		t.Errorf("no event %+v", want)
	}

	crds, err := c.Resource(crdGVK, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Delete(t.Context(), "storageprofiles.cdi.kubevirt.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, c, cdiGVK, "", "cdi", deployed)
}

func TestEveryStorageClassHasAProfile(t *testing.T) {
	c, _ := operatorIn(t, cdi.Options{Ungated: true})
	apply(t, c, cr)
	wait(t, c, profileGVK, "", "longhorn-vm", func(o *unstructured.Unstructured) bool {
		return exists(o) && modes(o, "status") == "ReadWriteOnce" && modes(o, "spec") == ""
	})
	apply(t, c, `
apiVersion: cdi.kubevirt.io/v1beta1
kind: StorageProfile
metadata: {name: longhorn-vm}
spec: {claimPropertySets: [{accessModes: [ReadWriteMany], volumeMode: Block}]}
`)
	wait(t, c, profileGVK, "", "longhorn-vm", func(o *unstructured.Unstructured) bool {
		return exists(o) && modes(o, "status") == "ReadWriteMany"
	})
	before, err := c.Get(t.Context(), profileGVK, "", "longhorn-vm")
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := c.Resource(profileGVK, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := profiles.Delete(t.Context(), "longhorn-vm", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, c, profileGVK, "", "longhorn-vm", func(o *unstructured.Unstructured) bool {
		return exists(o) && o.GetUID() != before.GetUID() && modes(o, "status") == "ReadWriteOnce"
	})
}

// modes is the first access mode of a profile's spec or status.
func modes(o *unstructured.Unstructured, part string) string {
	sets, _, _ := unstructured.NestedSlice(o.Object, part, "claimPropertySets")
	if len(sets) == 0 {
		return ""
	}
	set, _ := sets[0].(map[string]any)
	list, _, _ := unstructured.NestedStringSlice(set, "accessModes")
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func TestDeletedCDITakesItsCRDsAlong(t *testing.T) {
	c, _ := operatorIn(t, cdi.Options{Ungated: true})
	apply(t, c, cr)
	wait(t, c, cdiGVK, "", "cdi", deployed)
	cdis, err := c.Resource(cdiGVK, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := cdis.Delete(t.Context(), "cdi", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := func(o *unstructured.Unstructured) bool { return o == nil }
	wait(t, c, crdGVK, "", "storageprofiles.cdi.kubevirt.io", gone)
	wait(t, c, cdiGVK, "", "cdi", gone)
}
