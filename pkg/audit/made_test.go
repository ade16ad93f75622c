package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/audit"
)

// TestMade compares what findings say of objects that controllers make.
func TestMade(t *testing.T) {
	for _, test := range []struct {
		fixture, rule, message string
		cause                  []string
	}{
		{"own-input-made", "own-input",
			"flux-system/apps reads Secret/flux-system/settings in spec.postBuild.substituteFrom, which is made only from ExternalSecret/flux-system/from-vault, and flux-system/apps applies that itself",
			[]string{
				"Flux reads it before it builds or applies the tier, so the pass that would apply what it is made from never gets that far",
				"not certain: the values of Secret/flux-system/settings come from outside of git, and a bootstrap step may create it first; if one does, declare it in .standup.yaml under beforeFlux.objects",
			}},
		{"input-downstream-made", "input-downstream",
			"flux-system/apps reads Secret/flux-system/settings in spec.postBuild.substituteFrom, which is made only from Certificate/flux-system/web of flux-system/settings, and that can be done only after flux-system/apps",
			[]string{"Flux reads it before it builds or applies the tier"}},
		{"input-downstream-store", "input-downstream",
			"flux-system/apps reads Secret/flux-system/settings in spec.postBuild.substituteFrom, which is made only from ExternalSecret/flux-system/settings of flux-system/secrets, and that can be done only after flux-system/apps",
			[]string{
				"Flux reads it before it builds or applies the tier",
				"nothing is made from ExternalSecret/flux-system/settings before ClusterSecretStore/vault is there",
				"flux-system/stores reads it too",
				"not certain: the values of Secret/flux-system/settings come from outside of git, and a bootstrap step may create it first; if one does, declare it in .standup.yaml under beforeFlux.objects",
			}},
		{"input-not-upstream-made", "input-not-upstream",
			"flux-system/apps reads Secret/flux-system/settings in spec.postBuild.substituteFrom, and nothing puts flux-system/settings, which applies what it is made from, ExternalSecret/flux-system/settings, before flux-system/apps",
			[]string{"if flux-system/apps is first, its pass fails and is retried after 1m"}},
		{"input-not-awaited", "input-not-awaited",
			"flux-system/apps reads Secret/flux-system/settings in spec.postBuild.substituteFrom, and flux-system/settings, which applies what it is made from, ExternalSecret/flux-system/settings, does not wait for it",
			[]string{
				"flux-system/settings is Ready as soon as its objects are applied, before anything has been made from them",
				"the pass of flux-system/apps may then fail, and is retried after 1m",
			}},
		{"input-not-awaited-by-parent", "input-not-awaited",
			"2 tiers read Secret/flux-system/shop-vars and Secret/flux-system/web-vars in spec.postBuild.substituteFrom, and flux-system/apps, which applies what they are made from, ExternalSecret/flux-system/shop-vars and ExternalSecret/flux-system/web-vars, does not wait for it",
			[]string{
				"a tier is created with everything else that its parent applies, before anything has been made from that",
				"each of them that is too early fails and is retried after its retryInterval, 1m for one",
				"the tiers are flux-system/shop, flux-system/web",
			}},
		{"source-secret-downstream", "input-downstream",
			"flux-system/apps reads Secret/flux-system/team-token in its source, GitRepository/flux-system/team, and flux-system/secrets, which applies it, can come up only after flux-system/apps",
			[]string{"Flux reads it before it builds the tier"}},
		{"release-never-healthy-made", "release-never-healthy", "flux-system/platform waits for HelmRelease/default/shop, which can never be installed",
			[]string{"the release needs Secret/default/shop first"}},
		{"release-never-healthy-source", "release-never-healthy", "flux-system/apps waits for HelmRelease/default/shop, which can never be installed",
			[]string{"the release needs Secret/flux-system/team-token first"}},
		{"use-downstream-made", "use-downstream",
			"flux-system/web waits for Deployment/default/web, which needs Secret/default/settings (made from ExternalSecret/default/settings) of flux-system/settings, and that can come up only after flux-system/web",
			[]string{"without it the object never becomes healthy, and until it is healthy the tier is not Ready"}},
		{"unordered-use-made", "unordered-use",
			"Deployment/default/web uses Secret/default/web (made from ExternalSecret/default/from-vault) of flux-system/base, and no path of dependencies leads from flux-system/web to it",
			[]string{"flux-system/web waits for health: until flux-system/base is there, its health check runs, and fails after 9m30s"}},
	} {
		result, _ := unpack(t, filepath.Join("testdata", test.fixture+".txtar")).audit(t)
		n := slices.IndexFunc(result.Findings, func(f audit.Finding) bool { return f.Rule == test.rule })
		if n < 0 {
			t.Errorf("%s: no %s", test.fixture, test.rule)
			continue
		}
		if d := cmp.Diff(test.message, result.Findings[n].Message); d != "" {
			t.Errorf("%s: message (-want +got):\n%s", test.fixture, d)
		}
		if d := cmp.Diff(test.cause, result.Findings[n].Cause); d != "" {
			t.Errorf("%s: cause (-want +got):\n%s", test.fixture, d)
		}
	}
}

// TestMadeOnTheWay compares what a circle says of a step that waits for an object to be made.
func TestMadeOnTheWay(t *testing.T) {
	for fixture, want := range map[string]string{
		"provider-downstream-of-made":  "flux-system/operator needs flux-system/secrets, which applies what Secret/flux-system/vars is made from",
		"provider-downstream-of-store": "flux-system/operator needs flux-system/secrets: Secret/flux-system/vars is made only once ClusterSecretStore/vault is there",
	} {
		result, _ := unpack(t, filepath.Join("testdata", fixture+".txtar")).audit(t)
		var notes []string
		for _, at := range result.Findings[0].Related {
			notes = append(notes, at.Note)
		}
		if !slices.Contains(notes, want) {
			t.Errorf("%s: no note %q among\n%s", fixture, want, strings.Join(notes, "\n"))
		}
	}
}

// TestMadeIsNotAssumed keeps what git makes from being listed among what has to be there before Flux.
func TestMadeIsNotAssumed(t *testing.T) {
	result, _ := unpack(t, filepath.Join("testdata", "own-input-made.txtar")).audit(t)
	for _, a := range result.Assumed {
		if a.What == "Secret/flux-system/settings" {
			t.Errorf("assumed: %s by %v", a.What, a.Tiers)
		}
	}
}

// TestWhatIsMade holds of each kind which objects are made from it: a tier that reads such an object, and
// applies what it is made from, never gets it.
func TestWhatIsMade(t *testing.T) {
	for _, test := range []struct{ name, manifest, makes string }{
		{"external secret", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret", "Secret/flux-system/it"},
		{"external secret of old", "apiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nspec: {target: {name: other}}", "Secret/flux-system/other"},
		{"external secret that is kept", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {creationPolicy: Orphan}}", "Secret/flux-system/it"},
		{"external secret that adds", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {creationPolicy: Merge}}", ""},
		{"external secret that adds or makes", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {creationPolicy: CreateOrMerge}}", "Secret/flux-system/it"},
		{"external secret for nothing", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {creationPolicy: None}}", ""},
		{"external secret of another kind", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {manifest: {apiVersion: v1, kind: ConfigMap}}}", "ConfigMap/flux-system/it"},
		{"external secret with a variable", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nspec: {target: {name: 'it-${CLUSTER}'}}", ""},
		{"cluster external secret", "apiVersion: external-secrets.io/v1\nkind: ClusterExternalSecret\nspec: {externalSecretName: it}", ""},
		{"sealed secret", "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nspec: {template: {metadata: {name: other}}}", "Secret/flux-system/it"},
		{"item", "apiVersion: onepassword.com/v1\nkind: OnePasswordItem", "Secret/flux-system/it"},
		{"vault secret", "apiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultStaticSecret\nspec: {destination: {name: other, create: true}}", "Secret/flux-system/other"},
		{"vault secret that adds", "apiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultStaticSecret\nspec: {destination: {name: other}}", ""},
		{"certificate", "apiVersion: cert-manager.io/v1\nkind: Certificate\nspec: {secretName: it-tls}", "Secret/flux-system/it-tls"},
		{"bucket", "apiVersion: objectbucket.io/v1alpha1\nkind: ObjectBucketClaim", "ConfigMap/flux-system/it Secret/flux-system/it"},
		{"database", "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster",
			"Secret/flux-system/it-app Secret/flux-system/it-ca Secret/flux-system/it-replication Secret/flux-system/it-server"},
		{"database of a given owner", "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nspec: {enableSuperuserAccess: true, bootstrap: {recovery: {secret: {name: owner}}}}",
			"Secret/flux-system/it-ca Secret/flux-system/it-replication Secret/flux-system/it-server Secret/flux-system/it-superuser"},
		{"database of given names", "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nspec: {enableSuperuserAccess: true, superuserSecret: {name: root}, replica: {enabled: true}, " +
			"certificates: {serverCASecret: a, clientCASecret: b, serverTLSSecret: c, replicationTLSSecret: d}}", ""},
		{"database of many", "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nspec: {bootstrap: {initdb: {import: {type: monolith}}}}",
			"Secret/flux-system/it-ca Secret/flux-system/it-replication Secret/flux-system/it-server"},
		{"plain", "apiVersion: v1\nkind: Endpoints", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := madeFrom(t, test.manifest)
			if d := cmp.Diff(test.makes, strings.Join(made, " ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// madeFrom lists, of some names, those of objects that are made from a manifest, flux-system/it: those
// that a tier with that manifest can never read.
func madeFrom(t *testing.T, manifest string) []string {
	t.Helper()
	f := fixture{dir: t.TempDir(), path: "cluster"}
	tier := `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m
  path: ./apps
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substituteFrom:
`
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, name := range []string{"it", "it-app", "it-ca", "it-replication", "it-server", "it-superuser", "it-tls", "it-${CLUSTER}", "other"} {
			tier += fmt.Sprintf("    - {kind: %s, name: '%s'}\n", kind, name)
		}
	}
	for file, content := range map[string]string{
		"cluster/tier.yaml": tier,
		"apps/it.yaml":      manifest + "\nmetadata: {name: it, namespace: flux-system}\n",
	} {
		at := filepath.Join(f.dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var made []string
	result, _ := f.audit(t)
	for _, finding := range result.Findings {
		if finding.Rule == "own-input" {
			made = append(made, finding.Object)
		}
	}
	slices.Sort(made)
	return made
}
