package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/standin/helm"
)

// command runs `standup crds` on the clone.
func (e *crdsEnv) command(args ...string) outcome {
	e.t.Helper()
	return standup(e.t, e.Cluster, e.repo.Dir, append([]string{"crds", "--path", e.path}, args...)...)
}

// announced reads what `crds -o json` says that it wrote, or would write: objects and nudges, sorted.
func announced(t *testing.T, stdout string) []string {
	t.Helper()
	var d report.CRDsDocument
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	var all []string
	for _, w := range d.Writes {
		gv, err := schema.ParseGroupVersion(w.APIVersion)
		must(t, err)
		all = append(all, strings.Trim(w.Kind+"."+gv.Group, ".")+" "+w.Namespace+"/"+w.Name)
	}
	for _, n := range d.Nudged {
		all = append(all, "Kustomization.kustomize.toolkit.fluxcd.io "+n)
	}
	slices.Sort(all)
	return all
}

// audited lists the objects that the command wrote while do ran, from the audit log, in the form of
// announced: each once, the Lease aside.
func (e *crdsEnv) audited(do func()) []string {
	e.t.Helper()
	var all []string
	for _, w := range writesOf(e.t, e.Cluster, do) {
		if w.Resource != "leases" {
			all = append(all, e.kindOf(w)+" "+w.Namespace+"/"+w.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// kindOf finds the kind behind a request's resource.
func (e *crdsEnv) kindOf(entry cluster.Entry) string {
	e.t.Helper()
	_, lists, err := e.clients.Discovery.ServerGroupsAndResources()
	must(e.t, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(e.t, err)
		for _, r := range list.APIResources {
			if gv.Group == entry.Group && r.Name == entry.Resource {
				return strings.Trim(r.Kind+"."+gv.Group, ".")
			}
		}
	}
	e.t.Fatalf("no kind for %s", entry)
	return ""
}

// exits fails unless a run ended with a code and said something, on either stream.
func (o outcome) exits(t *testing.T, code int, says ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d", o.code, code)
	}
	for _, text := range says {
		if !strings.Contains(o.stdout+o.stderr, text) {
			t.Errorf("nothing says %q", text)
		}
	}
}

// beforeFlux takes Flux off a cluster and returns what puts it there: its CRDs, its namespace, its
// controllers.
func (e *crdsEnv) beforeFlux() (install func()) {
	e.t.Helper()
	flux := []cluster.Component{cluster.SourceController, cluster.KustomizeController}
	for _, c := range flux {
		must(e.t, e.Stop(c))
	}
	client := e.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions()
	list, err := client.List(e.t.Context(), metav1.ListOptions{})
	must(e.t, err)
	for _, crd := range list.Items {
		must(e.t, client.Delete(e.t.Context(), crd.Name, metav1.DeleteOptions{}))
	}
	for _, crd := range list.Items {
		must(e.t, e.WaitFor(e.t.Context(), crdKind(), "", crd.Name, func(o *unstructured.Unstructured) bool { return o == nil }))
	}
	namespaces := e.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	must(e.t, namespaces.Delete(e.t.Context(), "flux-system", metav1.DeleteOptions{}))
	must(e.t, e.WaitFor(e.t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", "flux-system", func(o *unstructured.Unstructured) bool { return o == nil }))
	return func() {
		e.t.Helper()
		must(e.t, e.Apply(e.t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"))
		for _, crd := range list.Items {
			fresh := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
			_, err := client.Create(e.t.Context(), &fresh, metav1.CreateOptions{FieldManager: "flux"})
			must(e.t, err)
		}
		for _, crd := range list.Items {
			must(e.t, e.WaitFor(e.t.Context(), crdKind(), "", crd.Name, func(o *unstructured.Unstructured) bool { return cluster.ConditionTrue(o, "Established") }))
		}
		for _, c := range flux {
			must(e.t, e.StartComponent(e.t.Context(), c))
		}
	}
}

func crdKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// coldRepository has a CRD in git with an object of it a tier later, and a release of a chart in git
// whose CRD is a template, with an object of that in the same pass.
func coldRepository() map[string]string {
	return map[string]string{
		"clusters/test/platform.yaml":     tierFile("platform", ""),
		"clusters/test/apps.yaml":         tierFile("apps", "", "platform"),
		"platform/crd.yaml":               crdFile("git.example", "v1", "Shop", "shops", "Namespaced"),
		"apps/shop.yaml":                  "apiVersion: git.example/v1\nkind: Shop\nmetadata: {name: corner, namespace: default}\n",
		"apps/issuer.yaml":                "apiVersion: certs.example/v1\nkind: Issuer\nmetadata: {name: ca}\n",
		"apps/certs.yaml":                 "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: certs, namespace: default}\nspec:\n  interval: 1h\n  chart: {spec: {chart: ./charts/certs, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n",
		"charts/certs/Chart.yaml":         "apiVersion: v2\nname: certs\nversion: 1.0.0\n",
		"charts/certs/values.yaml":        "crds: {enabled: true}\n",
		"charts/certs/templates/crd.yaml": "{{ if .Values.crds.enabled }}\n" + crdFile("certs.example", "v1", "Issuer", "issuers", "Cluster") + "{{ end }}",
		"charts/certs/crds/folder.yaml":   crdFile("folder.example", "v1", "Page", "pages", "Cluster"),
	}
}

// TestE2ECrdsCommandColdBeforeFlux is a bare API server: the CRDs of git and of charts go ahead of
// Flux, and when Flux comes, up finds nothing in its way.
func TestE2ECrdsCommandColdBeforeFlux(t *testing.T) {
	e := newCrdsEnv(t)
	install := e.beforeFlux()
	e.clone(coldRepository())
	_, err := buildOnce()
	must(t, err) // with the build cache that it has; charts get one of their own
	t.Setenv("XDG_CACHE_HOME", t.TempDir())

	e.command().exits(t, 2, "Flux is not installed on this cluster", "hint: install Flux first")
	var dry, ran outcome
	if writes := writesOf(t, e.Cluster, func() { dry = e.command("--cold", "--charts", "--dry-run", "-o", "json") }); len(writes) != 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	dry.exits(t, 0)
	written := e.audited(func() { ran = e.command("--cold", "--charts", "-o", "json") })
	ran.exits(t, 0)
	want := []string{
		"CustomResourceDefinition.apiextensions.k8s.io /issuers.certs.example",
		"CustomResourceDefinition.apiextensions.k8s.io /pages.folder.example",
		"CustomResourceDefinition.apiextensions.k8s.io /shops.git.example",
	}
	for what, got := range map[string][]string{"the dry run": announced(t, dry.stdout), "the run": announced(t, ran.stdout), "the audit log": written} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if writes := writesOf(t, e.Cluster, func() { ran = e.command("--cold", "--charts") }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
	ran.exits(t, 0, "nothing to do: all 3 CRDs exist already")

	install()
	charts := map[string]*chart.Chart{}
	c, err := loader.Load(filepath.Join(e.repo.Dir, "charts/certs"))
	must(t, err)
	charts["./charts/certs"] = c
	e.background(func(ctx context.Context) error {
		return helm.Run(ctx, e.RESTConfig(), charts, func(err error) { t.Log("stand-in:", err) })
	})
	must(t, e.Sync(t.Context(), cluster.Sync{Repo: e.repo.Name, Path: e.path}))
	e.WaitReady(t.Context(), "flux-system", "flux-system") //nolint:errcheck // up waits too
	standup(t, e.Cluster, e.repo.Dir, "up", "--path", e.path).exits(t, 0)
	must(t, e.WaitFor(t.Context(), schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}, "default", "certs",
		func(o *unstructured.Unstructured) bool { return cluster.ConditionTrue(o, "Ready") }))
	for _, name := range []string{"shops.git.example", "issuers.certs.example", "pages.folder.example"} {
		e.nothingOfOurs(e.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", name))
	}
	issuers := e.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "issuers.certs.example")
	if !slices.ContainsFunc(issuers.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == "helm-controller" }) {
		t.Errorf("the release has not adopted its CRD: %+v", issuers.GetManagedFields())
	}
	if writes := writesOf(t, e.Cluster, func() { ran = e.command() }); len(writes) != 0 {
		t.Errorf("a run when all is well wrote: %v", writes)
	}
	ran.exits(t, 0, "nothing to do: no tier is stuck for want of a kind")
}

// TestE2ECrdsCommandFreesExportsAndBundles holds the announced writes to the audit log on every
// shape of a wedged tier, exports what nobody applied, and takes it to a cluster without Flux.
func TestE2ECrdsCommandFreesExportsAndBundles(t *testing.T) {
	e := newCrdsEnv(t)
	e.runStandins()
	e.push(shapes())
	e.waitAllStuck()

	var dry, ran outcome
	if writes := writesOf(t, e.Cluster, func() { dry = e.command("--dry-run", "-o", "json") }); len(writes) != 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	dry.exits(t, 0)
	written := e.audited(func() { ran = e.command("-o", "json") })
	ran.exits(t, 0)
	if len(written) != 10+7 {
		t.Errorf("%d objects and nudges were written, want 10 and 7", len(written))
	}
	if diff := cmp.Diff(written, announced(t, dry.stdout)); diff != "" {
		t.Error("the dry run against the audit log:", diff)
	}
	if diff := cmp.Diff(written, announced(t, ran.stdout)); diff != "" {
		t.Error("the run's own words against the audit log:", diff)
	}
	e.waitReady(wedgedTiers()...)
	begin := time.Now()
	if writes := writesOf(t, e.Cluster, func() { ran = e.command() }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
	t.Logf("the second run took %.1f s", time.Since(begin).Seconds())
	ran.exits(t, 0, "nothing to do: no tier is stuck for want of a kind")

	dir := t.TempDir()
	e.fluxAppliedByFlux()
	names := e.export(dir)
	want := []string{
		"alerts.notification.toolkit.fluxcd.io", "buckets.storage.shop.example", "ciliumnetworkpolicies.cilium.io", "ciliumnodes.cilium.io",
		"musthaveowner.constraints.gatekeeper.sh", "providers.notification.toolkit.fluxcd.io", "webapps.kro.run", "xbuckets.storage.shop.example",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error("exported:", diff)
	}
	standup(t, e.Cluster, e.repo.Dir, "crds", "export", "--dir", dir).exits(t, 0, "8 CRDs that nobody applied, 0 files written")
	t.Run("the bundle goes ahead of Flux", func(t *testing.T) { bundleAheadOfFlux(t, dir, want) })
}

// export runs `crds export` and returns the names of the CRDs that it wrote.
func (e *crdsEnv) export(dir string) []string {
	e.t.Helper()
	var o outcome
	if writes := writesOf(e.t, e.Cluster, func() { o = standup(e.t, e.Cluster, e.repo.Dir, "crds", "export", "--dir", dir) }); len(writes) != 0 {
		e.t.Errorf("the export wrote to the cluster: %v", writes)
	}
	o.exits(e.t, 0)
	var names []string
	for _, file := range strings.Fields(o.stdout) {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// fluxAppliedByFlux labels the test cluster's own CRDs as those of a real one are.
func (e *crdsEnv) fluxAppliedByFlux() {
	e.t.Helper()
	client := e.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions()
	list, err := client.List(e.t.Context(), metav1.ListOptions{})
	must(e.t, err)
	for _, crd := range list.Items {
		if slices.ContainsFunc(crd.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == cluster.FieldManager }) {
			_, err := client.Patch(e.t.Context(), crd.Name, "application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"flux-system","kustomize.toolkit.fluxcd.io/namespace":"flux-system"}}}`), metav1.PatchOptions{FieldManager: cluster.FieldManager})
			must(e.t, err)
		}
	}
}

// bundleAheadOfFlux takes a bundle to a cluster without Flux, then brings that up.
func bundleAheadOfFlux(t *testing.T, dir string, names []string) {
	e := newCrdsEnv(t)
	install := e.beforeFlux()
	e.clone(shapes())
	// The bundle's own file for a kind that its operator does not stand.
	must(t, os.WriteFile(filepath.Join(dir, "cdi.yaml"), []byte(crdFile("cdi.kubevirt.io", "v1beta1", "StorageProfile", "storageprofiles", "Cluster")), 0o644))
	var dry, ran outcome
	if writes := writesOf(t, e.Cluster, func() { dry = e.command("--bundle", dir, "--dry-run", "-o", "json") }); len(writes) != 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	dry.exits(t, 0, `"reason": "KubeVirt CDI does not deploy while it exists`)
	written := e.audited(func() { ran = e.command("--bundle", dir) })
	ran.exits(t, 0, "left out ", "KubeVirt CDI does not deploy while it exists")
	if len(written) != len(names) {
		t.Errorf("written: %v", written)
	}
	if diff := cmp.Diff(written, announced(t, dry.stdout)); diff != "" {
		t.Error("the dry run against the audit log:", diff)
	}
	if writes := writesOf(t, e.Cluster, func() { ran = e.command("--bundle", dir) }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
	ran.exits(t, 0, fmt.Sprintf("nothing to do: all %d CRDs exist already", len(names)))

	install()
	e.runStandins()
	must(t, e.Sync(t.Context(), cluster.Sync{Repo: e.repo.Name, Path: e.path}))
	must(t, e.WaitReady(t.Context(), "flux-system", "flux-system"))
	// Flux must have failed for a kind that nobody knows before anything is done about it.
	standup(t, e.Cluster, e.repo.Dir, "up", "--path", e.path, "--except", "shop").exits(t, 0)
	e.waitStuck("shop", "Shelf")
	e.command().exits(t, 0, "HelmRelease/shop/shop")
	e.waitReady(wedgedTiers()...)
	for _, name := range names {
		e.nothingOfOurs(e.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", name))
	}
}

// waitAllStuck waits until Flux has failed for every tier of shapes.
func (e *crdsEnv) waitAllStuck() {
	e.t.Helper()
	e.waitReady("platform")
	for name, kind := range map[string]string{
		"gatekeeper": "MustHaveOwner", "crossplane": "Bucket", "kro": "WebApp", "flux-instance": "Provider",
		"cilium": "CiliumNetworkPolicy", "certs": "ClusterIssuer", "shop": "Shelf",
	} {
		e.waitStuck(name, kind)
	}
}
