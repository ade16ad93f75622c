package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	kustypes "sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// Every error of a kustomization file has a line, also those that the parser gives none.
func TestErrorLine(t *testing.T) {
	bomb := "resources: []\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		alias := "*" + string(c-1) + ","
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(alias, 9) + "]\n"
	}
	for text, want := range map[string]int{
		"a: b: c\n":                            1,
		"resources:\n- a\nb: c: d\n":           3,
		"resources:\n\t- a\n":                  2,
		"resources:\n- a\n\x00\n":              3,
		"resources:\n- \xff\n":                 2,
		"- a\n":                                1,
		"namespace: x\nresources: good.yaml\n": 2,
	} {
		err := yaml.Unmarshal([]byte(text), &kustypes.Kustomization{})
		if err == nil {
			t.Errorf("%q: no error", text)
		} else if got := errorLine(err, []byte(text)); got != want {
			t.Errorf("%q: line %d, want %d (%v)", text, got, want, err)
		}
	}
	err := yaml.Unmarshal([]byte(bomb), &kustypes.Kustomization{})
	if err == nil || errorLine(err, []byte(bomb)) < 3 {
		t.Errorf("alias bomb: %v on line %d", err, errorLine(err, []byte(bomb)))
	}
}

// Aliases are written out as kustomize does it.
func TestWriteOutIsDeAnchor(t *testing.T) {
	for _, text := range []string{
		"a: &a b\nc: *a\n",
		"a: &a\n  b: [1, {c: d}]\n  e: 'f' # g\nh: *a\ni: [*a, *a]\n",
		"&k a: b\nc: {*k : d}\n",
		"a: &a\n  b: &b c\n  d: *b\ne: *a\nf: *b\n",
		"a: &a {b: c}\nd: &a {e: f}\ng: *a\n",
		"a: &a\n  b: c\nd:\n  <<: *a\n  e: f\n",
		"a: &a |\n  b\nc: *a\n",
		"a: &a\nb: *a\n",
		"a: &a !!str 1\nb: *a\n",
	} {
		var got, want yamlv3.Node
		for _, n := range []*yamlv3.Node{&got, &want} {
			if err := yamlv3.Unmarshal([]byte(text), n); err != nil {
				t.Fatal(err)
			}
		}
		if err := kyaml.NewRNode(want.Content[0]).DeAnchor(); err != nil {
			t.Fatal(err)
		}
		if !writeOut(got.Content[0], []byte(text)) {
			t.Errorf("%q: not written out", text)
		}
		if diff := cmp.Diff(kyaml.NewRNode(want.Content[0]).MustString(), kyaml.NewRNode(got.Content[0]).MustString()); diff != "" {
			t.Errorf("%q (-kustomize +got):\n%s", text, diff)
		}
	}
}
