package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/test/homenetwork"
)

// incident is a kind of fault that people have reported, by its number in our collection, and the
// fixture that rebuilds it. What a fixture finds is held to exactly that by TestFixtures.
type incident struct {
	number        int
	fixture, rule string
}

func incidents() []incident {
	return []incident{
		{2, "same-pass-chart-two-kinds", "same-pass-chart"},
		{3, "same-pass-chart-policy", "same-pass-chart"},
		{4, "same-pass-chart-layers", "same-pass-chart"},
		{5, "same-pass-chart-root", "same-pass-chart"},
		{6, "same-pass-chart", "same-pass-chart"},
		{7, "same-pass-chart-issuer", "same-pass-chart"},
		{8, "same-pass-chart-crds-folder", "same-pass-chart"},
		{11, "same-pass-serviceaccount", "same-pass-serviceaccount"},
		{12, "provider-missing", "provider-missing"},
		{13, "constraint-beside-template", "constraint-beside-template"},
		{15, "flux-instance-by-hand", "same-pass-second-order"},
		{16, "provider-not-upstream", "provider-not-upstream"},
		{18, "provider-not-awaited", "provider-not-awaited"},
		{19, "provider-not-awaited-by-default", "provider-not-awaited"},
		{22, "cross-namespace-source", "cross-namespace-source"},
		{23, "cycle", "cycle"},
		{25, "missing-dependency", "missing-dependency"},
		{27, "unordered-use", "unordered-use"},
		// 33 is about a change: see inwards.txtar and inwards-to-a-new-tier.txtar of pkg/diff.
	}
}

func TestIncidents(t *testing.T) {
	for _, i := range incidents() {
		archive := filepath.Join("testdata", i.fixture+".txtar")
		data, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), fmt.Sprintf("(incident %d)", i.number)) {
			t.Errorf("%s does not say that it is incident %d", archive, i.number)
		}
		result, _ := unpack(t, archive).audit(t)
		if !slices.ContainsFunc(result.Findings, func(f audit.Finding) bool { return f.Rule == i.rule }) {
			t.Errorf("incident %d: %s is not found:\n%s", i.number, i.rule, lines(result.Findings))
		}
	}
}

// TestFingerprintSurvivesEdits moves everything down by some lines and adds a file that has nothing
// to do with the fault: the alert stays the same alert, on another line.
func TestFingerprintSurvivesEdits(t *testing.T) {
	dir := homeNetwork(t, homenetwork.Wedged)
	audited := func() audit.Finding {
		t.Helper()
		result := fixture{dir: dir, path: "clusters/prod"}
		r, _ := result.audit(t)
		if len(r.Findings) != 1 {
			t.Fatalf("findings:\n%s", lines(r.Findings))
		}
		return r.Findings[0]
	}
	before := audited()
	for _, name := range []string{before.At.File, "platform-config/cdi.yaml", "clusters/base/platform-config.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append([]byte("# one\n# two\n# three\n"), data...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	after := audited()
	if before.Fingerprint() != after.Fingerprint() {
		t.Errorf("fingerprint %s became %s", before.Fingerprint(), after.Fingerprint())
	}
	if before.At.Line+3 != after.At.Line {
		t.Errorf("line %d became %d, not 3 more", before.At.Line, after.At.Line)
	}
}

// TestFingerprintsAreUnique keeps findings apart that differ only in what they say.
func TestFingerprintsAreUnique(t *testing.T) {
	repeated := 0
	for _, f := range fixtures(t) {
		result, _ := f.audit(t)
		seen := map[string]string{}
		for _, finding := range slices.Concat(result.Findings, result.Accepted) {
			id := finding.Fingerprint()
			if other, ok := seen[id]; ok {
				t.Errorf("%s: %q and %q share a fingerprint", f.name, other, finding.Message)
			}
			seen[id] = finding.Message
			if finding.Repeat > 0 {
				repeated++
			}
		}
	}
	if repeated == 0 {
		t.Error("no fixture has such findings")
	}
}
