package crds

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// describe writes a plan as a few lines.
func describe(p Plan) string {
	var b strings.Builder
	for _, t := range p.Tiers {
		fmt.Fprintf(&b, "%s stuck=%v", t.Tier.Name, p.Stuck(t.Tier))
		if t.Partial {
			b.WriteString(" partial")
		}
		if t.NotYet != "" {
			b.WriteString(" notYet(" + t.NotYet + ")")
		}
		b.WriteString("\n")
		for _, m := range t.Missing {
			fmt.Fprintf(&b, "  %s %s: %s\n", m.Kind, m.Verdict, m.Reason)
		}
		for i, round := range t.Rounds {
			for _, planned := range round {
				fmt.Fprintf(&b, "  round %d: %s\n", i+1, planned.Origin.Object.ID())
			}
		}
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	cdiCRD := crdYAML("cdi.kubevirt.io", "cdis", "CDI", "v1beta1")
	wedged := []spec{
		{name: "platform", manifests: cdiCRD + separator + cdiDeployment},
		{name: "config", dependsOn: []string{"platform"}, manifests: cdiObject + separator + profileObject},
	}
	tests := []struct {
		name   string
		specs  []spec
		served *Served
		want   string
	}{
		{"nothing is missing", wedged, servedWith("CDI.v1beta1.cdi.kubevirt.io", "StorageProfile.v1beta1.cdi.kubevirt.io"), ""},
		{
			"the trigger is in the same pass and can be applied", wedged, servedWith("CDI.v1beta1.cdi.kubevirt.io"), `
config stuck=true
  StorageProfile stuck: CDI/cdi is in the same pass, which Flux aborts because the kind is missing
  round 1: CDI/cdi
`,
		},
		{
			"a cold cluster: the trigger's own kind comes first", wedged, servedWith(), `
config stuck=true notYet(CDI/cdi: its own kind is not served yet)
  CDI flux: CustomResourceDefinition/cdis.cdi.kubevirt.io is in flux-system/platform, which comes before this tier
  StorageProfile stuck: CDI/cdi is in the same pass, which Flux aborts because the kind is missing
  round 1: CDI/cdi
`,
		},
		{
			"the profiles in a tier of their own: Flux does it",
			[]spec{wedged[0], {name: "config", dependsOn: []string{"platform"}, manifests: cdiObject}, {name: "profiles", dependsOn: []string{"config"}, manifests: profileObject}},
			servedWith("CDI.v1beta1.cdi.kubevirt.io"), `
profiles stuck=false
  StorageProfile flux: CDI/cdi is in flux-system/config, which comes before this tier
`,
		},
		{
			"no order between the two: Flux retries",
			[]spec{{name: "issuers", manifests: issuerObject}, {name: "certs", manifests: certRelease}}, servedWith(), `
issuers stuck=false
  ClusterIssuer flux: HelmRelease/certs/cert-manager is in flux-system/certs; nothing orders the two, so that Flux retries until it is there
`,
		},
		{
			"a release and an object of its chart", []spec{{name: "certs", manifests: certRelease + separator + issuerObject}}, servedWith(), `
certs stuck=true
  ClusterIssuer stuck: HelmRelease/certs/cert-manager is in the same pass, which Flux aborts because the kind is missing
  round 1: HelmRelease/certs/cert-manager
`,
		},
		{
			"a release that comes after the tier that needs it",
			[]spec{{name: "issuers", manifests: issuerObject}, {name: "certs", dependsOn: []string{"issuers"}, manifests: certRelease}}, servedWith(), `
issuers stuck=true
  ClusterIssuer stuck: HelmRelease/certs/cert-manager is in flux-system/certs, which comes after this tier
  round 1: HelmRelease/certs/cert-manager
`,
		},
		{
			"a chain in one pass takes two rounds",
			[]spec{{name: "policies", manifests: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gatekeeper, namespace: default}
spec: {chart: {spec: {chart: gatekeeper}}}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: owners}
spec: {crd: {spec: {names: {kind: MustHaveOwner}}}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: MustHaveOwner
metadata: {name: everywhere}
`}}, servedWith(), `
policies stuck=true
  MustHaveOwner stuck: ConstraintTemplate/owners is in the same pass, which Flux aborts because the kind is missing
  ConstraintTemplate stuck: HelmRelease/default/gatekeeper is in the same pass, which Flux aborts because the kind is missing
  round 1: HelmRelease/default/gatekeeper
  round 2: ConstraintTemplate/owners
`,
		},
		{
			"the operator itself is in the same pass: the trigger alone would not be answered",
			[]spec{{name: "all", manifests: cdiCRD + separator + cdiDeployment + separator + cdiObject + separator + profileObject}}, servedWith(), `
all stuck=true partial
  CDI flux: CustomResourceDefinition/cdis.cdi.kubevirt.io is applied in an earlier stage of the same pass
  StorageProfile stuck: CDI/cdi is in the same pass, which Flux aborts because the kind is missing
`,
		},
		{
			"a version that is not served, and a kind that Kubernetes no longer has",
			[]spec{{name: "old", manifests: "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n---\napiVersion: cdi.kubevirt.io/v1alpha1\nkind: CDI\nmetadata: {name: cdi}\n"}},
			servedWith("CDI.v1beta1.cdi.kubevirt.io"), `
old stuck=false
  CDI version: the cluster serves v1beta1, git uses v1alpha1
  PodDisruptionBudget version: the cluster serves v1, git uses v1beta1
`,
		},
		{
			"nobody knows, and Flux has not tried yet", []spec{{name: "a", manifests: "apiVersion: mystery.example/v1\nkind: Riddle\nmetadata: {name: a}\n"}}, servedWith(), `
a stuck=false
  Riddle unknown: nothing in git or in the catalogue brings it
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := describe(NewPlan(t.Context(), graphOf(t, test.specs...), test.served, loadDefault(t), PlanOptions{}))
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func liveTier(name, ready, message string, dependsOn ...string) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Generation: 1}}
	for _, d := range dependsOn {
		k.Spec.DependsOn = append(k.Spec.DependsOn, kustomizev1.DependencyReference{Name: d})
	}
	k.Status.ObservedGeneration = 1
	k.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready), Reason: "ReconciliationFailed", Message: message, ObservedGeneration: 1}}
	return k
}

func TestPlanReadsTheLiveTiers(t *testing.T) {
	const riddleObject = "apiVersion: mystery.example/v1\nkind: Riddle\nmetadata: {name: a}\n---\n"
	snapshot := func(all ...*kustomizev1.Kustomization) flux.Snapshot {
		s := flux.Snapshot{Kustomizations: map[flux.Key]*kustomizev1.Kustomization{}, Sources: map[flux.SourceRef]*flux.Source{}}
		for _, k := range all {
			s.Kustomizations[key(k.Name)] = k
		}
		return s
	}
	failed := snapshot(liveTier("a", "False", `Riddle/a dry-run failed: no matches for kind "Riddle" in version "mystery.example/v1"`))
	mystery := strings.ReplaceAll(certRelease, "cert-manager", "mystery")
	for what, test := range map[string]struct {
		manifests string
		live      flux.Snapshot
		want      string
		suspected bool
	}{
		"it failed, and its release may bring the kind":  {riddleObject + mystery, failed, "a stuck=true partial\n", true},
		"it failed, and nothing of it brings kinds":      {riddleObject + configMap + separator + helmRepository, failed, "a stuck=false\n", true},
		"it failed, and its release is encrypted":        {riddleObject + mystery + "sops: {version: 3.9.0}\n", failed, "a stuck=false\n", true},
		"it waits for what it depends on":                {riddleObject + mystery, snapshot(liveTier("a", "False", "dependency is not ready")), "a stuck=false\n", false},
		"it is not there, and its release may bring it":  {riddleObject + mystery, snapshot(), "a stuck=false\n", false},
		"it failed, and its operator may bring the kind": {riddleObject + cdiDeployment, failed, "a stuck=true partial\n", true},
	} {
		plan := NewPlan(t.Context(), graphOf(t, spec{name: "a", manifests: test.manifests}), servedWith(), loadDefault(t), PlanOptions{Snapshot: test.live})
		if diff := cmp.Diff(test.want+"  Riddle unknown: nothing in git or in the catalogue brings it\n", describe(plan)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if got := plan.Suspected(key("a"), test.live); got != test.suspected {
			t.Errorf("%s: suspected is %v", what, got)
		}
	}

	wedged := []spec{{name: "platform", manifests: cdiDeployment}, {name: "config", dependsOn: []string{"platform"}, manifests: cdiObject + separator + profileObject}}
	waiting := snapshot(liveTier("platform", "False", "x"), liveTier("config", "False", "x", "platform"))
	plan := NewPlan(t.Context(), graphOf(t, wedged...), servedWith("CDI.v1beta1.cdi.kubevirt.io"), loadDefault(t), PlanOptions{Snapshot: waiting})
	if tp, _ := plan.Of(key("config")); tp.NotYet != "dependency 'flux-system/platform' is not ready" || !plan.Stuck(key("config")) {
		t.Errorf("dependencies: %q", tp.NotYet)
	}
	plan = NewPlan(t.Context(), graphOf(t, wedged...), servedWith("CDI.v1beta1.cdi.kubevirt.io"), loadDefault(t), PlanOptions{Snapshot: snapshot()})
	if tp, _ := plan.Of(key("config")); tp.NotYet != "Kustomization/flux-system/config is not on the cluster yet" {
		t.Errorf("absent tier: %q", tp.NotYet)
	}
}

func TestPlanLeavesOutTiersOfOtherClusters(t *testing.T) {
	g := graphOf(t, spec{name: "edge", manifests: cdiObject + separator + profileObject})
	g.Tiers[0].Kustomization.Spec.KubeConfig = &meta.KubeConfigReference{}
	if p := NewPlan(t.Context(), g, servedWith(), loadDefault(t), PlanOptions{}); len(p.Tiers) != 0 {
		t.Errorf("%s", describe(p))
	}
}

func TestTriggersBringWhatTheyNeed(t *testing.T) {
	g := graphOf(t, spec{name: "certs", manifests: strings.Join([]string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: certs}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
		certRelease, helmRepository, configMap, issuerObject,
		"apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: certs}\nstringData: {password: x}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: other}\n",
	}, separator)})
	release := g.Tiers[0].Objects[2]
	var got []string
	for _, w := range withNeeds(wanted{Object: release, tier: g.Tiers[0], triggers: true}) {
		got = append(got, w.ID())
	}
	want := []string{"Namespace/certs", "HelmRepository/certs/jetstack", "Secret/certs/login", "HelmRelease/certs/cert-manager"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSealed(t *testing.T) {
	objects := objectsOf(t, "a", strings.Join([]string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: own}\ndata: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {version: 3.9.0}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: generated}\ndata: {env: RU5DW0FFUzI1Nl9HQ00sZGF0YTp4XQ==}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\ndata: {a: eA==}\n",
	}, separator))
	for i, want := range []bool{true, true, false} {
		if got := sealed(objects[i]); got != want {
			t.Errorf("%s: %v", objects[i].ID(), got)
		}
	}
}

func TestMessagesAboutSecretsAreCut(t *testing.T) {
	for message, want := range map[string]string{
		"first\nsecond": "first",
		"Secret/a/b dry-run failed: expected string, got \"hunter2\"":            "Secret/a/b dry-run failed: the rest may quote the Secret and is not shown",
		"SecretStore/a/b dry-run failed: no matches for kind \"SecretStore\" in": "SecretStore/a/b dry-run failed: no matches for kind \"SecretStore\" in",
	} {
		if got := firstLine(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
