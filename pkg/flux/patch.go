package flux

import (
	"encoding/json"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FieldManager is the field manager of every write to spec.suspend and to the request annotations.
// It must not begin with "kubectl": kustomize-controller takes such fields over and a parent's next
// pass would undo them.
const FieldManager = "standup"

// PatchType is the type of every patch that this package builds.
const PatchType = types.MergePatchType

// The annotations that ask a controller for a pass, by a change of their value.
const (
	RequestAnnotation = meta.ReconcileRequestAnnotation // reconcile.fluxcd.io/requestedAt
	ForceAnnotation   = meta.ForceRequestAnnotation     // reconcile.fluxcd.io/forceAt
	ResetAnnotation   = helmv2.ResetRequestAnnotation   // reconcile.fluxcd.io/resetAt
)

// Token is the value that standup writes to [RequestAnnotation], the form that flux itself uses.
func Token(now time.Time) string { return now.UTC().Format(time.RFC3339Nano) }

// ResumePatch takes spec.suspend off and asks for a pass, in one merge patch. The field is removed
// rather than set to false, as flux does it: nothing of standup stays in the spec.
func ResumePatch(token string) []byte {
	return encode(map[string]any{
		"metadata": annotations(RequestAnnotation, token),
		"spec":     map[string]any{"suspend": nil},
	})
}

// NudgePatch asks for a pass.
func NudgePatch(token string) []byte {
	return encode(map[string]any{"metadata": annotations(RequestAnnotation, token)})
}

// SuspendPatch sets spec.suspend.
func SuspendPatch() []byte {
	return encode(map[string]any{"spec": map[string]any{"suspend": true}})
}

// ResetPatch asks helm-controller for a pass that forgets the failures counted so far: both
// annotations must have the same value (HandleAnnotationRequest in fluxcd/pkg's
// apis/meta/annotations.go).
func ResetPatch(token string) []byte {
	return encode(map[string]any{"metadata": annotations(RequestAnnotation, token, ResetAnnotation, token)})
}

// ForcePatch asks helm-controller for a pass that installs or upgrades the release whatever its
// state.
func ForcePatch(token string) []byte {
	return encode(map[string]any{"metadata": annotations(RequestAnnotation, token, ForceAnnotation, token)})
}

func annotations(pairs ...string) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return map[string]any{"annotations": values}
}

func encode(patch map[string]any) []byte {
	data, err := json.Marshal(patch) // cannot fail: maps of strings, booleans and nil
	if err != nil {
		return []byte("{}")
	}
	return data
}

// Answered reports whether a pass that began after the last request has ended, from the value of
// [RequestAnnotation] and of status.lastHandledReconcileAt. It says nothing about how the pass
// ended. An object that nobody has made a request of has answered.
func Answered(requestedAt, lastHandled string) bool {
	return requestedAt == "" || requestedAt == lastHandled
}

// SuspendManager names the field manager that owns spec.suspend, and whether any does. Where
// several own it, one that applied it server-side goes first: that is what a GitOps parent does.
// Objects read without managedFields have none.
func SuspendManager(obj metav1.Object) (string, bool) {
	var manager string
	for _, entry := range obj.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owns := fields.Spec["f:suspend"]; !owns {
			continue
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			return entry.Manager, true
		}
		if manager == "" {
			manager = entry.Manager
		}
	}
	return manager, manager != ""
}

// SuspendedInGit reports whether an object's spec.suspend is set and was applied by
// kustomize-controller: its parent's next pass sets it again if someone takes it off.
func SuspendedInGit(obj metav1.Object, suspended bool) bool {
	manager, ok := SuspendManager(obj)
	return suspended && ok && manager == "kustomize-controller"
}
