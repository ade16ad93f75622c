package tiers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPermute(t *testing.T) {
	sets := func(values ...string) []map[string]any {
		var out []map[string]any
		for _, v := range values {
			out = append(out, map[string]any{"v": v})
		}
		return out
	}
	set := func(v string) map[string]any { return map[string]any{"v": v} }
	for name, test := range map[string]struct {
		providers  []provider
		countEmpty bool
		want       []map[string]any
	}{
		"two by two": {
			providers: []provider{{"A-b", sets("1", "2")}, {"c", sets("x", "y")}},
			// Adler-32 of "a_b=0/c=0" and so on.
			want: []map[string]any{
				{"a_b": set("1"), "c": set("x"), "id": "235209359"},
				{"a_b": set("1"), "c": set("y"), "id": "235274896"},
				{"a_b": set("2"), "c": set("x"), "id": "235537040"},
				{"a_b": set("2"), "c": set("y"), "id": "235602577"},
			},
		},
		"an empty provider is left out": {
			providers: []provider{{"a", nil}, {"c", sets("x")}},
			want:      []map[string]any{{"c": set("x"), "id": "30802129"}},
		},
		"an empty provider counts": {providers: []provider{{"a", nil}, {"c", sets("x")}}, countEmpty: true, want: []map[string]any{}},
		"no inputs at all":         {providers: []provider{{"a", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := permute(test.providers, test.countEmpty)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if _, err := permute([]provider{{"a", make([]map[string]any, 101)}, {"b", make([]map[string]any, 100)}}, false); err == nil {
		t.Error("10100 combinations are not refused")
	}
	if _, err := permute([]provider{{"--", sets("x")}}, false); err == nil {
		t.Error("a name without a letter is not refused")
	}
}
