package tiers

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

// Before answers what Flux guarantees to have happened before a tier's first pass, on a cluster
// that starts empty. It is built once a graph and asked many times; it is not safe for concurrent
// use, because answers are remembered.
//
// What is guaranteed follows from Reconcile and checkDependencies in kustomize-controller's
// internal/controller/kustomization_controller.go: a dependency must be Ready, a parent must have
// applied the tier, and so must the tier that applies the source. A tier that waits is Ready only
// after every child Kustomization it applied is (checkHealth). A readyExpr counts as readiness: its
// author is taken at his word.
type Before struct {
	tiers    []*Tier
	index    map[Key]int
	needs    [][]fact // must hold before the first pass of tier i
	children [][]int
	memo     []*Guarantees
}

// fact is "tier has been applied" or, if ready is set, "tier has become Ready".
type fact struct {
	tier  int
	ready bool
}

// Guarantees are the tiers that Flux has brought up before the first pass of another one.
type Guarantees struct {
	applied, ready map[Key]bool
}

// Applied reports whether the whole of a tier has been applied by then.
func (g *Guarantees) Applied(k Key) bool { return g.applied[k] }

// Ready reports whether a tier has been Ready by then: for a gate that means healthy.
func (g *Guarantees) Ready(k Key) bool { return g.ready[k] }

// NewBefore prepares the answers for a graph. Edges that make a cycle guarantee each other, as
// they would if the cycle could ever come up.
func NewBefore(g *Graph) *Before {
	b := &Before{
		tiers: g.Tiers, index: make(map[Key]int, len(g.Tiers)),
		needs: make([][]fact, len(g.Tiers)), children: make([][]int, len(g.Tiers)), memo: make([]*Guarantees, len(g.Tiers)),
	}
	for i, t := range g.Tiers {
		b.index[t.Key] = i
	}
	for i, t := range g.Tiers {
		for _, k := range t.DependsOn {
			if j, ok := b.index[k]; ok {
				b.needs[i] = append(b.needs[i], fact{tier: j, ready: true})
			}
		}
		if t.Parent != nil {
			if j, ok := b.index[*t.Parent]; ok {
				b.needs[i] = append(b.needs[i], fact{tier: j})
				b.children[j] = append(b.children[j], i)
			}
		}
	}
	for _, e := range g.Edges {
		from, ok := b.index[e.From]
		to, ok2 := b.index[e.To]
		if e.Kind == Source && ok && ok2 {
			b.needs[from] = append(b.needs[from], fact{tier: to})
		}
	}
	return b
}

// Of returns what is guaranteed before the first pass of a tier; nothing for a tier that is not in
// the graph.
func (b *Before) Of(k Key) *Guarantees {
	i, ok := b.index[k]
	if !ok {
		return &Guarantees{}
	}
	if b.memo[i] == nil {
		b.memo[i] = b.closure(b.needs[i])
	}
	return b.memo[i]
}

// Behind returns what is guaranteed once a tier is Ready, itself included.
func (b *Before) Behind(k Key) *Guarantees {
	i, ok := b.index[k]
	if !ok {
		return &Guarantees{}
	}
	return b.closure([]fact{{tier: i, ready: true}})
}

// Depend adds a dependency as if it were in the graph. Keys of tiers that are not in the graph add nothing.
func (b *Before) Depend(from, to Key) {
	i, ok := b.index[from]
	j, ok2 := b.index[to]
	if ok && ok2 {
		b.needs[i] = append(b.needs[i], fact{tier: j, ready: true})
		clear(b.memo)
	}
}

func (b *Before) closure(start []fact) *Guarantees {
	out := &Guarantees{applied: map[Key]bool{}, ready: map[Key]bool{}}
	queue := append([]fact(nil), start...)
	for len(queue) > 0 {
		f := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		key := b.tiers[f.tier].Key
		if f.ready && !out.ready[key] {
			out.ready[key] = true
			queue = append(queue, b.impliedByReady(f.tier)...)
		}
		if !out.applied[key] {
			out.applied[key] = true
			queue = append(queue, b.needs[f.tier]...)
		}
	}
	return out
}

// impliedByReady is what a tier's health checks saw to.
func (b *Before) impliedByReady(i int) []fact {
	var out []fact
	for _, c := range b.children[i] {
		if Watches(b.tiers[i], kustomizev1.GroupVersion.Group, kustomizev1.KustomizationKind, b.tiers[c].Key) {
			out = append(out, fact{tier: c, ready: true})
		}
	}
	for _, h := range b.tiers[i].Kustomization.Spec.HealthChecks {
		if h.Kind != kustomizev1.KustomizationKind || b.tiers[i].Kustomization.Spec.Wait {
			continue
		}
		if j, ok := b.index[Key{Namespace: h.Namespace, Name: h.Name}]; ok && j != i {
			out = append(out, fact{tier: j, ready: true})
		}
	}
	return out
}

// Watches reports whether a tier becomes Ready only once the named object, which it applies, is
// healthy: it waits for all it applies, or names the object in healthChecks. healthCheckExprs alone
// check nothing: they only say how to read the status of what is checked.
//
// It mirrors checkHealth in kustomize-controller's internal/controller/kustomization_controller.go.
func Watches(t *Tier, group, kind string, object Key) bool {
	spec := t.Kustomization.Spec
	if kind == kustomizev1.KustomizationKind && group == kustomizev1.GroupVersion.Group && object == t.Key {
		return false // a tier does not wait for itself
	}
	if spec.Wait {
		return true
	}
	for _, h := range spec.HealthChecks {
		if h.Kind == kind && h.Name == object.Name && h.Namespace == object.Namespace && apiGroup(h.APIVersion) == group {
			return true
		}
	}
	return false
}

// apiGroup is the group of a health check's apiVersion, which defaults to apps/v1
// (ReferenceToObjMetadataSet in kustomize-controller's internal/inventory/inventory.go).
func apiGroup(apiVersion string) string {
	if apiVersion == "" {
		return "apps"
	}
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}
