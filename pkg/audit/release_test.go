package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// release writes a HelmRelease of a test; extra is what its spec has beside the usual.
func release(name, extra string) string {
	return fmt.Sprintf(`---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: %[1]s
  namespace: default
spec:
  interval: 1h
  chart:
    spec:
      chart: %[1]s
      sourceRef: {kind: HelmRepository, name: charts}
%[2]s`, name, extra)
}

const charts = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: charts
  namespace: default
spec:
  interval: 1h
  url: https://charts.example.org
`

// TestReleasesThatNeverRun looks at what is said of releases that wait for each other, or for nothing:
// one finding where the trouble begins, an error if a tier waits for it.
func TestReleasesThatNeverRun(t *testing.T) {
	on := func(name string) string { return "  dependsOn: [{name: " + name + "}]\n" }
	for _, test := range []struct {
		name, releases string
		error, warning []string
		why            string
	}{
		{"a chain that ends", charts + release("a", on("b")) + release("b", ""), nil, nil, ""},
		{"a chain that begins with nothing", charts + release("a", on("b")) + release("b", on("c")) + release("c", on("gone")),
			[]string{"HelmRelease/default/c"}, []string{"HelmRelease/default/c"}, "the release needs HelmRelease/default/gone, which nothing in git makes"},
		{"a circle", charts + release("a", on("b")) + release("b", on("c")) + release("c", on("b")),
			[]string{"HelmRelease/default/b"}, []string{"HelmRelease/default/b"}, "and HelmRelease/default/c, in the end, needs HelmRelease/default/b: a circle"},
		{"no repository", release("a", on("b")) + release("b", ""),
			[]string{"HelmRelease/default/a HelmRelease/default/b"}, []string{"HelmRelease/default/a HelmRelease/default/b"}, "the release needs HelmRepository/default/charts, which nothing in git makes"},
		{"a suspended one", charts + release("a", on("b")) + release("b", "  suspend: true\n"),
			[]string{"HelmRelease/default/b"}, nil, "a suspended object is never reconciled, so on a cold cluster it has no status, and without one it never counts as healthy"},
	} {
		for _, wait := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, wait %v", test.name, wait), func(t *testing.T) {
				result, _ := repository(t, map[string]string{
					"cluster/tiers.yaml": tier("apps", fmt.Sprintf("  wait: %v\n", wait)), "apps/releases.yaml": test.releases,
				}).audit(t)
				want, severity := test.error, "error"
				if !wait {
					want, severity = test.warning, "warning"
				}
				var got []string
				for _, f := range result.Findings {
					got = append(got, strings.Join(f.Objects, " "))
					if string(f.Severity) != severity || !slices.Contains(f.Cause, test.why) {
						t.Errorf("%s: %s %v", f.Severity, f.Message, f.Cause)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("found %v, want %v\n%s", got, want, lines(result.Findings))
				}
			})
		}
	}
}

// TestReleaseThatNeedsALaterTier keeps the cause from being looked for once the fault counts as mended.
func TestReleaseThatNeedsALaterTier(t *testing.T) {
	result, _ := repository(t, map[string]string{
		"cluster/tiers.yaml":   tier("first", "  wait: true\n") + tier("second", "  dependsOn: [{name: first}]\n"),
		"first/releases.yaml":  charts + release("shop", "  dependsOn: [{name: till}]\n"),
		"second/releases.yaml": release("till", ""),
	}).audit(t)
	if len(result.Findings) != 1 || result.Findings[0].Rule != "release-never-healthy" {
		t.Fatalf("found\n%s", lines(result.Findings))
	}
	if want := []string{"the release needs HelmRelease/default/till first"}; !slices.Equal(result.Findings[0].Cause, want) {
		t.Errorf("cause %v, want %v", result.Findings[0].Cause, want)
	}
}
