package wait

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Flux's controllers that tiers depend on.
const (
	kustomizeController = "kustomize-controller"
	sourceController    = "source-controller"
	helmController      = "helm-controller"
)

// Controllers tells, without a write, whether Flux's controllers work, by their names: a
// leader-election Lease that was renewed lately says alive, whatever else there is; a Deployment
// without an available replica, or a Lease that nobody renews any more, says stopped. Where there is
// neither, as with controllers that run outside the cluster, the state is unknown.
//
// The Leases are those of Flux's managers, "<controller>-leader-election" (main.go of each
// controller), whose holders renew them several times in the leaseDurationSeconds they carry.
// It makes two requests; unread says what could not be read.
func Controllers(ctx context.Context, client dynamic.Interface, namespace string, now time.Time) (facts map[string]ControllerFact, unread []string) {
	deployments := byName(ctx, client, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace, &unread)
	leases := byName(ctx, client, schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, namespace, &unread)
	facts = map[string]ControllerFact{}
	for _, name := range []string{kustomizeController, sourceController, helmController} {
		fact := controllerFact(deployments[name], leases[name+"-leader-election"], now)
		fact.Flags = commandLine(deployments[name])
		facts[name] = fact
	}
	return facts, unread
}

func byName(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, unread *[]string) map[string]*unstructured.Unstructured {
	list, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		text := fmt.Sprintf("reading the %s of namespace %s: %v", gvr.Resource, namespace, err)
		if apierrors.IsForbidden(err) {
			text = fmt.Sprintf("no permission to read the %s of namespace %s", gvr.Resource, namespace)
		}
		*unread = append(*unread, text)
		return nil
	}
	objects := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		objects[list.Items[i].GetName()] = &list.Items[i]
	}
	return objects
}

func controllerFact(deployment, lease *unstructured.Unstructured, now time.Time) ControllerFact {
	stale, since, told := staleLease(lease, now)
	switch {
	case told && !stale:
		return ControllerFact{State: ControllerAlive, Message: "its lease is renewed", Since: since}
	case deployment != nil:
		available, _, _ := unstructured.NestedInt64(deployment.Object, "status", "availableReplicas")
		wanted, set, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
		switch {
		case available > 0:
			return ControllerFact{State: ControllerAlive, Message: "its Deployment is available"}
		case set && wanted == 0:
			return ControllerFact{State: ControllerStopped, Message: "its Deployment is scaled to 0", Since: since}
		}
		return ControllerFact{State: ControllerStopped, Message: "its Deployment has no available replica", Since: since}
	case told:
		return ControllerFact{State: ControllerStopped, Message: fmt.Sprintf("nobody has renewed its lease for %s", roughly(now.Sub(since))), Since: since}
	}
	return ControllerFact{State: ControllerUnknown, Message: "there is no Deployment and no Lease of that name to tell"}
}

// staleLease reports whether a lease has not been renewed for twice its duration; told is false
// without a lease that says when it was renewed. Clocks may differ: the factor allows for that.
func staleLease(lease *unstructured.Unstructured, now time.Time) (stale bool, renewed time.Time, told bool) {
	if lease == nil {
		return false, time.Time{}, false
	}
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	renewed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return false, time.Time{}, false
	}
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	if seconds <= 0 {
		seconds = 35
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder == "" || now.Sub(renewed) > 2*time.Duration(seconds)*time.Second, renewed, true
}
