package render_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
)

// TestDirectIsKustomize builds folders with kustomize and without: objects, order and files must be
// the same, and so must be what is refused.
func TestDirectIsKustomize(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/direct.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	var folders []string
	for _, f := range ar.Files {
		files[f.Name] = string(f.Data)
		if folder, _, _ := strings.Cut(f.Name, "/"); folder != "base" && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			want := build(t, files, folder, render.Options{Kustomize: true})
			got := build(t, files, folder, render.Options{})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-kustomize +direct):\n%s", d)
			}
			if len(want) == 0 {
				t.Error("nothing was built")
			}
		})
	}
}

// source makes an artifact of files.
func source(t *testing.T, files map[string]string) *render.Source {
	t.Helper()
	data := map[string][]byte{}
	for name, text := range files {
		data[name] = []byte(text)
	}
	src, err := render.NewSource(repo.FromFiles(data), ".", "")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// build writes what comes of a folder: faults, then each object and its file.
func build(t *testing.T, files map[string]string, folder string, opts render.Options) []any {
	t.Helper()
	ks := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "x", "namespace": "flux-system"},
		"spec":     map[string]any{"path": folder},
	}}
	res, err := source(t, files).Build(t.Context(), ks, opts)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for _, f := range res.Faults {
		out = append(out, f.Error())
	}
	for _, o := range res.Objects {
		out = append(out, o.File, o.Object)
	}
	return out
}

// TestBuildsShareAFolder builds one folder many times at once: a build changes nothing that others read.
func TestBuildsShareAFolder(t *testing.T) {
	src := source(t, map[string]string{
		"kustomization.yaml": "resources: [below]\n",
		"below/kustomization.yaml": `generatorOptions: {labels: {all: a}, annotations: {all: a}, immutable: true}
configMapGenerator:
- {name: one, literals: [a=1], options: {labels: {own: b}, annotations: {own: b}}}
`,
	})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			res, err := src.Build(t.Context(), &unstructured.Unstructured{Object: map[string]any{}}, render.Options{})
			if err != nil || len(res.Objects) != 1 || len(res.Faults) > 0 {
				t.Errorf("built %v, %v", res, err)
			}
		})
	}
	wg.Wait()
}

// TestManyObjectsInOneFolder is about folders of which kustomize is given a part at a time.
func TestManyObjectsInOneFolder(t *testing.T) {
	var objects strings.Builder
	for i := range 450 {
		fmt.Fprintf(&objects, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%d}\nspec: {template: {spec: {containers: [{name: c, image: web}]}}}\n", i)
	}
	files := map[string]string{
		"kustomization.yaml": "namespace: shop\nresources: [objects.yaml]\nlabels: [{pairs: {a: b}, includeSelectors: true}]\nimages: [{name: web, newTag: \"2\"}]\n",
		"objects.yaml":       objects.String(),
	}
	want, got := build(t, files, ".", render.Options{Kustomize: true}), build(t, files, ".", render.Options{})
	if d := cmp.Diff(want, got); d != "" || len(want) != 900 {
		t.Errorf("%d (-kustomize +direct):\n%s", len(want), d)
	}
}
