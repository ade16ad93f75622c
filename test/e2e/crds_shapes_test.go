package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/test/standin/helm"
	"github.com/standup-sh/standup/test/standin/operators"
)

// crdFile is a CRD that accepts anything and has a status.
func crdFile(group, version, kind, plural, scope string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\nspec:\n" +
		"  group: " + group + "\n  scope: " + scope + "\n  names: {kind: " + kind + ", plural: " + plural + "}\n  versions:\n" +
		"  - {name: " + version + ", served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
}

func releaseFile(name, namespace, chartName, values string) string {
	return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n  interval: 1h\n" +
		"  chart: {spec: {chart: " + chartName + ", sourceRef: {kind: HelmRepository, name: charts}}}\n  values: " + values + "\n" +
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: " + namespace + "}\nspec: {interval: 1h, type: oci, url: 'oci://127.0.0.1:1/charts'}\n"
}

func chartOf(name string, folder string, templates ...string) *chart.Chart {
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: name, Version: "1.0.0"}, Values: map[string]any{}}
	if folder != "" {
		c.Files = []*common.File{{Name: "crds/crd.yaml", Data: []byte(folder)}}
	}
	for i, t := range templates {
		c.Templates = append(c.Templates, &common.File{Name: "templates/" + string(rune('a'+i)) + ".yaml", Data: []byte(t)})
	}
	return c
}

const ciliumDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: cilium-operator, namespace: kube-system}
spec:
  selector: {matchLabels: {app: cilium-operator}}
  template:
    metadata: {labels: {app: cilium-operator}}
    spec: {containers: [{name: operator, image: "quay.example/cilium/operator-generic:v1"}]}
`

// shapes is a repository with one wedged tier for every way in which a kind can come at run time.
func shapes() map[string]string {
	tiersOf := func(names ...string) map[string]string {
		f := map[string]string{}
		for _, n := range names {
			f["clusters/test/"+n+".yaml"] = tierFile(n, "", "platform")
		}
		return f
	}
	return files(tiersOf("gatekeeper", "crossplane", "kro", "flux-instance", "cilium", "certs", "shop"), map[string]string{
		"clusters/test/platform.yaml": tierFile("platform", ""),
		"platform/crds.yaml": strings.Join([]string{
			crdFile("templates.gatekeeper.sh", "v1", "ConstraintTemplate", "constrainttemplates", "Cluster"),
			crdFile("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition", "compositeresourcedefinitions", "Cluster"),
			crdFile("kro.run", "v1alpha1", "ResourceGraphDefinition", "resourcegraphdefinitions", "Cluster"),
			crdFile("fluxcd.controlplane.io", "v1", "FluxInstance", "fluxinstances", "Namespaced"),
		}, "---\n"),
		"gatekeeper/policy.yaml": `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: musthaveowner}
spec: {crd: {spec: {names: {kind: MustHaveOwner}}}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: MustHaveOwner
metadata: {name: everywhere}
spec: {enforcementAction: warn}
`,
		"crossplane/bucket.yaml": `apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xbuckets.storage.shop.example}
spec: {group: storage.shop.example, names: {kind: XBucket, plural: xbuckets}, claimNames: {kind: Bucket, plural: buckets}}
---
apiVersion: storage.shop.example/v1
kind: Bucket
metadata: {name: pictures, namespace: default}
spec: {size: 1}
`,
		"kro/app.yaml": `apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: webapp}
spec: {schema: {apiVersion: v1alpha1, kind: WebApp}}
---
apiVersion: kro.run/v1alpha1
kind: WebApp
metadata: {name: front, namespace: default}
spec: {replicas: 1}
`,
		"flux-instance/flux.yaml": `apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: flux-system}
spec: {components: [source-controller, kustomize-controller, notification-controller]}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: chat, namespace: flux-system}
spec: {type: generic}
`,
		"cilium/cni.yaml": releaseFile("cilium", "kube-system", "cilium", "{}") + `---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: deny, namespace: default}
spec: {endpointSelector: {}}
`,
		"certs/certs.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: certs}\n---\n" + releaseFile("cert-manager", "certs", "cert-manager", "{crds: {enabled: true}}") + `---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: ca}
spec: {ca: {secretName: ca}}
`,
		// A chart that no catalogue knows: only a partial apply can free this one.
		"shop/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n" + releaseFile("shop", "shop", "shop", "{}") + `---
apiVersion: shop.example/v1
kind: Shelf
metadata: {name: books, namespace: shop}
spec: {}
`,
	})
}

func testCharts() map[string]*chart.Chart {
	return map[string]*chart.Chart{
		"cilium":       chartOf("cilium", "", ciliumDeployment),
		"cert-manager": chartOf("cert-manager", "", "{{ if .Values.crds.enabled }}\n"+crdFile("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers", "Cluster")+"{{ end }}"),
		"shop":         chartOf("shop", crdFile("shop.example", "v1", "Shelf", "shelves", "Namespaced")),
	}
}

// runStandins starts the stand-ins of all shapes.
func (e *crdsEnv) runStandins() {
	report := func(err error) { e.t.Log("stand-in:", err) }
	for _, o := range []operators.Operator{operators.Gatekeeper(), operators.Crossplane(), operators.Kro(), operators.Cilium(), operators.FluxOperator()} {
		e.background(func(ctx context.Context) error { return o.Run(ctx, e.RESTConfig(), report) })
	}
	e.background(func(ctx context.Context) error { return helm.Run(ctx, e.RESTConfig(), testCharts(), report) })
}

func wedgedTiers() []string {
	return []string{"cilium", "certs", "crossplane", "flux-instance", "gatekeeper", "kro", "shop"}
}

// TestE2ECrdsFreesEveryShape: a constraint and its template, a claim and its definition, an instance
// and its graph, a Flux object and its FluxInstance, a policy and the release of its CNI, an issuer
// and the release of its chart, and an object of a chart that nobody knows.
func TestE2ECrdsFreesEveryShape(t *testing.T) {
	e := newCrdsEnv(t)
	e.runStandins()
	e.push(shapes())
	e.waitReady("platform")
	for name, kind := range map[string]string{
		"gatekeeper": "MustHaveOwner", "crossplane": "Bucket", "kro": "WebApp", "flux-instance": "Provider",
		"cilium": "CiliumNetworkPolicy", "certs": "ClusterIssuer", "shop": "Shelf",
	} {
		e.waitStuck(name, kind)
	}

	opts := e.options()
	var triggers []string
	for _, p := range crds.Providers(opts.Graph, opts.Catalogue, nil, nil) {
		if o := p.Primary(); o.Class == crds.FromRuntime || o.Class == crds.FromChart {
			triggers = append(triggers, p.Kind+" "+string(o.Class)+" "+o.Trigger())
		}
	}
	slices.Sort(triggers)
	want := []string{
		"Bucket runtime CompositeResourceDefinition/xbuckets.storage.shop.example",
		"CiliumNetworkPolicy runtime HelmRelease/kube-system/cilium",
		"ClusterIssuer chart HelmRelease/certs/cert-manager",
		"MustHaveOwner runtime ConstraintTemplate/musthaveowner",
		"Provider runtime FluxInstance/flux-system/flux",
		"WebApp runtime ResourceGraphDefinition/webapp",
	}
	if diff := cmp.Diff(want, triggers); diff != "" {
		t.Error("providers:", diff)
	}

	result := e.mustRun(opts)
	written := writtenBy(result)
	slices.Sort(written)
	want = []string{
		"created CompositeResourceDefinition/xbuckets.storage.shop.example",
		"created ConstraintTemplate/musthaveowner",
		"created FluxInstance/flux-system/flux",
		"created HelmRelease/certs/cert-manager", "created HelmRelease/kube-system/cilium", "created HelmRelease/shop/shop",
		"created HelmRepository/certs/charts", "created HelmRepository/kube-system/charts", "created HelmRepository/shop/charts",
		"created ResourceGraphDefinition/webapp",
		"unchanged Namespace/certs", "unchanged Namespace/shop",
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Error("written:", diff)
	}
	e.waitReady(wedgedTiers()...)
	e.nothingOfOurs(e.triggersLive()...)
	var again crds.Result
	if writes := e.writesOf(func() { again = e.mustRun(e.options()) }); len(writes) != 0 || len(again.Outcomes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
}

func (e *crdsEnv) triggersLive() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		e.object("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition", "", "xbuckets.storage.shop.example"),
		e.object("templates.gatekeeper.sh", "v1", "ConstraintTemplate", "", "musthaveowner"),
		e.object("fluxcd.controlplane.io", "v1", "FluxInstance", "flux-system", "flux"),
		e.object("kro.run", "v1alpha1", "ResourceGraphDefinition", "", "webapp"),
		e.object("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "kube-system", "cilium"),
		e.object("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "certs", "cert-manager"),
		e.object("source.toolkit.fluxcd.io", "v1", "HelmRepository", "certs", "charts"),
		e.object("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "shop", "shop"),
	}
}
