package render

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fluxcd/pkg/envsubst"
	generator "github.com/fluxcd/pkg/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestSubstituteKeepsWhatItDoesNotKnow(t *testing.T) {
	v := variables{values: map[string]string{"cluster": "prod", "empty": "", "n": "3"}}
	for _, c := range []struct {
		in, want string
		unknown  []string
	}{
		{"${cluster}", "prod", nil},
		{"a-${cluster}-b", "a-prod-b", nil},
		{"${empty}", "", nil},
		{"${other}", "${other}", []string{"other"}},
		{"${other:=standard}", "standard", nil},
		{"${other:-standard}", "standard", nil},
		{"${empty:-standard}", "standard", nil},
		{"${cluster/prod/dev}", "dev", nil},
		{"${other/prod/dev}", "${other/prod/dev}", []string{"other"}},
		{"${other^^}", "${other^^}", []string{"other"}},
		{"$${cluster}", "${cluster}", nil},
		{"$${other}", "${other}", nil},
		{"$cluster and $(cluster)", "$cluster and $(cluster)", nil},
		{"${b} ${a} ${b}", "${b} ${a} ${b}", []string{"a", "b"}},
	} {
		got := map[string]any{"v": c.in}
		out, unknown, err := v.substitute(got)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if out != nil {
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
		}
		if s, _ := got["v"].(string); s != c.want && !(c.want == "" && got["v"] == nil) {
			t.Errorf("%s becomes %v, want %q", c.in, got["v"], c.want)
		}
		if d := cmp.Diff(c.unknown, unknown); d != "" {
			t.Errorf("%s: unknown variables: %s", c.in, d)
		}
	}
}

func TestVariablesMergeInFluxsOrder(t *testing.T) {
	lookup := func(kind, namespace, name string) (map[string]string, bool) {
		data, ok := map[string]map[string]string{
			"ConfigMap/ns/first":  {"a": "first", "b": "first", "c": "first", "d": "first\nline\n"},
			"ConfigMap/ns/second": {"b": "second", "c": "second", "e": "second"},
		}[kind+"/"+namespace+"/"+name]
		return data, ok
	}
	p := postBuild{
		Substitute: map[string]string{"c": "inline"},
		SubstituteFrom: []generator.SubstituteReference{
			{Kind: "ConfigMap", Name: "first"}, {Kind: "ConfigMap", Name: "second"},
			{Kind: "Secret", Name: "absent"}, {Kind: "Secret", Name: "may-be-absent", Optional: true},
		},
	}
	v := p.variables("ns", lookup, map[string]string{"c": "given", "e": "given"})
	want := map[string]string{"a": "first", "b": "second", "c": "inline", "d": "firstline", "e": "given"}
	if d := cmp.Diff(want, v.values); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Reference{{Kind: "Secret", Namespace: "ns", Name: "absent"}}, v.missing); d != "" {
		t.Error(d)
	}
	if v := (&postBuild{}).variables("ns", lookup, map[string]string{"x": "y"}); v.active() {
		t.Error("substitutes though nothing is defined")
	}
	if v := (&postBuild{SubstituteStrategy: "Always"}).variables("ns", nil, nil); !v.active() {
		t.Error("Always does not substitute")
	}
}

// TestEvaluateIsEnvsubst gives random texts to envsubst whole and in pieces.
func TestEvaluateIsEnvsubst(t *testing.T) {
	words := []string{"$$", "$", "${A}", "${B:-x\ny}", "${C:=${A}}", "$${A}", "\n", " ", "word", "\\", "}", "$A", "ü", "${A/a/b}", "$$$${A}"}
	rare := []string{"${", "${A:-open \n", "${no such}"}
	mapping := func(name string) (string, bool) { return "value-a", name == "A" }
	r := rand.New(rand.NewPCG(1, 2))
	failed, cuts := 0, 0
	for range 100 {
		var text strings.Builder
		for range r.IntN(3000) {
			if r.IntN(4000) == 0 {
				text.WriteString(rare[r.IntN(len(rare))])
			}
			text.WriteString(words[r.IntN(len(words))])
		}
		want, wantErr := envsubst.Eval(text.String(), mapping)
		got, err := evaluate(text.String(), mapping)
		if got != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("%q:\n%q, %v\nwant %q, %v", text.String(), got, err, want, wantErr)
		}
		if err != nil {
			failed++
		}
		if text.Len() > pieceSize {
			cuts++
		}
	}
	if failed == 0 || cuts == 0 || failed > 250 {
		t.Errorf("%d texts were refused and %d cut: the test shows nothing", failed, cuts)
	}
}

// FuzzTextIsThatOfTheJSON holds the text that variables are replaced in to the one that Flux makes.
func FuzzTextIsThatOfTheJSON(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":1.0,"b":1e21,"c":0.1,"d":-0,"e":12345678901234567890,"f":1e-7}`, `{"yes":"no","on":["~","null",null,true,"1e3","0x1f","1_0"]}`,
		`{"t":"a: b # c\n  d\n\n","u":" lead","v":"tab\t","w":"\u0085\u2028é😀","x":"<&>","<<":{"=":"="}}`, `{"":{},"l":[[],[{}],""],"s":"- a","k: v":"|","long":"` + strings.Repeat("word ", 60) + `"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &u.Object) != nil || !utf8.ValidString(text) {
			return
		}
		data, err := json.Marshal(u.Object)
		if err != nil || kjson.Unmarshal(data, &u.Object) != nil {
			return
		}
		want, err := yaml.JSONToYAML(data)
		if err != nil {
			return // Flux fails on it
		}
		got, err := textOf(u.Object)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s:\n%s\nwant:\n%s\n%v", data, got, want, err)
		}
	})
}
