package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/homenetwork"
	"github.com/standup-sh/standup/test/standin/cdi"
)

const prod = "clusters/prod"

// newHomeNetwork starts a cluster with the stand-in cdi-operator and points Flux at the home network.
func newHomeNetwork(t *testing.T, state homenetwork.State) (*cluster.Cluster, cold.Repository) {
	t.Helper()
	c := cluster.New(t, cluster.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = cdi.Run(ctx, c.RESTConfig(), cdi.Options{}, nil) }()
	r, err := cold.HomeNetwork(t.Context(), c, state, "prod")
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

// TestE2EWedgedColdStart is the case that the project was born from: a cold cluster that Flux alone
// never brings up.
func TestE2EWedgedColdStart(t *testing.T) {
	c, r := newHomeNetwork(t, homenetwork.Wedged)

	// Flux alone: stuck, and still stuck at its next tries.
	watchStuck(t, c)
	if s := standup(t, c, r.Dir, "status", "--path", prod); s.code != 1 || !strings.Contains(s.stdout, `StorageProfile`) {
		t.Errorf("status of the stuck cluster: exit %d, want 1 and the missing kind named", s.code)
	}

	// A dry run says what would be written, and writes nothing.
	var plan struct {
		Writes []struct{ Kind, Name, Action string }
	}
	writes := writesOf(t, c, func() {
		dry := standup(t, c, r.Dir, "crds", "--path", prod, "--dry-run", "-o", "json")
		if err := json.Unmarshal([]byte(dry.stdout), &plan); err != nil {
			t.Fatal(err)
		}
	})
	if len(writes) > 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	if len(plan.Writes) != 1 || plan.Writes[0].Kind != "CDI" || plan.Writes[0].Action != "created" {
		t.Errorf("the dry run plans %+v, want the CDI object alone", plan.Writes)
	}

	// standup up frees and finishes.
	if up := standup(t, c, r.Dir, "up", "--path", prod, "--timeout", "5m"); up.code != 0 {
		t.Fatalf("up: exit %d, want 0", up.code)
	}
	expectOverrides(t, c)
	expectOnlyFluxOwnsCDI(t, c)

	// The second run has nothing to do and writes nothing.
	writes = writesOf(t, c, func() {
		if again := standup(t, c, r.Dir, "up", "--path", prod); again.code != 0 {
			t.Errorf("second up: exit %d, want 0", again.code)
		}
		if again := standup(t, c, r.Dir, "crds", "--path", prod); again.code != 0 {
			t.Errorf("crds when nothing is stuck: exit %d, want 0", again.code)
		}
	})
	if len(writes) > 0 {
		t.Errorf("the second run wrote: %v", writes)
	}

	refusesOtherRevisions(t, c, r)
}

// TestE2EColdStartFromNothing runs up at once, with nothing but the sync object there: the operator
// that must answer the trigger runs only after earlier tiers are Ready, and is awaited in the loop.
func TestE2EColdStartFromNothing(t *testing.T) {
	c, r := newHomeNetwork(t, homenetwork.Wedged)
	if up := standup(t, c, r.Dir, "up", "--path", prod, "--timeout", "8m"); up.code != 0 {
		t.Fatalf("up: exit %d, want 0", up.code)
	}
	expectOverrides(t, c)
	expectOnlyFluxOwnsCDI(t, c)
}

// watchStuck waits until Flux reports the missing kind, and makes sure that further passes end the
// same way.
func watchStuck(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	isStuck := func(s cold.TierState) bool {
		return s.Name == "platform-config" && strings.Contains(s.Message, `no matches for kind "StorageProfile"`)
	}
	if err := cold.Watch(ctx, c, isStuck); err != nil {
		t.Fatalf("Flux never reported the missing kind: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := cold.Watch(ctx, c, func(s cold.TierState) bool { return s.Name == "platform-config" && s.Ready == "True" }); err == nil {
		t.Fatal("platform-config came up by itself: the repository is not wedged")
	}
}

// expectOverrides: the profiles exist with git's values, not with CDI's guesses.
func expectOverrides(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	profile, err := c.Get(t.Context(), cdiKind("StorageProfile"), "", "longhorn-vm")
	if err != nil {
		t.Fatal(err)
	}
	sets, _, _ := unstructured.NestedSlice(profile.Object, "spec", "claimPropertySets")
	if text, _ := json.Marshal(sets); !strings.Contains(string(text), "ReadWriteMany") {
		t.Errorf("StorageProfile/longhorn-vm has %s, want ReadWriteMany as in git", text)
	}
}

// expectOnlyFluxOwnsCDI: nothing of standup stays on the object that it applied ahead of Flux.
func expectOnlyFluxOwnsCDI(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	o, err := c.Get(t.Context(), cdiKind("CDI"), "", "cdi")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		owns := strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`)
		if owns && entry.Manager != "kustomize-controller" {
			t.Errorf("CDI/cdi: spec is owned by %s too", entry.Manager)
		}
		if strings.Contains(entry.Manager, "standup") {
			t.Errorf("CDI/cdi: field manager %s is still there", entry.Manager)
		}
	}
}

func cdiKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: kind}
}

// refusesOtherRevisions: what was read is not what the cluster has, so nothing is written.
func refusesOtherRevisions(t *testing.T, c *cluster.Cluster, r cold.Repository) {
	t.Helper()
	file := filepath.Join(r.Dir, "platform-config", "kustomization.yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(before, "# edited\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"up", "resume", "crds"} {
		writes := writesOf(t, c, func() {
			o := standup(t, c, r.Dir, command, "--path", prod)
			if o.code != 2 || !strings.Contains(o.stderr, "work tree differs") || strings.Count(o.stderr, "hint:") != 1 {
				t.Errorf("%s with an edited work tree: exit %d, want 2 and one hint", command, o.code)
			}
		})
		if len(writes) > 0 {
			t.Errorf("%s with an edited work tree wrote: %v", command, writes)
		}
	}
	if o := standup(t, c, r.Dir, "up", "--path", prod, "--ref", "HEAD"); o.code != 0 {
		t.Errorf("up --ref HEAD beside an edited work tree: exit %d, want 0", o.code)
	}
}
