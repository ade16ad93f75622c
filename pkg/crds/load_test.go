package crds

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func loadDefault(t *testing.T) *Catalogue {
	t.Helper()
	c, err := DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryRowOfTheCatalogue(t *testing.T) {
	c := loadDefault(t)
	if len(c.Operators) < 30 || len(c.Charts) < 40 || len(c.Platforms) < 4 {
		t.Fatalf("%d operators, %d charts, %d platforms: rows were lost", len(c.Operators), len(c.Charts), len(c.Platforms))
	}
	// A file in a public repository must be pinned, so that the evidence does not move; a branch is
	// tolerated only for rows that claim less than verification.
	pinned := regexp.MustCompile(`^https://github\.com/[^/]+/[^/]+/blob/[0-9a-f]{12}/`)
	builtin := Builtin()
	for _, o := range c.Operators {
		if o.Line == 0 || o.File != "catalogue.yaml" {
			t.Errorf("%s: no place", o.Name)
		}
		if o.Evidence.Grade == Partial && o.Evidence.Note == "" {
			t.Errorf("%s: graded partial without a note that says which part", o.Name)
		}
		if o.Existing != ExistingUnknown && o.Evidence.Grade == Verified && !pinned.MatchString(o.Evidence.Link) {
			t.Errorf("%s: claims a verified behaviour with a link that moves: %s", o.Name, o.Evidence.Link)
		}
		if o.Trigger != nil && o.Operator == nil && o.Startup == nil && o.Evidence.Grade != Reported {
			t.Errorf("%s: nothing says what runs it", o.Name)
		}
		for _, creation := range o.Creates {
			for _, k := range creation.Kinds {
				if k.Kind == "*" || k.KindFrom != "" {
					continue
				}
				if k.Plural == "" || k.Plural != strings.ToLower(k.Plural) {
					t.Errorf("%s: %s has the plural %q", o.Name, k.Kind, k.Plural)
				}
				if len(builtin.Versions(schema.GroupKind{Group: creation.Group, Kind: k.Kind})) > 0 {
					t.Errorf("%s: %s of %s is Kubernetes' own", o.Name, k.Kind, creation.Group)
				}
			}
		}
	}
	for _, ch := range c.Charts {
		if ch.Line == 0 {
			t.Errorf("%s: no place", ch.Name)
		}
		if ch.Evidence.Grade == Verified && !pinned.MatchString(ch.Evidence.Link) {
			t.Errorf("%s: verified, with a link that moves: %s", ch.Name, ch.Evidence.Link)
		}
	}
}

func TestCatalogueErrorsNameFileAndLine(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"not YAML", "version: 1\noperators: [\n", "reading mine.yaml:2: did not find expected node content"},
		{"unknown field", "version: 1\ncharts:\n- name: a\n  color: red\n", "reading mine.yaml:4: field color not found in Chart"},
		{"another version", "version: 7\n", "reading mine.yaml:1: version must be 1, not 7"},
		{
			"operator without anything", "version: 1\noperators:\n- name: a\n", strings.Join([]string{
				`reading mine.yaml:3: operator "a" has neither trigger nor startup`,
				`reading mine.yaml:3: operator "a": existing is "", not one of adopts, refuses, unknown`,
				`reading mine.yaml:3: operator "a": the evidence's link "" is not an https address`,
				`reading mine.yaml:3: operator "a": the evidence's grade is "", not one of verified, partial, reported`,
				`reading mine.yaml:3: operator "a" creates nothing`,
			}, "\n"),
		},
		{
			"bad expression", operatorYAML("trigger: {group: a.example, kind: A, where: {path: spec, matches: '('}}"),
			"reading mine.yaml:3: operator \"a\": where: error parsing regexp: missing closing ): `(`",
		},
		{
			"paths without trigger", strings.Replace(operatorYAML("startup: {charts: [a]}"), "kind: B", "kindFrom: spec.kind", 1),
			`reading mine.yaml:3: operator "a": kindFrom and pluralFrom need a trigger to read from`,
		},
		{
			"twice", operatorYAML("startup: {charts: [a]}") + strings.TrimPrefix(operatorYAML("startup: {charts: [a]}"), "version: 1\noperators:\n"),
			`reading mine.yaml:10: operators "a" is there twice, first in line 3`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := LoadCatalogue(Source{Name: "mine.yaml", Data: []byte(test.data)})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func operatorYAML(how string) string {
	return "version: 1\noperators:\n- name: a\n  " + how + `
  existing: unknown
  evidence: {link: "https://a.example/", grade: reported}
  creates:
  - group: a.example
    kinds: [{kind: B}]
`
}

func TestOwnCatalogueGoesFirst(t *testing.T) {
	data := strings.NewReplacer("name: a", "name: KubeVirt CDI", "existing: unknown", "existing: adopts").Replace(operatorYAML("trigger: {group: a.example, kind: A}"))
	c, err := LoadCatalogue(Source{Name: "mine.yaml", Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	var found []*Operator
	for _, o := range c.Operators {
		if o.Name == "KubeVirt CDI" {
			found = append(found, o)
		}
	}
	if len(found) != 1 || found[0].Existing != Adopts || found[0].File != "mine.yaml" || c.Operators[0] != found[0] {
		t.Errorf("the embedded entry was not replaced: %+v", found)
	}
	if want := len(loadDefault(t).Operators); len(c.Operators) != want {
		t.Errorf("%d operators, want %d", len(c.Operators), want)
	}
}

func TestBuiltinKinds(t *testing.T) {
	b := Builtin()
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	} {
		if r, ok := b.Resource(gvk); !ok || !r.Default || r.Plural == "" {
			t.Errorf("%s: %+v, %v", gvk, r, ok)
		}
	}
	if b.Has(schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}) {
		t.Error("policy/v1beta1 was removed in 1.25")
	}
	if r, ok := b.Resource(schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttributesClass"}); !ok || r.Default {
		t.Errorf("a beta version: %+v, %v", r, ok)
	}
	if got := b.Versions(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}); !cmp.Equal(got, []string{"v2", "v1"}) {
		t.Errorf("preferred version is not first: %v", got)
	}
}
