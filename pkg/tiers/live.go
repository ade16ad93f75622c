package tiers

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

// The labels kustomize-controller puts on what it applies (fluxcd/pkg ssa owner.go).
const (
	ownerName      = kustomizeGroup + "/name"
	ownerNamespace = kustomizeGroup + "/namespace"
)

// FromCluster builds the graph of Kustomizations that exist on a cluster. The parent of a tier is
// the one whose owner labels it carries. A live graph has no files, objects or source edges, and no
// Revision or Entry; its problems are those of the order: cycles, missing dependencies, deadlocks.
func FromCluster(list []kustomizev1.Kustomization) *Graph {
	l := &loader{}
	g := &Graph{}
	for i := range list {
		ks := list[i].DeepCopy()
		t := &Tier{Key: Key{Namespace: ks.Namespace, Name: ks.Name}, Kustomization: ks}
		fillTier(t)
		if name := ks.Labels[ownerName]; name != "" {
			p := Key{Namespace: ks.Labels[ownerNamespace], Name: name}
			if p != t.Key {
				t.Parent = &p
			}
		}
		g.Tiers = append(g.Tiers, t)
	}
	g.Edges = l.edges(g.Tiers)
	sortGraph(g)
	l.check(g)
	g.Problems = l.problems
	sortProblems(g.Problems)
	return g
}
