package verdicts

import (
	"testing"
)

// TestGenerate keeps the generator honest: the repositories are what they are meant to be, small, and
// neither all sound nor all broken.
func TestGenerate(t *testing.T) {
	const n = 120
	up, down, sound := 0, 0, 0
	rules := map[string]int{}
	for seed := range uint64(n) {
		result, tiers, err := Generate(seed, "https://git.example.org/fleet").Audit(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range result.Findings {
			rules[f.Rule]++
		}
		for _, ok := range tiers {
			if ok {
				up++
			} else {
				down++
			}
		}
		if len(result.Stuck) == 0 {
			sound++
		}
	}
	t.Logf("%d tiers come up, %d do not; %d of %d repositories are sound; %v", up, down, sound, n, rules)
	if sound < n/5 || sound > n*4/5 {
		t.Errorf("%d of %d repositories are sound: the generator has lost its balance", sound, n)
	}
	for _, rule := range []string{"same-pass-second-order", "same-pass-chart", "class-before-chart", "provider-downstream", "cycle", "own-input", "same-pass-namespace", "depends-on-suspended",
		"invalid-expression", "missing-dependency", "no-namespace", "unknown-variable", "waits-for-missing", "waits-for-suspended"} {
		if rules[rule] == 0 {
			t.Errorf("no repository breaks %s", rule)
		}
	}
}
