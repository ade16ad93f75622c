package wait

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// pods reads the pods behind a workload and keeps those that do not run, sorted by name.
func (g *gatherer) pods(ctx context.Context, workload *unstructured.Unstructured) []PodFact {
	var selector string
	switch workload.GetKind() {
	case "Pod":
		return podFacts([]unstructured.Unstructured{*workload})
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
		var labels metav1.LabelSelector
		raw, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
		if _, err := typed(&unstructured.Unstructured{Object: raw}, &labels); err != nil || len(raw) == 0 {
			return nil
		}
		selector = metav1.FormatLabelSelector(&labels)
	default:
		return nil
	}
	list, err := g.clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		Namespace(workload.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		g.cannot("the pods of namespace "+workload.GetNamespace(), err)
		return nil
	}
	return podFacts(list.Items)
}

func podFacts(pods []unstructured.Unstructured) []PodFact {
	var facts []PodFact
	for _, pod := range pods {
		fact := PodFact{Name: pod.GetName()}
		fact.Phase, _, _ = unstructured.NestedString(pod.Object, "status", "phase")
		for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
			statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
			for _, s := range statuses {
				if reason := containerReason(s); reason != "" {
					fact.Waiting = append(fact.Waiting, reason)
				}
			}
		}
		fact.Waiting = append(fact.Waiting, unscheduled(pod)...)
		if fact.Phase != "Running" && fact.Phase != "Succeeded" || len(fact.Waiting) > 0 {
			facts = append(facts, fact)
		}
	}
	slices.SortFunc(facts, func(a, b PodFact) int { return cmp.Compare(a.Name, b.Name) })
	return facts[:min(len(facts), maxPods)]
}

// containerReason says why a container waits, or with what it last ended if it keeps failing.
func containerReason(s any) string {
	container, _ := s.(map[string]any)
	name, _, _ := unstructured.NestedString(container, "name")
	reason, _, _ := unstructured.NestedString(container, "state", "waiting", "reason")
	message, _, _ := unstructured.NestedString(container, "state", "waiting", "message")
	if reason == "" || reason == "ContainerCreating" || reason == "PodInitializing" {
		if code, ok, _ := unstructured.NestedInt64(container, "state", "terminated", "exitCode"); ok && code != 0 {
			return fmt.Sprintf("%s: exited with code %d", name, code)
		}
		return ""
	}
	if message == "" {
		return name + ": " + reason
	}
	return name + ": " + reason + ": " + Mask(firstLine(message))
}

func unscheduled(pod unstructured.Unstructured) []string {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "PodScheduled" && condition["status"] == "False" {
			message, _ := condition["message"].(string)
			return []string{"not scheduled: " + firstLine(message)}
		}
	}
	return nil
}

// warningsIn reads a namespace's warnings, once, the latest first.
func (g *gatherer) warningsIn(ctx context.Context, namespace string) []unstructured.Unstructured {
	if events, read := g.events[namespace]; read {
		return events
	}
	var events []unstructured.Unstructured
	list, err := g.clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).
		Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning", Limit: 500})
	if err != nil {
		g.cannot("the events of namespace "+namespace, err)
	} else {
		events = list.Items
		slices.SortStableFunc(events, func(a, b unstructured.Unstructured) int { return cmp.Compare(eventTime(b), eventTime(a)) })
	}
	g.events[namespace] = events
	return events
}

// lastFailure reads what a tier's last failed pass ended with: kustomize-controller makes a Warning
// of it, whose reason is the condition's and which is annotated with the revision (event in its
// internal/controller/kustomization_controller.go).
func (g *gatherer) lastFailure(ctx context.Context, key tiers.Key) {
	for _, event := range g.warningsIn(ctx, key.Namespace) {
		kind, _, _ := unstructured.NestedString(event.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
		if kind != kustomizev1.KustomizationKind || name != key.Name {
			continue
		}
		failure := LastFailure{Revision: event.GetAnnotations()[kustomizev1.GroupVersion.Group+"/revision"]}
		failure.Reason, _, _ = unstructured.NestedString(event.Object, "reason")
		failure.Message, _, _ = unstructured.NestedString(event.Object, "message")
		failure.At, _ = time.Parse(time.RFC3339Nano, eventTime(event))
		g.evidence.LastFailures[key] = failure
		return
	}
}

// warnings returns the last warnings about the named objects, Kind/name, the latest first.
func (g *gatherer) warnings(ctx context.Context, namespace string, names []string) []string {
	var lines []string
	for _, event := range g.warningsIn(ctx, namespace) {
		kind, _, _ := unstructured.NestedString(event.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
		if !involves(names, kind, name) {
			continue
		}
		reason, _, _ := unstructured.NestedString(event.Object, "reason")
		message, _, _ := unstructured.NestedString(event.Object, "message")
		line := fmt.Sprintf("%s: %s", reason, Mask(firstLine(message)))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		if len(lines) == maxEvents {
			break
		}
	}
	return lines
}

// involves also takes a Deployment's ReplicaSets and a Job's pods: their names begin with its own.
func involves(names []string, kind, name string) bool {
	for _, n := range names {
		k, owner, _ := strings.Cut(n, "/")
		if k == kind && name == owner {
			return true
		}
		if (kind == "ReplicaSet" && k == "Deployment" || kind == "Pod" && k != "Pod") && strings.HasPrefix(name, owner+"-") {
			return true
		}
	}
	return false
}

// eventTime is when an event was last seen, as RFC 3339 text, which sorts by time.
func eventTime(event unstructured.Unstructured) string {
	for _, path := range [][]string{{"lastTimestamp"}, {"series", "lastObservedTime"}, {"eventTime"}} {
		if at, _, _ := unstructured.NestedString(event.Object, path...); at != "" {
			return at
		}
	}
	return event.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")
}
