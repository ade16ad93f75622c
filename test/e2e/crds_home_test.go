package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/homenetwork"
	"github.com/standup-sh/standup/test/standin/cdi"
)

// writtenBy lists an outcome's writes as "action object".
func writtenBy(result crds.Result) []string {
	var all []string
	for _, o := range result.Outcomes {
		for _, w := range o.Writes {
			all = append(all, string(w.Action)+" "+w.ID())
		}
	}
	return all
}

// TestE2ECrdsFreesTheWedgedHomeNetwork is the case that the project was born from, half-converged:
// everything up to platform is up, and platform-config cannot come.
func TestE2ECrdsFreesTheWedgedHomeNetwork(t *testing.T) {
	e := newCrdsEnv(t)
	e.background(func(ctx context.Context) error { return cdi.Run(ctx, e.RESTConfig(), cdi.Options{}, nil) })
	r, err := cold.HomeNetwork(t.Context(), e.Cluster, homenetwork.Wedged, "prod")
	if err != nil {
		t.Fatal(err)
	}
	e.repo, e.path = r, "clusters/prod"
	e.waitStuck("platform-config", "StorageProfile")

	dry := e.options()
	dry.DryRun = true
	var planned crds.Result
	if writes := e.writesOf(func() { planned = e.mustRun(dry) }); len(writes) != 0 {
		t.Errorf("the dry run wrote: %v", writes)
	}
	want := []string{"created CDI/cdi"}
	if diff := cmp.Diff(want, writtenBy(planned)); diff != "" {
		t.Error("dry run:", diff)
	}

	begin := time.Now()
	result := e.mustRun(e.options())
	t.Logf("freed in %.1f s", time.Since(begin).Seconds())
	if diff := cmp.Diff(want, writtenBy(result)); diff != "" {
		t.Error("run:", diff)
	}
	e.waitReady("platform-config", "apps-vms")
	object := e.object("cdi.kubevirt.io", "v1beta1", "CDI", "", "cdi")
	e.nothingOfOurs(object)
	var appliers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Operation == "Apply" {
			appliers = append(appliers, entry.Manager)
		}
	}
	if diff := cmp.Diff([]string{"kustomize-controller"}, appliers); diff != "" {
		t.Error("who applied the CDI object:", diff)
	}
	profile := e.object("cdi.kubevirt.io", "v1beta1", "StorageProfile", "", "longhorn-vm")
	if sets, _, _ := unstructured.NestedSlice(profile.Object, "spec", "claimPropertySets"); len(sets) == 0 {
		t.Error("the StorageProfile does not carry our overrides")
	}

	e.waitReady("backup") // it brings kinds of its own, which would be found missing until then
	begin = time.Now()
	if writes := e.writesOf(func() { result = e.mustRun(e.options()) }); len(writes) != 0 {
		t.Errorf("the second run wrote: %v", writes)
	}
	t.Logf("the second run took %.1f s", time.Since(begin).Seconds())
	if len(result.Outcomes)+len(result.Plan.Tiers) != 0 {
		t.Errorf("the second run found something: %+v", result)
	}
}
