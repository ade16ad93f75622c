package verdicts

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Standin takes the part of helm-controller and of the operators in the generated repositories.
//
// As helm-controller it installs a release that is not suspended, whose dependsOn are Ready and whose
// namespace exists or is to be created: it registers the chart's CRDs and reports Ready. As an
// operator it registers its CRDs once an object of its trigger's kind exists.
type Standin struct {
	charts   map[string][]CRD
	triggers map[CRD][]CRD
	client   dynamic.Interface
	made     map[string]bool
}

// NewStandin prepares the stand-in for some repositories.
func NewStandin(config *rest.Config, repos []*Repository) (*Standin, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = "verdicts (stand-in)", -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	s := &Standin{charts: map[string][]CRD{}, triggers: map[CRD][]CRD{}, client: client, made: map[string]bool{}}
	for _, r := range repos {
		for chart, kinds := range r.Charts {
			s.charts[chart] = kinds
		}
		for trigger, kinds := range r.Triggers {
			s.triggers[trigger] = kinds
		}
	}
	return s, nil
}

// Run works until ctx ends. What fails is tried again.
func (s *Standin) Run(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		_ = errors.Join(s.releases(ctx), s.operators(ctx)) // tried again at the next tick
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func helmReleases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
}

func (s *Standin) releases(ctx context.Context) error {
	list, err := s.client.Resource(helmReleases()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	for _, r := range list.Items {
		observed, _, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration")
		ready[r.GetNamespace()+"/"+r.GetName()] = observed == r.GetGeneration()
	}
	var errs []error
	for i := range list.Items {
		r := &list.Items[i]
		if !ready[r.GetNamespace()+"/"+r.GetName()] {
			errs = append(errs, s.install(ctx, r, ready))
		}
	}
	return errors.Join(errs...)
}

func (s *Standin) install(ctx context.Context, r *unstructured.Unstructured, ready map[string]bool) error {
	if suspended, _, _ := unstructured.NestedBool(r.Object, "spec", "suspend"); suspended {
		return nil
	}
	deps, _, _ := unstructured.NestedSlice(r.Object, "spec", "dependsOn")
	for _, d := range deps {
		m, _ := d.(map[string]any)
		if name, _ := m["name"].(string); !ready[r.GetNamespace()+"/"+name] {
			return nil
		}
	}
	if target, _, _ := unstructured.NestedString(r.Object, "spec", "targetNamespace"); target != "" {
		create, _, _ := unstructured.NestedBool(r.Object, "spec", "install", "createNamespace")
		if ok, err := s.namespace(ctx, target, create); !ok || err != nil {
			return err
		}
	}
	chart, _, _ := unstructured.NestedString(r.Object, "spec", "chart", "spec", "chart")
	if err := s.register(ctx, s.charts[chart]); err != nil {
		return err
	}
	next := r.DeepCopy()
	next.Object["status"] = map[string]any{
		"observedGeneration": r.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "installed",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": r.GetGeneration(),
		}},
	}
	_, err := s.client.Resource(helmReleases()).Namespace(r.GetNamespace()).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// namespace reports whether a namespace exists, after having created it where that is asked for.
func (s *Standin) namespace(ctx context.Context, name string, create bool) (bool, error) {
	client := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	_, err := client.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err == nil, err
	}
	if !create {
		return false, nil
	}
	_, err = client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	return err == nil, err
}

func (s *Standin) operators(ctx context.Context) error {
	var errs []error
	for trigger, kinds := range s.triggers {
		list, err := s.client.Resource(schema.GroupVersionResource{Group: trigger.Group, Version: "v1", Resource: trigger.Plural()}).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, err)
		case len(list.Items) > 0:
			errs = append(errs, s.register(ctx, kinds))
		}
	}
	return errors.Join(errs...)
}

// register creates CRDs that are not there yet.
func (s *Standin) register(ctx context.Context, kinds []CRD) error {
	for _, k := range kinds {
		if s.made[k.Group] {
			continue
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(definition(k)), &crd.Object); err != nil {
			return err
		}
		_, err := s.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
			Create(ctx, crd, metav1.CreateOptions{FieldManager: "verdicts"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		s.made[k.Group] = true
	}
	return nil
}
