package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/cluster"
)

func definitionOf(t *testing.T, manifest string) render.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	return render.Object{Unstructured: u}
}

// TestE2ECrdsExportFreesAnotherCluster brings one cluster up by triggers, learns from it which CRDs
// nobody applied, and starts a second, bare one with them and with the first-order CRDs ahead of
// Flux, which then needs no help at all.
func TestE2ECrdsExportFreesAnotherCluster(t *testing.T) {
	healthy := newCrdsEnv(t)
	healthy.runStandins()
	healthy.push(shapes())
	healthy.waitReady("platform")
	healthy.waitStuck("shop", "Shelf")
	healthy.mustRun(healthy.options())
	healthy.waitReady(wedgedTiers()...)

	exported, err := crds.Export(t.Context(), healthy.clients.APIExtensions)
	must(t, err)
	var names []string
	// The test cluster itself applied Flux's CRDs, under a name that no cluster in the world has.
	exported = slices.DeleteFunc(exported, func(x crds.Exported) bool { return x.Owner.Name == cluster.FieldManager })
	for _, x := range exported {
		names = append(names, x.Name+" by "+x.Owner.Name)
	}
	want := []string{
		"alerts.notification.toolkit.fluxcd.io by flux-operator",
		"buckets.storage.shop.example by CompositeResourceDefinition/xbuckets.storage.shop.example",
		"ciliumnetworkpolicies.cilium.io by cilium-operator",
		"ciliumnodes.cilium.io by cilium-operator",
		"musthaveowner.constraints.gatekeeper.sh by ConstraintTemplate/musthaveowner",
		"providers.notification.toolkit.fluxcd.io by flux-operator",
		"webapps.kro.run by kro",
		"xbuckets.storage.shop.example by CompositeResourceDefinition/xbuckets.storage.shop.example",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatal("exported:", diff)
	}
	dir := t.TempDir()
	_, err = crds.WriteBundle(dir, exported)
	must(t, err)
	// An operator with an orphan check: its CRD must not go ahead of it.
	must(t, os.WriteFile(dir+"/cdi.yaml", []byte(crdFile("cdi.kubevirt.io", "v1beta1", "StorageProfile", "storageprofiles", "Cluster")), 0o644))
	bundle, err := crds.LoadBundle(os.DirFS(dir))
	must(t, err)

	cold := newCrdsEnv(t)
	cold.clone(shapes())
	opts := cold.options()
	opts.Bundle, opts.Cold = bundle, true
	opts.Charts = []crds.ChartDefinition{
		{Object: definitionOf(t, crdFile("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers", "Cluster")), Tier: tiers.Key{Namespace: "flux-system", Name: "certs"}, Release: "cert-manager", Namespace: "certs", Templated: true},
		{Object: definitionOf(t, crdFile("shop.example", "v1", "Shelf", "shelves", "Namespaced")), Tier: tiers.Key{Namespace: "flux-system", Name: "shop"}, Release: "shop", Namespace: "shop"},
	}
	result := cold.mustRun(opts)
	if got := result.Cold.Changed(); got != 6 {
		t.Errorf("%d first-order CRDs were created, want 6: %+v", got, result.Cold.Writes)
	}
	if got := result.Bundle.Changed(); got != len(want) {
		t.Errorf("%d CRDs of the bundle were created, want %d", got, len(want))
	}
	refused := crds.Exclusion{}
	if len(result.Bundle.Excluded) == 1 {
		refused = result.Bundle.Excluded[0]
	}
	if refused.Object != "CustomResourceDefinition/storageprofiles.cdi.kubevirt.io" || !strings.HasPrefix(refused.Reason, "KubeVirt CDI does not deploy while it exists") {
		t.Errorf("refused: %+v", result.Bundle.Excluded)
	}
	if writes := cold.writesOf(func() { cold.mustRun(opts) }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}

	cold.runStandins()
	must(t, cold.Sync(t.Context(), cluster.Sync{Repo: cold.repo.Name, Path: cold.path}))
	cold.waitReady(append(wedgedTiers(), "platform")...)
	cold.nothingOfOurs(cold.triggersLive()...)
	for _, name := range []string{"clusterissuers.cert-manager.io", "shelves.shop.example", "webapps.kro.run", "musthaveowner.constraints.gatekeeper.sh", "constrainttemplates.templates.gatekeeper.sh"} {
		cold.nothingOfOurs(cold.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", name))
	}
	for _, name := range []string{"cert-manager", "shop"} {
		namespace := map[string]string{"cert-manager": "certs", "shop": "shop"}[name]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := cold.WaitFor(ctx, schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}, namespace, name,
			func(o *unstructured.Unstructured) bool { return cluster.ConditionTrue(o, "Ready") })
		cancel()
		if err != nil {
			t.Errorf("HelmRelease/%s/%s did not adopt its CRDs: %v", namespace, name, err)
		}
	}
}

// TestE2ECrdsBundleNeverTouchesWhatExists: a CRD of the bundle that is older than the cluster's.
func TestE2ECrdsBundleNeverTouchesWhatExists(t *testing.T) {
	c := cluster.New(t, cluster.Options{Components: cluster.API()})
	e := &crdsEnv{Cluster: c, t: t, clients: clientsOf(t, c.RESTConfig())}
	newer := strings.Replace(crdFile("x.example", "v1", "Thing", "things", "Cluster"), "  - {name: v1,", "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n  - {name: v1,", 1)
	must(t, c.Apply(t.Context(), newer))
	bundle := &crds.Bundle{Definitions: []render.Object{
		definitionOf(t, crdFile("x.example", "v1", "Thing", "things", "Cluster")),
		definitionOf(t, crdFile("x.example", "v1", "Other", "others", "Cluster")),
	}}
	catalogue, err := crds.DefaultCatalogue()
	must(t, err)
	opts := crds.Options{Graph: &tiers.Graph{}, Catalogue: catalogue, Bundle: bundle}
	before, err := e.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "things.x.example", metav1.GetOptions{})
	must(t, err)
	result, err := crds.Run(t.Context(), e.clients, opts, nil)
	must(t, err)
	outcome := result.Bundle
	if outcome.Changed() != 1 || outcome.Writes[0].Action != crds.Unchanged || outcome.Writes[1].Action != crds.Created {
		t.Errorf("%+v", outcome.Writes)
	}
	after, err := e.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "things.x.example", metav1.GetOptions{})
	must(t, err)
	if before.ResourceVersion != after.ResourceVersion {
		t.Error("a CRD that existed was written to")
	}
	e.nothingOfOurs(e.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "others.x.example"))
}
