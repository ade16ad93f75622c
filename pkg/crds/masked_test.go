package crds

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// TestRefusalQuotesNothingOfASecret: the API server quotes the value that it does not accept, which
// may have come from a Secret.
func TestRefusalQuotesNothingOfASecret(t *testing.T) {
	answer := apierrors.NewInvalid(schema.GroupKind{Group: "x.example", Kind: "Thing"}, "it", field.ErrorList{
		field.Invalid(field.NewPath("spec", "host"), "canary host", "must be a host"),
		field.NotSupported(field.NewPath("spec", "mode"), "canary", []string{"a", "b"}),
		field.Duplicate(field.NewPath("spec", "names").Index(1), "canary"),
	})
	for kind, want := range map[string]string{"Secret": "canary", "ConfigMap": ""} {
		tier := &tiers.Tier{Kustomization: &kustomizev1.Kustomization{}}
		tier.Kustomization.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: kind, Name: "vars"}}}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "x.example/v1", "kind": "Thing"}}
		o.SetName("it")
		err := refusal(wanted{Object: render.Object{Unstructured: o}, tier: tier}, true, answer)
		if text := err.Error(); strings.Contains(text, "canary") != (want == "") || !strings.Contains(text, "spec.host") || !strings.Contains(text, "must be a host") {
			t.Errorf("variables from a %s: %s", kind, text)
		}
		if !apierrors.IsInvalid(err.(*RefusedError).Err) { //nolint:errorlint // its own type is what is tested
			t.Errorf("%v: the reason is lost", err)
		}
	}
}
