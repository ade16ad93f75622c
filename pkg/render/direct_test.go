package render_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	dir := t.TempDir()
	for _, f := range ar.Files {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folders, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.Name() == "base" {
			continue
		}
		t.Run(folder.Name(), func(t *testing.T) {
			want := build(t, dir, folder.Name(), render.Options{Kustomize: true})
			got := build(t, dir, folder.Name(), render.Options{})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-kustomize +direct):\n%s", d)
			}
			if len(want) == 0 {
				t.Error("nothing was built")
			}
		})
	}
}

// build writes what comes of a folder: faults, then each object and its file.
func build(t *testing.T, dir, folder string, opts render.Options) []any {
	t.Helper()
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	src, err := render.NewSource(tree, ".", "")
	if err != nil {
		t.Fatal(err)
	}
	ks := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "x", "namespace": "flux-system"},
		"spec":     map[string]any{"path": folder},
	}}
	res, err := src.Build(t.Context(), ks, opts)
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
	dir := t.TempDir()
	const text = `generatorOptions: {labels: {all: a}, annotations: {all: a}, immutable: true}
configMapGenerator:
- {name: one, literals: [a=1], options: {labels: {own: b}, annotations: {own: b}}}
`
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [below]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "below", "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	src, err := render.NewSource(tree, ".", "")
	if err != nil {
		t.Fatal(err)
	}
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
	dir := t.TempDir()
	var objects strings.Builder
	for i := range 450 {
		fmt.Fprintf(&objects, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d%d}\nspec: {template: {spec: {containers: [{name: c, image: web}]}}}\n", i)
	}
	files := map[string]string{
		"kustomization.yaml": "namespace: shop\nresources: [objects.yaml]\nlabels: [{pairs: {a: b}, includeSelectors: true}]\nimages: [{name: web, newTag: \"2\"}]\n",
		"objects.yaml":       objects.String(),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, got := build(t, dir, ".", render.Options{Kustomize: true}), build(t, dir, ".", render.Options{})
	if d := cmp.Diff(want, got); d != "" || len(want) != 900 {
		t.Errorf("%d (-kustomize +direct):\n%s", len(want), d)
	}
}
