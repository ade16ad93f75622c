package flux

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func object(apiVersion, kind string, metadata map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

func TestStage(t *testing.T) {
	custom := map[schema.GroupKind]struct{}{{Group: "rbac.authorization.k8s.io", Kind: "Role"}: {}}
	tests := map[string]ApplyStage{
		"apiextensions.k8s.io/v1 CustomResourceDefinition": StageDefinitions,
		"v1 Namespace": StageDefinitions,
		"rbac.authorization.k8s.io/v1 ClusterRole":        StageDefinitions,
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": StageRest,
		"storage.k8s.io/v1 StorageClass":                  StageClasses,
		"cluster.x-k8s.io/v1beta1 ClusterClass":           StageClasses,
		"rbac.authorization.k8s.io/v1 Role":               StageCustom,
		"example.com/v1 Role":                             StageRest,
		"example.com/v1 Namespace":                        StageRest,
		"example.com/v1 ClusterRole":                      StageRest,
		"example.com/v1 CustomResourceDefinition":         StageRest,
		"v1 ConfigMap":                                    StageRest,
	}
	for name, want := range tests {
		apiVersion, kind, _ := strings.Cut(name, " ")
		if got := Stage(object(apiVersion, kind, nil), custom); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestSkipped(t *testing.T) {
	with := func(place, key, value string) *unstructured.Unstructured {
		return object("v1", "ConfigMap", map[string]any{"name": "a", place: map[string]any{"kustomize.toolkit.fluxcd.io/" + key: value}})
	}
	plain := object("v1", "ConfigMap", map[string]any{"name": "a"})
	tests := map[string]struct {
		manifest, live *unstructured.Unstructured
		want           bool
	}{
		"plain":                          {plain, nil, false},
		"plain and live":                 {plain, plain, false},
		"reconcile disabled":             {with("annotations", "reconcile", "disabled"), nil, true},
		"in capitals":                    {with("annotations", "reconcile", "Disabled"), nil, true},
		"as a label":                     {with("labels", "ssa", "Ignore"), nil, true},
		"ignored":                        {with("annotations", "ssa", "Ignore"), nil, true},
		"merged":                         {with("annotations", "ssa", "Merge"), plain, false},
		"if not present, and absent":     {with("annotations", "ssa", "IfNotPresent"), nil, false},
		"if not present, and present":    {with("annotations", "ssa", "IfNotPresent"), plain, true},
		"only the live object opts out":  {plain, with("annotations", "reconcile", "disabled"), true},
		"live says if not present alone": {plain, with("annotations", "ssa", "IfNotPresent"), false},
	}
	for name, test := range tests {
		if got := Skipped(test.manifest, test.live); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
