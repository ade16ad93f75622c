// Package helm stands in for helm-controller, which cannot be built here. It does to the API what
// the real one does first of all: it renders a release's chart with Helm's own library and the
// release's values, creates what the crds folder holds, applies the rest server-side, and reports
// Ready. It keeps no release history and knows no tests, hooks, upgrades or rollbacks.
//
// Charts are not fetched: they are handed over by name, which is what the release must name.
package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const manager = "helm-controller"

// Run works until ctx ends and then returns nil. Errors are reported to emit, which may be nil, and
// the work is tried again.
func Run(ctx context.Context, config *rest.Config, charts map[string]*chart.Chart, emit func(error)) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "helm-controller (stand-in)"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c := &controller{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer)), charts: charts}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := c.pass(ctx); err != nil && ctx.Err() == nil && emit != nil {
			emit(err)
		}
		timer.Reset(250 * time.Millisecond)
	}
}

type controller struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	charts map[string]*chart.Chart
}

func releases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
}

func (c *controller) pass(ctx context.Context) error {
	list, err := c.client.Resource(releases()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing HelmReleases: %w", err)
	}
	var errs []error
	for i := range list.Items {
		r := &list.Items[i]
		observed, _, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration")
		if observed == r.GetGeneration() {
			continue
		}
		if err := c.install(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("HelmRelease/%s/%s: %w", r.GetNamespace(), r.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

func (c *controller) install(ctx context.Context, r *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(r.Object, "spec", "chart", "spec", "chart")
	ch := c.charts[name]
	if ch == nil {
		return fmt.Errorf("there is no chart %q", name)
	}
	if policy, _, _ := unstructured.NestedString(r.Object, "spec", "install", "crds"); policy != "Skip" {
		for _, crd := range ch.CRDObjects() {
			if err := c.createAll(ctx, crd.File.Data); err != nil {
				return err
			}
		}
	}
	values, _, _ := unstructured.NestedMap(r.Object, "spec", "values")
	options := common.ReleaseOptions{Name: r.GetName(), Namespace: r.GetNamespace(), Revision: 1, IsInstall: true}
	all, err := commonutil.ToRenderValues(ch, values, options, common.DefaultCapabilities.Copy())
	if err != nil {
		return err
	}
	rendered, err := engine.Render(ch, all)
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if err := c.applyAll(ctx, r, []byte(rendered[file])); err != nil {
			return err
		}
	}
	return c.ready(ctx, r)
}

func decode(data []byte, each func(*unstructured.Unstructured) error) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := each(o); err != nil {
			return err
		}
	}
}

// createAll creates what is absent, as Helm does with the crds folder.
func (c *controller) createAll(ctx context.Context, data []byte) error {
	return decode(data, func(o *unstructured.Unstructured) error {
		resource, err := c.resource(o)
		if err != nil {
			return err
		}
		_, err = resource.Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (c *controller) applyAll(ctx context.Context, r *unstructured.Unstructured, data []byte) error {
	return decode(data, func(o *unstructured.Unstructured) error {
		resource, err := c.resource(o)
		if err != nil {
			return err
		}
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = r.GetName(), r.GetNamespace()
		// Helm refuses to adopt what is not marked as the release's own.
		live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err == nil && live.GetAnnotations()["meta.helm.sh/release-name"] != r.GetName() {
			return fmt.Errorf("%s %q exists and cannot be imported into the current release: invalid ownership metadata", o.GetKind(), o.GetName())
		}
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
		_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
		return err
	})
}

func (c *controller) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource), nil
	}
	if strings.TrimSpace(o.GetNamespace()) == "" {
		o.SetNamespace("default")
	}
	return c.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

func (c *controller) ready(ctx context.Context, r *unstructured.Unstructured) error {
	next := r.DeepCopy()
	next.Object["status"] = map[string]any{
		"observedGeneration": r.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "Helm install succeeded",
			"lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339), "observedGeneration": r.GetGeneration(),
		}},
	}
	_, err := c.client.Resource(releases()).Namespace(r.GetNamespace()).UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: manager})
	return err
}
