package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// row is a Provider as a table would show it.
type row struct{ Kind, Class, Evidence, Tier, Trigger, Name, Hint string }

func rowsOf(providers []Provider) []row {
	var rows []row
	for _, p := range providers {
		o := p.Primary()
		rows = append(rows, row{p.GroupKind.String(), string(o.Class), string(o.Evidence), o.Tier.Name, o.Trigger(), o.Name, p.Hint})
	}
	return rows
}

func TestProviders(t *testing.T) {
	tests := []struct {
		name  string
		specs []spec
		want  []row
	}{
		{
			"built in, a CRD in git, and what its operator makes of its own object",
			[]spec{
				{name: "platform", manifests: crdYAML("cdi.kubevirt.io", "cdis", "CDI", "v1beta1") + separator + cdiDeployment},
				{name: "config", dependsOn: []string{"platform"}, manifests: cdiObject + separator + profileObject},
			},
			[]row{
				{"CustomResourceDefinition.apiextensions.k8s.io", "builtin", "git", "", "", "", ""},
				{"Deployment.apps", "builtin", "git", "", "", "", ""},
				{"CDI.cdi.kubevirt.io", "git", "git", "platform", "", "", ""},
				{"StorageProfile.cdi.kubevirt.io", "runtime", "catalogue", "config", "CDI/cdi", "KubeVirt CDI", ""},
			},
		},
		{
			"a chart whose CRDs a value switches on",
			[]spec{{name: "certs", manifests: certRelease + separator + issuerObject}},
			[]row{
				{"ClusterIssuer.cert-manager.io", "chart", "catalogue", "certs", "HelmRelease/certs/cert-manager", "cert-manager", ""},
				{"HelmRelease.helm.toolkit.fluxcd.io", "platform", "catalogue", "", "", "Flux components", ""},
			},
		},
		{
			"the same chart with its CRDs off, by values from a ConfigMap",
			[]spec{{name: "certs", manifests: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cert-manager, namespace: certs}
spec:
  chart: {spec: {chart: cert-manager, sourceRef: {kind: HelmRepository, name: jetstack}}}
  valuesFrom: [{kind: ConfigMap, name: values}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: certs}
data: {values.yaml: "crds: {enabled: false}"}
---
` + issuerObject}},
			[]row{
				{"ConfigMap", "builtin", "git", "", "", "", ""},
				{"ClusterIssuer.cert-manager.io", "unknown", "", "", "", "", "HelmRelease/certs/cert-manager installs cert-manager without its CRDs: the value crds.enabled or installCRDs is not true"},
				{"HelmRelease.helm.toolkit.fluxcd.io", "platform", "catalogue", "", "", "Flux components", ""},
			},
		},
		{
			"a chart by chartRef, and an operator that registers its kinds as it starts",
			[]spec{{name: "cni", manifests: `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: charts-cilium, namespace: kube-system}
spec: {url: oci://registry.example/charts/cilium}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cni, namespace: kube-system}
spec: {chartRef: {kind: OCIRepository, name: charts-cilium}}
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: a, namespace: default}
`}},
			[]row{
				{"CiliumNetworkPolicy.cilium.io", "runtime", "catalogue", "cni", "HelmRelease/kube-system/cni", "Cilium", ""},
				{"HelmRelease.helm.toolkit.fluxcd.io", "platform", "catalogue", "", "", "Flux components", ""},
				{"OCIRepository.source.toolkit.fluxcd.io", "platform", "catalogue", "", "", "Flux", ""},
			},
		},
		{
			"kinds that a trigger names: Gatekeeper, Crossplane, kro",
			[]spec{{name: "policies", manifests: `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: owners}
spec: {crd: {spec: {names: {kind: MustHaveOwner}}}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: MustHaveOwner
metadata: {name: everywhere}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: NobodyMadeThis
metadata: {name: everywhere}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xbuckets.storage.example.org}
spec: {group: storage.example.org, names: {kind: XBucket, plural: xbuckets}, claimNames: {kind: Bucket, plural: buckets}}
---
apiVersion: storage.example.org/v1
kind: Bucket
metadata: {name: b, namespace: default}
---
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: webapp}
spec: {schema: {apiVersion: v1alpha1, kind: WebApp}}
---
apiVersion: kro.run/v1alpha1
kind: WebApp
metadata: {name: w, namespace: default}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: s3}
spec: {package: "xpkg.crossplane.io/crossplane-contrib/provider-aws-s3:v2"}
---
apiVersion: s3.aws.upbound.io/v1beta1
kind: Bucket
metadata: {name: b}
`}},
			[]row{
				{"CompositeResourceDefinition.apiextensions.crossplane.io", "unknown", "", "", "", "", "Crossplane brings it, but nothing in git runs it"},
				{"MustHaveOwner.constraints.gatekeeper.sh", "runtime", "catalogue", "policies", "ConstraintTemplate/owners", "Gatekeeper", ""},
				{"NobodyMadeThis.constraints.gatekeeper.sh", "unknown", "", "", "", "", "Gatekeeper brings it, but nothing in git is a ConstraintTemplate of templates.gatekeeper.sh"},
				{"ResourceGraphDefinition.kro.run", "unknown", "", "", "", "", "the chart kro brings it, but no release in git installs it"},
				{"WebApp.kro.run", "runtime", "catalogue", "policies", "ResourceGraphDefinition/webapp", "kro", ""},
				{"Provider.pkg.crossplane.io", "unknown", "", "", "", "", "Crossplane brings it, but nothing in git runs it"},
				{"Bucket.s3.aws.upbound.io", "runtime", "catalogue", "policies", "Provider/s3", "Crossplane provider packages (aws)", ""},
				{"Bucket.storage.example.org", "runtime", "catalogue", "policies", "CompositeResourceDefinition/xbuckets.storage.example.org", "Crossplane composite resources", ""},
				{"ConstraintTemplate.templates.gatekeeper.sh", "unknown", "", "", "", "", "the chart gatekeeper brings it, but no release in git installs it"},
			},
		},
		{
			"two charts that share a group",
			[]spec{{name: "argo", manifests: `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: events, namespace: argo}
spec: {chart: {spec: {chart: argo-events, sourceRef: {kind: HelmRepository, name: argo}}}}
---
apiVersion: argoproj.io/v1alpha1
kind: Sensor
metadata: {name: s, namespace: argo}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: a, namespace: argo}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: r, namespace: argo}
`}},
			[]row{
				{"Application.argoproj.io", "unknown", "", "", "", "", "the chart argo-cd brings it, but no release in git installs it"},
				{"Rollout.argoproj.io", "unknown", "", "", "", "", ""},
				{"Sensor.argoproj.io", "chart", "catalogue", "argo", "HelmRelease/argo/events", "argo-events", ""},
				{"HelmRelease.helm.toolkit.fluxcd.io", "platform", "catalogue", "", "", "Flux components", ""},
			},
		},
		{
			"a kind that a chart and operators bring",
			[]spec{{name: "net", manifests: `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: default}
---
apiVersion: k8s.cni.cncf.io/v1alpha1
kind: IPAMClaim
metadata: {name: c, namespace: default}
`}},
			[]row{
				{"IPAMClaim.k8s.cni.cncf.io", "unknown", "", "", "", "", "HyperConverged Cluster Operator brings it, but nothing in git is a HyperConverged of hco.kubevirt.io"},
				{"NetworkAttachmentDefinition.k8s.cni.cncf.io", "unknown", "", "", "", "", "the chart multus brings it, but no release in git installs it"},
			},
		},
		{
			"what k3s brings, what nobody knows, and what Flux skips",
			[]spec{{name: "apps", manifests: `apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: a, namespace: kube-system}
spec: {chart: cert-manager, valuesContent: "crds: {enabled: true}"}
---
apiVersion: mystery.example/v1
kind: Riddle
metadata: {name: a, namespace: default}
---
apiVersion: skipped.example/v1
kind: Skipped
metadata: {name: a, annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}}
---
` + issuerObject}},
			[]row{
				{"ClusterIssuer.cert-manager.io", "chart", "catalogue", "apps", "HelmChart/kube-system/a", "cert-manager", ""},
				{"HelmChart.helm.cattle.io", "platform", "catalogue", "", "", "k3s", ""},
				{"Riddle.mystery.example", "unknown", "", "", "", "", ""},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := rowsOf(Providers(graphOf(t, test.specs...), loadDefault(t), nil, nil))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProvidersNameVersionsThatNoDefinitionServes(t *testing.T) {
	g := graphOf(t, spec{name: "a", manifests: crdYAML("x.example", "as", "A", "v1") + separator + "apiVersion: x.example/v1beta1\nkind: A\nmetadata: {name: a}\n"})
	for _, p := range Providers(g, loadDefault(t), nil, nil) {
		if p.Kind == "A" {
			if got := p.Unserved(); !cmp.Equal(got, []string{"v1beta1"}) {
				t.Errorf("unserved: %v", got)
			}
			return
		}
	}
	t.Fatal("no provider for A")
}

func TestProvidersTakeRenderedChartsAtTheirWord(t *testing.T) {
	g := graphOf(t, spec{name: "certs", manifests: certRelease + separator + issuerObject})
	rendered := NewRendered()
	rendered.Add(g.Tiers[0].Objects[0], objectsOf(t, "chart", crdYAML("cert-manager.io", "certificates", "Certificate", "v1")))
	for _, p := range Providers(g, loadDefault(t), nil, rendered) {
		if p.Kind == "ClusterIssuer" && p.Primary().Class != FromUnknown {
			t.Errorf("the rendered chart has no ClusterIssuer, the catalogue was believed instead: %+v", p.Primary())
		}
	}
	rendered.Add(g.Tiers[0].Objects[0], objectsOf(t, "chart", crdYAML("cert-manager.io", "clusterissuers", "ClusterIssuer", "v1")))
	for _, p := range Providers(g, loadDefault(t), nil, rendered) {
		if o := p.Primary(); p.Kind == "ClusterIssuer" && (o.Class != FromChart || o.Evidence != EvidenceChart || !cmp.Equal(o.Versions, []string{"v1"})) {
			t.Errorf("%+v", o)
		}
	}
}

func TestProvidersAskTheClusterLast(t *testing.T) {
	g := graphOf(t, spec{name: "a", manifests: "apiVersion: mystery.example/v1\nkind: Riddle\nmetadata: {name: a}\n"})
	served := servedWith("Riddle.v1.mystery.example")
	served.owners = map[schema.GroupKind]Owner{{Group: "mystery.example", Kind: "Riddle"}: {OwnerController, "riddler"}}
	got := rowsOf(Providers(g, loadDefault(t), served, nil))
	if diff := cmp.Diff([]row{{"Riddle.mystery.example", "runtime", "cluster", "", "", "riddler", ""}}, got); diff != "" {
		t.Error(diff)
	}
}
