package resume

import (
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/test/model"
)

func TestPlan(t *testing.T) {
	list := chain(4, func(i int, t *model.Tier) { t.Suspended = i > 0; t.InGit = i == 3 })
	h := newHarness(t, model.New(list), Options{Selection: Selection{Only: nil}})
	h.RunUntil(20*time.Millisecond, func() bool { return false }) // nothing has had a pass
	s := h.Snapshot()
	second := s.Kustomizations[model.Key("tier-01")].DeepCopy()
	second.Spec.Prune = true
	second.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{
		{ID: "apps_kept__ConfigMap", Version: "v1"},
		{ID: "apps_left_apps_Deployment", Version: "v1"},
		{ID: "_some__role_rbac.authorization.k8s.io_ClusterRole", Version: "v1"},
	}}
	s.Kustomizations[model.Key("tier-01")] = second
	g := h.opts.Graph
	g.Tiers[1].Objects = []render.Object{{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "apps", "name": "kept"},
	}}}}
	steps, err := Plan(t.Context(), h.opts, s, h.Now())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range steps {
		got = append(got, fmt.Sprintf("%d %s %q %s %v", step.Wave, step.Tier.Name, step.Verb, step.Standing.Phase, step.Prunes))
	}
	want := []string{
		`0 tier-00 "nudge" working []`,
		`1 tier-01 "resume" blocked [ClusterRole/some:role Deployment/apps/left]`,
		`2 tier-02 "resume" blocked []`,
		`3 tier-03 "" held []`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-) got(+):\n%s", diff)
	}
}
