package homenetwork_test

import (
	"io/fs"
	"path"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/test/homenetwork"
)

var (
	states   = []homenetwork.State{homenetwork.Repaired, homenetwork.Wedged}
	clusters = []string{"dev", "prod"}
)

// onDisk returns the repository in memory, as kustomize wants to read it.
func onDisk(t *testing.T, state homenetwork.State) filesys.FileSystem {
	t.Helper()
	tree, err := homenetwork.FS(state)
	if err != nil {
		t.Fatal(err)
	}
	mem := filesys.MakeFsInMemory()
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return mem.WriteFile(path.Join("/", name), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return mem
}

// build returns the objects that kustomize makes of a folder, in its order.
func build(t *testing.T, repo filesys.FileSystem, folder string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(repo, path.Join("/", folder))
	if err != nil {
		t.Fatalf("building %s: %v", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			t.Fatalf("building %s: %v", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatalf("building %s: %v", folder, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// tiers returns the Flux Kustomizations of a cluster by name.
func tiers(t *testing.T, repo filesys.FileSystem, cluster string) map[string]kustomizev1.Kustomization {
	t.Helper()
	found := map[string]kustomizev1.Kustomization{}
	for _, object := range build(t, repo, "clusters/"+cluster) {
		if object.GetKind() != kustomizev1.KustomizationKind {
			continue
		}
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		var tier kustomizev1.Kustomization
		if err := yaml.UnmarshalStrict(data, &tier); err != nil {
			t.Fatalf("reading Kustomization %s: %v", object.GetName(), err)
		}
		found[tier.Name] = tier
	}
	return found
}

// id names an object for messages and comparison.
func id(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + "/" + object.GetNamespace() + "/" + object.GetName()
}
