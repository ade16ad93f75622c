package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

const crdYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]s}
  versions: [{name: v1, served: true, storage: true}]
`

// pack returns a packaged chart with a CRD in its crds folder, one in a template that a value
// switches on, and one in a sub-chart that a condition switches on.
func pack(t *testing.T, name, version string) []byte {
	t.Helper()
	file := func(name, data string) *common.File { return &common.File{Name: name, Data: []byte(data)} }
	sub := &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "sub", Version: "1.0.0"},
		Files:    []*common.File{file("crds/subs.yaml", fmt.Sprintf(crdYAML, "subs", "Sub"))},
	}
	c := &chart.Chart{
		Metadata: &chart.Metadata{
			APIVersion: "v2", Name: name, Version: version, KubeVersion: ">= 1.30-0",
			Dependencies: []*chart.Dependency{{Name: "sub", Version: "1.0.0", Condition: "sub.enabled"}},
		},
		Raw: []*common.File{file("values.yaml", "crds: {enabled: false}\nsub: {enabled: false}\npassword: \"\"\n"), file("values-all.yaml", "crds: {enabled: true}\nsub: {enabled: true}\n")},
		Values: map[string]any{
			"crds": map[string]any{"enabled": false}, "sub": map[string]any{"enabled": false}, "password": "",
		},
		Files: []*common.File{
			file("crds/folders.yaml", fmt.Sprintf(crdYAML, "folders", "Folder")),
			file("values-all.yaml", "crds: {enabled: true}\nsub: {enabled: true}\n"),
		},
		Templates: []*common.File{
			file("templates/crd.yaml", "{{- if .Values.crds.enabled }}\n"+fmt.Sprintf(crdYAML, "templates", "Template")+"{{- end }}\n"),
			file("templates/refuse.yaml", `{{- if eq .Values.password "hunter2" }}{{ fail .Values.password }}{{ end }}`),
			file("templates/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n"),
		},
	}
	c.SetDependencies(sub)
	saved, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// graphOf puts manifests into one tier.
func graphOf(t *testing.T, manifests string) *tiers.Graph {
	t.Helper()
	tier := &tiers.Tier{Key: tiers.Key{Namespace: "flux-system", Name: "apps"}, Kustomization: &kustomizev1.Kustomization{}, Source: "GitRepository/flux-system/flux-system"}
	for _, document := range strings.Split(manifests, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		tier.Objects = append(tier.Objects, render.Object{Unstructured: u})
	}
	return &tiers.Graph{Tiers: []*tiers.Tier{tier}}
}

// definitionsOf renders and lists "release kind file", or the errors.
func definitionsOf(t *testing.T, opts Options) []string {
	t.Helper()
	result, err := Render(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range result.Releases {
		if r.Err != nil {
			got = append(got, r.Err.Error())
		}
		for _, d := range r.Definitions {
			kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
			got = append(got, fmt.Sprintf("%s %s %s templated=%v", r.Object.GetName(), r.Version, kind, r.Templated[d.GetName()]))
		}
	}
	return got
}

// repository serves charts over HTTP as a Helm repository and counts the requests.
func repository(t *testing.T, versions ...string) (address string, requests *atomic.Int32) {
	t.Helper()
	mux := http.NewServeMux()
	requests = &atomic.Int32{}
	index := "apiVersion: v1\nentries:\n  shop:\n"
	for _, v := range versions {
		archive := pack(t, "shop", v)
		mux.HandleFunc("/packages/shop-"+v+".tgz", func(w http.ResponseWriter, _ *http.Request) { requests.Add(1); _, _ = w.Write(archive) })
		index += "  - {name: shop, version: " + v + ", urls: [packages/shop-" + v + ".tgz]}\n"
	}
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { requests.Add(1); _, _ = io.WriteString(w, index) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, requests
}

const releaseYAML = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: default}
spec:
  chart: {spec: {chart: shop, version: "%s", sourceRef: {kind: HelmRepository, name: shop}}}
  values: %s
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: shop, namespace: default}
spec: {url: "%s"}
`

func TestChartsOverHTTP(t *testing.T) {
	address, _ := repository(t, "1.0.0", "1.2.0", "2.0.0-rc.1")
	tests := []struct {
		name, version, values string
		want                  []string
	}{
		{"the crds folder", "1.x", "{}", []string{"shop 1.2.0 Folder templated=false"}},
		{"templates, by value", "1.0.0", "{crds: {enabled: true}}", []string{"shop 1.0.0 Folder templated=false", "shop 1.0.0 Template templated=true"}},
		{"a sub-chart, by condition", "*", "{sub: {enabled: true}}", []string{"shop 1.2.0 Folder templated=false", "shop 1.2.0 Sub templated=false"}},
		{"a version that is not there", "9.x", "{}", []string{"HelmRelease/default/shop: fetching its chart: " + address + `: chart shop: no version satisfies "9.x"`}},
		{"a chart that does not render", "1.0.0", "{password: hunter2}", []string{"shop 1.0.0 Folder templated=false"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := definitionsOf(t, Options{Graph: graphOf(t, fmt.Sprintf(releaseYAML, test.version, test.values, address))})
			if test.name == "a chart that does not render" {
				if len(got) != 2 || !strings.HasPrefix(got[0], "HelmRelease/default/shop: rendering chart shop 1.0.0: ") {
					t.Errorf("%v", got)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFixedVersionsAreFetchedOnce(t *testing.T) {
	address, requests := repository(t, "1.0.0")
	cache := filepath.Join(t.TempDir(), "charts")
	for range 2 {
		definitionsOf(t, Options{Graph: graphOf(t, fmt.Sprintf(releaseYAML, "1.0.0", "{}", address)), Cache: cache})
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests, want one for the index and one for the chart", got)
	}
}

func TestSkippedFolderAndValuesFiles(t *testing.T) {
	address, _ := repository(t, "1.0.0")
	manifests := strings.Replace(fmt.Sprintf(releaseYAML, "1.0.0", "{}", address), "sourceRef:", "valuesFiles: [values-all.yaml], sourceRef:", 1)
	manifests = strings.Replace(manifests, "  values: {}", "  install: {crds: Skip}", 1)
	if diff := cmp.Diff([]string{"shop 1.0.0 Template templated=true"}, definitionsOf(t, Options{Graph: graphOf(t, manifests)})); diff != "" {
		t.Error(diff)
	}
}

// TestSecretsAreNotQuoted plants a password in a Secret that feeds a release whose chart quotes it.
func TestSecretsAreNotQuoted(t *testing.T) {
	address, _ := repository(t, "1.0.0")
	manifests := strings.Replace(fmt.Sprintf(releaseYAML, "1.0.0", "{}", address), "  values: {}", "  valuesFrom: [{kind: Secret, name: login, valuesKey: p, targetPath: password}]", 1) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: default}\nstringData: {p: hunter2}\n"
	got := definitionsOf(t, Options{Graph: graphOf(t, manifests)})
	want := []string{"HelmRelease/default/shop: rendering chart shop 1.0.0: the message may quote values from Secrets and is not shown", "shop 1.0.0 Folder templated=false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// registry is the read-only part of an OCI registry with one chart.
func registry(t *testing.T, name string, versions ...string) string {
	t.Helper()
	content := map[string][]byte{}
	digest := func(data []byte) string { sum := sha256.Sum256(data); return "sha256:" + hex.EncodeToString(sum[:]) }
	manifests := map[string][]byte{}
	for _, v := range versions {
		archive, config := pack(t, name, v), []byte(`{}`)
		content[digest(archive)], content[digest(config)] = archive, config
		manifest, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": map[string]any{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digest(config), "size": len(config)},
			"layers": []any{map[string]any{"mediaType": chartLayer, "digest": digest(archive), "size": len(archive)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		manifests[v], manifests[digest(manifest)] = manifest, manifest
	}
	serve := func(w http.ResponseWriter, r *http.Request, data []byte, kind string) {
		if data == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Docker-Content-Digest", digest(data))
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(data)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/charts/"+name+"/manifests/", func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, manifests[filepath.Base(r.URL.Path)], "application/vnd.oci.image.manifest.v1+json")
	})
	mux.HandleFunc("/v2/charts/"+name+"/blobs/", func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, content[filepath.Base(r.URL.Path)], "application/octet-stream")
	})
	mux.HandleFunc("/v2/charts/"+name+"/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/" + name, "tags": versions})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts"
}

func TestChartsOverOCI(t *testing.T) {
	address := registry(t, "shop", "1.0.0", "1.1.0")
	byRef := func(ref string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: default}\nspec: {chartRef: {kind: OCIRepository, name: shop}}\n---\n" +
			"apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: shop, namespace: default}\nspec: {url: " + address + "/shop, ref: " + ref + "}\n"
	}
	tests := []struct{ name, manifests, want string }{
		{"a HelmRepository of type oci", fmt.Sprintf(releaseYAML, "1.x", "{}", address), "shop 1.1.0 Folder templated=false"},
		{"a version written out", fmt.Sprintf(releaseYAML, "1.0.0", "{}", address), "shop 1.0.0 Folder templated=false"},
		{"an OCIRepository by tag", byRef("{tag: 1.0.0}"), "shop 1.0.0 Folder templated=false"},
		{"an OCIRepository by constraint", byRef("{semver: '>=1.0.0'}"), "shop 1.1.0 Folder templated=false"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{test.want}, definitionsOf(t, Options{Graph: graphOf(t, test.manifests)})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChartInGit(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "shop.tgz")
	if err := os.WriteFile(archive, pack(t, "shop", "3.0.0"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ExpandFile(filepath.Join(dir, "charts"), archive); err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	manifest := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: default}\n" +
		"spec: {chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: %s, namespace: flux-system}}}}\n"
	got := definitionsOf(t, Options{Graph: graphOf(t, fmt.Sprintf(manifest, "flux-system")), Tree: tree})
	if diff := cmp.Diff([]string{"shop 3.0.0 Folder templated=false"}, got); diff != "" {
		t.Error(diff)
	}
	got = definitionsOf(t, Options{Graph: graphOf(t, fmt.Sprintf(manifest, "elsewhere")), Tree: tree})
	want := "HelmRelease/default/shop: fetching its chart: the content of GitRepository/flux-system/elsewhere is not in git"
	if diff := cmp.Diff([]string{want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRenderedChartsReachTheProviders(t *testing.T) {
	address, _ := repository(t, "1.0.0")
	g := graphOf(t, fmt.Sprintf(releaseYAML, "1.0.0", "{}", address)+"---\napiVersion: shop.example/v1\nkind: Folder\nmetadata: {name: f, namespace: default}\n")
	result, err := Render(t.Context(), Options{Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range crds.Providers(g, catalogue, nil, result.Rendered) {
		if o := p.Primary(); p.Kind == "Folder" && (o.Class != crds.FromChart || o.Evidence != crds.EvidenceChart || o.Trigger() != "HelmRelease/default/shop") {
			t.Errorf("%+v", o)
		}
	}
}
