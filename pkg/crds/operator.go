package crds

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// notRunning looks for the workload of the operator that must answer a trigger.
func (f *freer) notRunning(ctx context.Context, planned Planned, _ *unstructured.Unstructured) error {
	operator := planned.Origin.Operator
	if operator == nil {
		return nil
	}
	runner := operator.Operator
	if planned.Origin.Startup {
		runner = operator.Startup
	}
	if runner == nil || len(runner.Workloads) == 0 {
		return nil
	}
	problem := &OperatorNotRunningError{Operator: operator.Name, Object: planned.Origin.Object.ID(), Message: "no workload of it exists"}
	for _, workload := range f.workloads(ctx, runner.Workloads) {
		available, message := isAvailable(workload)
		if available {
			return nil
		}
		problem.Workload, problem.Message = render.Object{Unstructured: workload}.ID(), message
	}
	return problem
}

// workloads finds Deployments, StatefulSets and DaemonSets by name, in every namespace.
func (f *freer) workloads(ctx context.Context, names []string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, resource := range []string{"deployments", "statefulsets", "daemonsets"} {
		for _, name := range names {
			list, err := f.clients.Dynamic.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}).
				List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			if err != nil {
				continue // not allowed to look: nothing can be said
			}
			for i := range list.Items {
				found = append(found, &list.Items[i])
			}
		}
	}
	return found
}

func isAvailable(w *unstructured.Unstructured) (bool, string) {
	number := func(fields ...string) int64 { n, _, _ := unstructured.NestedInt64(w.Object, fields...); return n }
	if w.GetKind() == "DaemonSet" {
		if ready := number("status", "numberReady"); ready == 0 {
			return false, "none of its pods is ready"
		}
		return true, ""
	}
	wanted, set, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
	if set && wanted == 0 {
		return false, "it is scaled to 0"
	}
	if number("status", "readyReplicas") == 0 {
		return false, "none of its pods is ready"
	}
	return true, ""
}

// orphans recognises an operator that refuses to deploy because CRDs that it means to create exist
// already. Only CRDs count that were there before this call and that the operator does not take for
// its own; an operator that has begun to report on its trigger is past that check.
func (f *freer) orphans(ctx context.Context, planned Planned, live *unstructured.Unstructured) error {
	operator := planned.Origin.Operator
	if operator == nil || operator.Existing != Refuses {
		return nil
	}
	if status, _, _ := unstructured.NestedMap(liveObject(live), "status"); len(status) > 0 {
		return nil
	}
	var names []string
	for _, creation := range operator.Creates {
		for _, kind := range creation.created(planned.Origin.Object) {
			if !kind.exact() || kind.plural == "" || len(f.before.Versions(kind.GroupKind)) == 0 {
				continue
			}
			name := kind.plural + "." + kind.Group
			crd, err := f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
			if err == nil && !operator.takesForItsOwn(crd) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &OrphanError{Operator: operator.Name, Object: planned.Origin.Object.ID(), CRDs: names, Link: operator.Evidence.Link}
}

func liveObject(live *unstructured.Unstructured) map[string]any {
	if live == nil {
		return nil
	}
	return live.Object
}

// takesForItsOwn reports whether an operator that refuses CRDs of others accepts this one: it
// carries the labels by which the operator knows its own.
func (o *Operator) takesForItsOwn(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if len(o.Labelled) == 0 {
		return false
	}
	for key, value := range o.Labelled {
		if crd.Labels[key] != value {
			return false
		}
	}
	return true
}

// checkOrphans refuses before the first write what is known not to work.
func (f *freer) checkOrphans(ctx context.Context, round []Planned) error {
	for _, planned := range round {
		if err := f.orphans(ctx, planned, f.liveTrigger(ctx, planned.Origin.Object)); err != nil {
			return err
		}
	}
	return nil
}
