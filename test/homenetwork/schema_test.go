package homenetwork_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/test/homenetwork"
)

// The kinds that no CRD of the repository describes, because cdi-operator brings
// them.
var runtimeKinds = []string{"StorageProfile", "DataVolume"}

// kind is what a CRD says of one kind.
type kind struct {
	tier   string
	schema *apiextensions.JSONSchemaProps
}

// kindsInGit returns the kinds that the CRDs of all tiers define.
func kindsInGit(t *testing.T, state homenetwork.State) map[schema.GroupVersionKind]kind {
	t.Helper()
	repo := onDisk(t, state)
	found := map[schema.GroupVersionKind]kind{}
	for name, tier := range tiers(t, repo, "prod") {
		for _, object := range build(t, repo, tier.Spec.Path) {
			if object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			var crd apiextensionsv1.CustomResourceDefinition
			decode(t, object, &crd)
			for _, version := range crd.Spec.Versions {
				var props apiextensions.JSONSchemaProps
				if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
					t.Fatalf("%s: %v", id(object), err)
				}
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
				found[gvk] = kind{tier: name, schema: &props}
			}
		}
	}
	return found
}

func decode(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	data, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Errorf("%s: %v", id(object), err)
	}
}

// Flux applies on the server, which refuses an object with a field that its
// schema does not have.
func TestObjectsFitTheirSchemas(t *testing.T) {
	repo, kinds := onDisk(t, homenetwork.Repaired), kindsInGit(t, homenetwork.Repaired)
	for _, tier := range tiers(t, repo, "prod") {
		for _, object := range build(t, repo, tier.Spec.Path) {
			gvk := object.GroupVersionKind()
			switch {
			case strings.HasSuffix(gvk.Group, ".toolkit.fluxcd.io"), gvk.Kind == "CustomResourceDefinition",
				slices.Contains(runtimeKinds, gvk.Kind):
			case object.Object["sops"] != nil: // not an object until it is decrypted
			case kinds[gvk].schema != nil:
				checkCustom(t, object, kinds[gvk].schema)
			default:
				typed, err := scheme.Scheme.New(gvk)
				if err != nil {
					t.Errorf("%s: %v", id(object), err)
					continue
				}
				decode(t, object, typed)
			}
		}
	}
}

func checkCustom(t *testing.T, object *unstructured.Unstructured, props *apiextensions.JSONSchemaProps) {
	t.Helper()
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatalf("%s: %v", id(object), err)
	}
	for _, problem := range structuralschema.ValidateStructural(nil, structural) {
		t.Errorf("schema of %s: %v", object.GetKind(), problem)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatalf("%s: %v", id(object), err)
	}
	for _, problem := range validation.ValidateCustomResource(nil, object.Object, validator) {
		t.Errorf("%s: %v", id(object), problem)
	}
	unknown := pruning.PruneWithOptions(object.DeepCopy().Object, structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, field := range unknown {
		t.Errorf("%s: field %s is not in the schema", id(object), field)
	}
}

// Of the ten kinds of custom resources that platform-config holds while wedged,
// only StorageProfile has no CRD in git; the other nine have it in a tier before.
func TestOnlyStorageProfileIsSecondOrder(t *testing.T) {
	for _, state := range states {
		kinds := kindsInGit(t, state)
		var inGit, elsewhere []string
		for _, object := range build(t, onDisk(t, state), "platform-config") {
			gvk := object.GroupVersionKind()
			if scheme.Scheme.Recognizes(gvk) {
				continue
			}
			if found := kinds[gvk]; found.schema != nil {
				inGit = append(inGit, gvk.Kind+" from "+found.tier)
			} else {
				elsewhere = append(elsewhere, gvk.Kind)
			}
		}
		slices.Sort(inGit)
		want := []string{
			"CDI from platform", "CiliumL2AnnouncementPolicy from cilium", "Cluster from platform",
			"ClusterIssuer from platform", "KeycloakRealmImport from platform", "KubeVirt from platform",
			"PrometheusRule from platform", "ServiceMonitor from platform", "VolumeSnapshotClass from platform",
		}
		if !slices.Equal(inGit, want) {
			t.Errorf("%s: kinds with a CRD in git: %v, want %v", state, inGit, want)
		}
		var wantElsewhere []string
		if state == homenetwork.Wedged {
			wantElsewhere = []string{"StorageProfile", "StorageProfile"}
		}
		if !slices.Equal(elsewhere, wantElsewhere) {
			t.Errorf("%s: kinds without: %v, want %v", state, elsewhere, wantElsewhere)
		}
	}
}

// cdi-operator takes a CRD of its own that is there before it for an orphan.
func TestOnlyOneKindOfCDIIsVendored(t *testing.T) {
	for _, state := range states {
		for gvk := range kindsInGit(t, state) {
			if gvk.Group == "cdi.kubevirt.io" && gvk.Kind != "CDI" {
				t.Errorf("%s: %s is in git", state, gvk)
			}
		}
	}
}
