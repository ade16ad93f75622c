package audit_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
)

// TestAdvice compares what findings advise where the obvious advice would do harm, or would be of no use.
func TestAdvice(t *testing.T) {
	for _, test := range []struct{ fixture, rule, want string }{
		{"provider-not-awaited", "provider-not-awaited",
			"set wait: true on flux-system/operator, or name HelmRelease/default/strimzi in its healthChecks"},
		{"provider-not-awaited-with-suspended", "provider-not-awaited",
			"name HelmRelease/default/strimzi in healthChecks of flux-system/operator"},
		{"provider-not-awaited-by-child", "provider-not-awaited",
			"name HelmRelease/default/strimzi in healthChecks of flux-system/operator and add operator to spec.dependsOn of flux-system/apps"},
		{"provider-not-awaited-by-waiting-parent", "provider-not-awaited",
			"move HelmRelease/default/strimzi into a tier of its own with wait: true, and add that to spec.dependsOn of flux-system/apps"},
		{"use-downstream", "use-downstream",
			"move Deployment/default/web into a tier that depends on flux-system/settings, or ConfigMap/default/settings into flux-system/web or a tier before it; or set wait: false on flux-system/web"},
		{"use-downstream-own-kind", "use-downstream",
			"move ExternalSecret/default/login into a tier that depends on flux-system/stores; or set wait: false on flux-system/controllers"},
		{"own-input-made", "own-input",
			"let it be made before flux-system/apps: move ExternalSecret/flux-system/from-vault, with what it needs, to a tier with wait: true that flux-system/apps depends on, or mark it optional and give its variables defaults"},
		{"input-not-upstream-made", "input-not-upstream",
			"add settings to spec.dependsOn of flux-system/apps, and set wait: true on flux-system/settings, or name ExternalSecret/flux-system/settings in its healthChecks"},
		{"input-not-awaited", "input-not-awaited", "set wait: true on flux-system/settings, or name ExternalSecret/flux-system/settings in its healthChecks"},
		{"input-not-awaited-by-parent", "input-not-awaited",
			"name Secret/flux-system/shop-vars and Secret/flux-system/web-vars in healthChecks of flux-system/apps and add apps to spec.dependsOn of each of them"},
		{"input-not-awaited-sealed", "input-not-awaited", "name Secret/flux-system/settings in healthChecks of flux-system/settings"},
		{"input-not-awaited-by-waiting-parent", "input-not-awaited",
			"move ExternalSecret/flux-system/shop-vars and ExternalSecret/flux-system/web-vars into a tier of its own with wait: true, and add that to spec.dependsOn of each of them"},
		{"use-downstream-made", "use-downstream",
			"move Deployment/default/web into a tier that depends on flux-system/settings, or ExternalSecret/default/settings into flux-system/web or a tier before it; or set wait: false on flux-system/web"},
		{"use-downstream-late-store", "use-downstream",
			"move Deployment/default/web into a tier that depends on flux-system/settings; or set wait: false on flux-system/web"},
		{"unordered-use-made", "unordered-use", "add base to spec.dependsOn of flux-system/web"},
		{"unknown-variable", "unknown-variable", "define it in postBuild, give it a default, or write it with $$ if it is meant literally"},
		{"missing-path", "missing-path", "correct spec.path, or bring the folder back"},
		{"missing-file", "missing-file", "add the file, or remove the line that names it"},
		{"build", "build", "mend what the message names; kustomize build on the folder shows the same"},
	} {
		result, _ := unpack(t, filepath.Join("testdata", test.fixture+".txtar")).audit(t)
		n := slices.IndexFunc(result.Findings, func(f audit.Finding) bool { return f.Rule == test.rule })
		if n < 0 {
			t.Errorf("%s: no %s", test.fixture, test.rule)
			continue
		}
		if got := result.Findings[n].Fix; got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.fixture, got, test.want)
		}
	}
}

// TestAdviceTogether holds that all which an audit advises can be done: the last edge of a circle is not
// advised without a word.
func TestAdviceTogether(t *testing.T) {
	result, _ := unpack(t, filepath.Join("testdata", "advice-in-a-circle.txtar")).audit(t)
	var got []string
	for _, f := range result.Findings {
		got = append(got, f.Fix)
	}
	want := []string{
		"add c to spec.dependsOn of flux-system/b, or the Namespace to the tier",
		"add d to spec.dependsOn of flux-system/c",
		"add a to spec.dependsOn of flux-system/d",
		"add zz to spec.dependsOn of flux-system/0a",
		"add b to spec.dependsOn of flux-system/a; not together with what other findings advise, to add c to spec.dependsOn of flux-system/b, to add d to spec.dependsOn of flux-system/c " +
			"and to add a to spec.dependsOn of flux-system/d: all of it would be a circle, so that one has to be solved by moving objects",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
