package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// FieldManager is the field manager of what Apply writes.
const FieldManager = "standup-test-cluster"

// resettableMapper discovers again when it does not know a kind.
type resettableMapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
}

func newMapper(config *rest.Config) (*resettableMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return &resettableMapper{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))}, nil
}

// Resource is a client for the objects of one kind in a namespace, which is
// ignored for kinds of the whole cluster.
func (c *Cluster) Resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", gvk, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// Apply writes the objects of a YAML stream by server-side apply, in their
// order, as FieldManager and by force. It waits until each CRD among them is
// Established.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	objects, err := parse([]byte(manifests))
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.ApplyObject(ctx, o); err != nil {
			return err
		}
		if o.GetKind() == "CustomResourceDefinition" {
			if err := c.waitEstablished(ctx, o.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ApplyObject writes one object as Apply does.
func (c *Cluster) ApplyObject(ctx context.Context, o *unstructured.Unstructured) error {
	return c.patch(ctx, o)
}

// ApplyStatus writes the status of one object as Apply writes the rest.
func (c *Cluster) ApplyStatus(ctx context.Context, o *unstructured.Unstructured) error {
	return c.patch(ctx, o, "status")
}

func (c *Cluster) patch(ctx context.Context, o *unstructured.Unstructured, subresources ...string) error {
	client, err := c.Resource(o.GroupVersionKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	data, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: encoding: %w", objectName(o), err)
	}
	force := true
	_, err = client.Patch(ctx, o.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: FieldManager, Force: &force}, subresources...)
	if err != nil {
		return fmt.Errorf("%s: applying: %w", objectName(o), err)
	}
	return nil
}

// Get reads one object; namespace is ignored for kinds of the whole cluster.
func (c *Cluster) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := c.Resource(gvk, namespace)
	if err != nil {
		return nil, err
	}
	return client.Get(ctx, name, metav1.GetOptions{})
}

// WaitFor reads an object until ok says so, five times a second. An object that
// does not exist, or whose kind does not, is nil to ok. On ctx's end the error
// carries the object's conditions.
func (c *Cluster) WaitFor(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string, ok func(*unstructured.Unstructured) bool) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last *unstructured.Unstructured
	for {
		o, err := c.Get(ctx, gvk, namespace, name)
		if err != nil {
			o = nil
		}
		if o != nil || ctx.Err() == nil {
			last = o
		}
		if ctx.Err() == nil && ok(o) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s/%s/%s: waiting: %w; last seen: %s", gvk.Kind, namespace, name, context.Cause(ctx), conditions(last))
		case <-tick.C:
		}
	}
}

// ConditionTrue tells whether an object's condition of that type is True and
// observed at the object's generation, where the object says at which it is.
func ConditionTrue(o *unstructured.Unstructured, conditionType string) bool {
	if o == nil {
		return false
	}
	if observed, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); found && observed != o.GetGeneration() {
		return false
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if cond, ok := item.(map[string]any); ok && cond["type"] == conditionType {
			return cond["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

func conditions(o *unstructured.Unstructured) string {
	if o == nil {
		return "nothing"
	}
	var out bytes.Buffer
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if cond, ok := item.(map[string]any); ok {
			fmt.Fprintf(&out, "%v=%v %v: %v; ", cond["type"], cond["status"], cond["reason"], cond["message"])
		}
	}
	if out.Len() == 0 {
		return "no conditions"
	}
	return out.String()
}

func objectName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
}

func parse(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
