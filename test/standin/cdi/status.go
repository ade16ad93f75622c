package cdi

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const phaseDeployed = "Deployed"

// state is a phase with the conditions that go with it.
type state struct {
	phase                            string
	available, progressing, degraded metav1.ConditionStatus
	reason, message                  string
}

func deploying() state {
	return state{"Deploying", metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionFalse, "DeployStarted", "Started Deployment"}
}

func deployed() state {
	return state{phaseDeployed, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse, "DeployCompleted", "Deployment Completed"}
}

func failed(message string) state {
	return state{"Error", metav1.ConditionFalse, metav1.ConditionFalse, metav1.ConditionTrue, "ConfigError", message}
}

// setStatus writes a state, and the finalizer of a CDI that is being looked
// after, where they differ from what is there. Whether the CDI's CRD has a status
// subresource is up to who wrote it; the real one has none.
func (op *operator) setStatus(ctx context.Context, cdi *unstructured.Unstructured, s state) error {
	wanted := cdi.DeepCopy()
	if s.phase != "Error" && !slices.Contains(wanted.GetFinalizers(), finalizer) {
		wanted.SetFinalizers(append(wanted.GetFinalizers(), finalizer))
		updated, err := op.client.Resource(cdiResource()).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: manager})
		if err != nil {
			return fmt.Errorf("CDI/%s: adding the finalizer: %w", cdi.GetName(), err)
		}
		wanted = updated
	}
	status, _, _ := unstructured.NestedMap(wanted.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	before := map[string]any{"phase": status["phase"], "conditions": status["conditions"]}
	status["phase"] = s.phase
	status["conditions"] = s.conditions(before["conditions"])
	if reflect.DeepEqual(before, map[string]any{"phase": status["phase"], "conditions": status["conditions"]}) {
		return nil
	}
	if err := unstructured.SetNestedMap(wanted.Object, status, "status"); err != nil {
		return fmt.Errorf("CDI/%s: setting the status: %w", cdi.GetName(), err)
	}
	client := op.client.Resource(cdiResource())
	_, err := client.UpdateStatus(ctx, wanted, metav1.UpdateOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		_, err = client.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: manager})
	}
	if err != nil {
		return fmt.Errorf("CDI/%s: writing the status: %w", cdi.GetName(), err)
	}
	return nil
}

// conditions are those of the state, with the times of before where a status has
// not changed.
func (s state) conditions(before any) []any {
	old, _ := before.([]any)
	condition := func(kind string, status metav1.ConditionStatus) any {
		c := map[string]any{"type": kind, "status": string(status)}
		if status == metav1.ConditionTrue {
			c["reason"], c["message"] = s.reason, s.message
		}
		now := time.Now().UTC().Format(time.RFC3339)
		c["lastTransitionTime"], c["lastHeartbeatTime"] = now, now
		for _, item := range old {
			if was, ok := item.(map[string]any); ok && was["type"] == kind && was["status"] == string(status) {
				c["lastTransitionTime"], c["lastHeartbeatTime"] = was["lastTransitionTime"], was["lastHeartbeatTime"]
			}
		}
		return c
	}
	return []any{
		condition("Available", s.available),
		condition("Progressing", s.progressing),
		condition("Degraded", s.degraded),
	}
}

// letGo removes the finalizer of a CDI that is being deleted.
func (op *operator) letGo(ctx context.Context, cdi *unstructured.Unstructured) error {
	kept := slices.DeleteFunc(cdi.GetFinalizers(), func(f string) bool { return f == finalizer })
	if len(kept) == len(cdi.GetFinalizers()) {
		return nil
	}
	cdi = cdi.DeepCopy()
	cdi.SetFinalizers(kept)
	_, err := op.client.Resource(cdiResource()).Update(ctx, cdi, metav1.UpdateOptions{FieldManager: manager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("CDI/%s: removing the finalizer: %w", cdi.GetName(), err)
	}
	return nil
}

func conditionStatus(o *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
