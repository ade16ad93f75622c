package homenetwork_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/test/homenetwork"
)

// tierRow is a row of the table in the repository's README.
type tierRow struct {
	Path      string
	DependsOn []string
	Wait      bool
}

func wantTiers(state homenetwork.State, cluster string) map[string]tierRow {
	config := []string{"platform-config"}
	want := map[string]tierRow{
		"flux-system":         {"./clusters/" + cluster, nil, false},
		"cilium":              {"./platform/cilium", nil, true},
		"platform":            {"./platform", []string{"cilium"}, true},
		"platform-config":     {"./platform-config", []string{"platform"}, true},
		"platform-config-cdi": {"./platform-config-cdi", config, true},
		"apps-wave-0":         {"./apps/wave-0", config, true},
		"apps-wave-1":         {"./apps/wave-1", []string{"apps-wave-0"}, true},
		"apps-wave-2":         {"./apps/wave-2", []string{"apps-wave-1"}, true},
		"apps-vms":            {"./apps/vms", []string{"platform-config", "platform-config-cdi"}, false},
		"oauth2-proxy":        {"./platform/oauth2-proxy", config, false},
		"headlamp":            {"./platform/headlamp", config, false},
		"homepage":            {"./platform/homepage", config, false},
		"crafty":              {"./platform/crafty", config, false},
		"backup":              {"./platform/velero", config, false},
	}
	if state == homenetwork.Wedged {
		delete(want, "platform-config-cdi")
		want["apps-vms"] = tierRow{"./apps/vms", config, false}
	}
	return want
}

func TestTiersAndEdgesAreThoseOfTheTable(t *testing.T) {
	for _, state := range states {
		repo := onDisk(t, state)
		for _, cluster := range clusters {
			got := map[string]tierRow{}
			for name, tier := range tiers(t, repo, cluster) {
				row := tierRow{Path: tier.Spec.Path, Wait: tier.Spec.Wait}
				for _, dependency := range tier.Spec.DependsOn {
					row.DependsOn = append(row.DependsOn, dependency.Name)
				}
				got[name] = row
				if !tier.Spec.Prune || tier.Spec.Suspend {
					t.Errorf("%s %s: Kustomization %s does not prune or is suspended", state, cluster, name)
				}
			}
			if diff := cmp.Diff(wantTiers(state, cluster), got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", state, cluster, diff)
			}
		}
	}
}

// A tier has only the objects of its own path: Flux would let two tiers fight
// over an object that both have.
func TestEveryTierBuildsAndNoObjectIsInTwo(t *testing.T) {
	for _, state := range states {
		repo := onDisk(t, state)
		for _, cluster := range clusters {
			owner := map[string]string{}
			for name, tier := range tiers(t, repo, cluster) {
				objects := build(t, repo, tier.Spec.Path)
				if len(objects) == 0 {
					t.Errorf("%s %s: Kustomization %s holds nothing", state, cluster, name)
				}
				for _, object := range objects {
					if other := owner[id(object)]; other != "" {
						t.Errorf("%s %s: %s is in %s and in %s", state, cluster, id(object), other, name)
					}
					owner[id(object)] = name
				}
			}
		}
	}
}

func TestDevAndProdDifferOnlyInClusterVars(t *testing.T) {
	for _, state := range states {
		repo := onDisk(t, state)
		read := func(cluster string) map[string]any {
			objects := map[string]any{}
			for _, object := range build(t, repo, "clusters/"+cluster) {
				switch id(object) {
				case "ConfigMap/flux-system/cluster-vars":
					data, _, _ := unstructured.NestedStringMap(object.Object, "data")
					if data["CLUSTER_NAME"] != cluster {
						t.Errorf("%s: CLUSTER_NAME is %q in %s", state, data["CLUSTER_NAME"], cluster)
					}
					names := []string{}
					for name := range data {
						names = append(names, name)
					}
					slices.Sort(names)
					object.Object["data"] = names
				case "Kustomization.kustomize.toolkit.fluxcd.io/flux-system/flux-system":
					unstructured.RemoveNestedField(object.Object, "spec", "path")
				}
				objects[id(object)] = object.Object
			}
			return objects
		}
		if diff := cmp.Diff(read("dev"), read("prod")); diff != "" {
			t.Errorf("%s (-dev +prod):\n%s", state, diff)
		}
	}
}

func TestWedgedDiffersOnlyInWhereTheProfilesAre(t *testing.T) {
	profiles := func(state homenetwork.State, folder string) map[string]any {
		found := map[string]any{}
		for _, object := range build(t, onDisk(t, state), folder) {
			if object.GetKind() == "StorageProfile" {
				found[id(object)] = object.Object
			}
		}
		return found
	}
	moved := profiles(homenetwork.Repaired, "platform-config-cdi")
	if len(moved) != 2 {
		t.Errorf("repaired: %d StorageProfiles in platform-config-cdi, want 2", len(moved))
	}
	if diff := cmp.Diff(moved, profiles(homenetwork.Wedged, "platform-config")); diff != "" {
		t.Errorf("the StorageProfiles differ (-repaired +wedged):\n%s", diff)
	}
	if left := profiles(homenetwork.Repaired, "platform-config"); len(left) != 0 {
		t.Errorf("repaired: platform-config still holds %v", left)
	}
	if onDisk(t, homenetwork.Wedged).Exists("/platform-config-cdi") {
		t.Error("wedged: platform-config-cdi is still there")
	}
	// Every tier that both states have, apart from platform-config, holds the same.
	repaired, wedged := onDisk(t, homenetwork.Repaired), onDisk(t, homenetwork.Wedged)
	for name, tier := range tiers(t, wedged, "prod") {
		if name == "flux-system" || name == "platform-config" {
			continue
		}
		if diff := cmp.Diff(build(t, repaired, tier.Spec.Path), build(t, wedged, tier.Spec.Path)); diff != "" {
			t.Errorf("%s (-repaired +wedged):\n%s", name, diff)
		}
	}
}

var token = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Flux substitutes only where a tier asks for it, and fails the build on a name
// that it does not find.
func TestEveryTokenIsSubstituted(t *testing.T) {
	for _, state := range states {
		repo := onDisk(t, state)
		for _, cluster := range clusters {
			vars := map[string]string{}
			for _, object := range build(t, repo, "clusters/"+cluster) {
				if object.GetName() == "cluster-vars" {
					vars, _, _ = unstructured.NestedStringMap(object.Object, "data")
				}
			}
			used := map[string]bool{}
			for name, tier := range tiers(t, repo, cluster) {
				for _, object := range build(t, repo, tier.Spec.Path) {
					data, err := yaml.Marshal(object.Object)
					if err != nil {
						t.Fatal(err)
					}
					for _, match := range token.FindAllStringSubmatch(string(data), -1) {
						used[match[1]] = true
						if vars[match[1]] == "" || !substitutes(tier) {
							t.Errorf("%s %s: %s ships %s literally, in %s", state, cluster, name, match[0], id(object))
						}
					}
				}
			}
			for name := range vars {
				if !used[name] {
					t.Errorf("%s %s: nothing uses ${%s}", state, cluster, name)
				}
			}
		}
	}
}

func substitutes(tier kustomizev1.Kustomization) bool {
	return tier.Spec.PostBuild != nil && len(tier.Spec.PostBuild.SubstituteFrom) == 1 &&
		tier.Spec.PostBuild.SubstituteFrom[0].Name == "cluster-vars"
}

func TestEncryptedFilesAreForBothClusters(t *testing.T) {
	repo := onDisk(t, homenetwork.Repaired)
	encrypted, err := repo.ReadFile("/platform/velero/credentials.sops.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(encrypted), "ENC[AES256_GCM,") {
		t.Error("platform/velero/credentials.sops.yaml is not encrypted")
	}
	rules, err := repo.ReadFile("/.sops.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range clusters {
		key, err := homenetwork.AgeKey(cluster)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(key), "# public key: ")
		recipient, _, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(recipient, "age1") {
			t.Fatalf("%s.agekey names no recipient", cluster)
		}
		if !strings.Contains(string(encrypted), recipient) || !strings.Contains(string(rules), recipient) {
			t.Errorf("nothing is encrypted for %s of %s", recipient, cluster)
		}
		for name, tier := range tiers(t, repo, cluster) {
			if got := tier.Spec.Decryption != nil; got != (name == "backup") {
				t.Errorf("%s: Kustomization %s decrypts: %t", cluster, name, got)
			}
		}
	}
}

func TestWavesFollowTheCatalogue(t *testing.T) {
	repo := onDisk(t, homenetwork.Repaired)
	data, err := repo.ReadFile("/apps/catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var catalogue struct {
		Apps []struct {
			Name  string
			Image string
			Port  int64
			Needs []string
		}
	}
	if err := yaml.UnmarshalStrict(data, &catalogue); err != nil {
		t.Fatal(err)
	}
	waveOf := map[string]int{}
	want := map[string]string{}
	for _, app := range catalogue.Apps { // an app comes after what it needs
		waveOf[app.Name] = 0
		for _, need := range app.Needs {
			if _, known := waveOf[need]; !known {
				t.Fatalf("%s needs %s, which is not above it", app.Name, need)
			}
			waveOf[app.Name] = max(waveOf[app.Name], waveOf[need]+1)
		}
		want[app.Name] = app.Image
	}
	got := map[string]string{}
	for wave, folder := range []string{"apps/wave-0", "apps/wave-1", "apps/wave-2"} {
		for _, object := range build(t, repo, folder) {
			if object.GetKind() != "Deployment" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			got[object.GetName()] = containers[0].(map[string]any)["image"].(string)
			if waveOf[object.GetName()] != wave {
				t.Errorf("%s is in wave %d, want %d", object.GetName(), wave, waveOf[object.GetName()])
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("apps and images (-catalogue +waves):\n%s", diff)
	}
}

func TestWriteOfOneStateOverTheOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	own := filepath.Join(dir, "platform-config-cdi", "notes.txt")
	for _, state := range []homenetwork.State{homenetwork.Repaired, homenetwork.Wedged, homenetwork.Repaired} {
		if err := homenetwork.Write(dir, state); err != nil {
			t.Fatal(err)
		}
		want, err := homenetwork.FS(state)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, want), contents(t, os.DirFS(dir))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := homenetwork.Write(dir, homenetwork.Wedged); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("a file of neither state is gone: %v", err)
	}
}

func TestUnknownStateIsAnError(t *testing.T) {
	_, err := homenetwork.FS("mended")
	if want := `reading the home network: no state "mended"`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestSetSourceURLReachesEveryCluster(t *testing.T) {
	dir := t.TempDir()
	if err := homenetwork.SetSourceURL(dir, "http://127.0.0.1:1/x"); err == nil {
		t.Error("no error for a folder without clusters")
	}
	if err := homenetwork.Write(dir, homenetwork.Repaired); err != nil {
		t.Fatal(err)
	}
	if err := homenetwork.SetSourceURL(dir, "http://127.0.0.1:1/x"); err != nil {
		t.Fatal(err)
	}
	for name, text := range contents(t, os.DirFS(dir)) {
		if strings.Contains(text, homenetwork.SourceURL) {
			t.Errorf("%s still names %s", name, homenetwork.SourceURL)
		}
		if strings.HasSuffix(name, "gotk-sync.yaml") && !strings.Contains(text, "url: http://127.0.0.1:1/x\n") {
			t.Errorf("%s does not name the new address", name)
		}
	}
}

func contents(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
