package tiers_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/tiers"
)

// TestBehind holds what is guaranteed once a tier is Ready, as the graph is and with dependencies that
// somebody thinks of adding.
func TestBehind(t *testing.T) {
	key := func(name string) tiers.Key { return tiers.Key{Namespace: "flux-system", Name: name} }
	parent := key("parent")
	plain, waiting := &kustomizev1.Kustomization{}, &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{Wait: true}}
	b := tiers.NewBefore(&tiers.Graph{Tiers: []*tiers.Tier{
		{Key: parent, Kustomization: waiting},
		{Key: key("child"), Parent: &parent, Kustomization: plain},
		{Key: key("a"), DependsOn: []tiers.Key{key("b")}, Kustomization: plain},
		{Key: key("b"), Kustomization: plain},
	}})
	for _, test := range []struct {
		once, what string
		want       bool
	}{
		{"a", "a", true},
		{"a", "b", true},
		{"b", "a", false},
		{"parent", "child", true},
		{"child", "parent", true},
		{"a", "child", false},
		{"nobody", "a", false},
	} {
		if got := b.Behind(key(test.once)).Applied(key(test.what)); got != test.want {
			t.Errorf("once %s is Ready, %s has been applied: %v, want %v", test.once, test.what, got, test.want)
		}
	}
	if b.Of(key("b")).Ready(key("parent")) {
		t.Error("b comes after parent before anybody said so")
	}
	b.Depend(key("b"), key("parent"))
	b.Depend(key("b"), key("nobody"))
	if !b.Of(key("b")).Ready(key("parent")) || !b.Behind(key("a")).Ready(key("child")) {
		t.Error("a dependency that is added counts for nothing")
	}
}
