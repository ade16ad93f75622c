package flux

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ApplyStage is one of the stages in which kustomize-controller applies a tier. Every object of a
// stage is dry-run before any is applied, and the first error ends the pass; stages before it stay
// on the cluster.
type ApplyStage int

// The stages, in the order of their application.
const (
	// StageDefinitions: CRDs, Namespaces and ClusterRoles; waited for before the next stage.
	StageDefinitions ApplyStage = iota + 1
	// StageClasses: kinds whose name ends in Class; waited for before the next stage.
	StageClasses
	// StageCustom: the kinds named by the controller's --custom-apply-stage-kinds.
	StageCustom
	// StageRest: everything else.
	StageRest
)

// String names the stage as messages do.
func (s ApplyStage) String() string {
	switch s {
	case StageDefinitions:
		return "definitions"
	case StageClasses:
		return "classes"
	case StageCustom:
		return "custom"
	case StageRest:
		return "rest"
	}
	return "unknown"
}

// Stage tells in which stage an object is applied. custom holds the kinds of the controller's
// --custom-apply-stage-kinds; nil is the default.
//
// It mirrors ApplyAllStaged in fluxcd/pkg's ssa/manager_apply.go and asks the same predicates.
func Stage(obj *unstructured.Unstructured, custom map[schema.GroupKind]struct{}) ApplyStage {
	switch {
	case ssautil.IsClusterDefinition(obj):
		return StageDefinitions
	case ssautil.IsClassDefinition(obj):
		return StageClasses
	case ssautil.IsCustomStage(obj, custom):
		return StageCustom
	}
	return StageRest
}

// Skipped reports whether kustomize-controller leaves an object out of its pass before the dry-run,
// so that neither its kind nor its content matters: the manifest or the live object opts out
// (kustomize.toolkit.fluxcd.io/reconcile: disabled, …/ssa: Ignore), or the object exists and the
// manifest says …/ssa: IfNotPresent. Keys may be labels or annotations. live is nil when the object
// is not on the cluster.
//
// It mirrors shouldSkipApply in fluxcd/pkg's ssa/manager_apply.go with the selectors that apply in
// kustomize-controller's internal/controller/kustomization_controller.go sets.
func Skipped(manifest, live *unstructured.Unstructured) bool {
	exclude := map[string]string{
		kustomizev1.GroupVersion.Group + "/reconcile": kustomizev1.DisabledValue,
		kustomizev1.GroupVersion.Group + "/ssa":       kustomizev1.IgnoreValue,
	}
	if ssautil.AnyInMetadata(manifest, exclude) {
		return true
	}
	if live == nil {
		return false
	}
	return ssautil.AnyInMetadata(live, exclude) || ssautil.AnyInMetadata(manifest, map[string]string{
		kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.IfNotPresentValue,
	})
}
