package render

import (
	"strings"
	"testing"

	kustypes "sigs.k8s.io/kustomize/api/types"
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
