package verdicts

import (
	"fmt"
	"slices"
	"strings"
)

// check is an entry of healthChecks, in the repository's namespace.
type check struct{ apiVersion, kind, name string }

// input is an entry of substituteFrom.
type input struct {
	kind, name string
	optional   bool
}

func releaseCheck(name string) check { return check{"helm.toolkit.fluxcd.io/v2", "HelmRelease", name} }

// makeShapes throws in what authors of repositories do now and then, each in some repositories only.
func (g *generator) makeShapes() {
	for _, make := range []func(){
		g.suspendParent, g.makeSource, g.makeCheck, g.makeHealthExpression, g.makeReadyExpression, g.makeHomeless,
		g.makeGuests, g.setOptions, g.ignoreObject, g.ignoreTier, g.makeSecretInputs,
	} {
		if g.chance(12) {
			make()
		}
	}
}

// suspendParent suspends a tier that holds another one, and lets others depend on either.
func (g *generator) suspendParent() {
	i := g.IntN(len(g.tiers))
	g.tiers[i].suspend = true
	for _, t := range g.tiers[i+1:] {
		switch g.IntN(4) {
		case 0:
			t.parent = i
		case 1:
			t.dependOn(g.tiers[i].name)
		case 2:
			t.dependOn(g.tiers[i+1].name)
		}
	}
}

// makeSource gives a tier a source of its own: one that is nowhere, suspended, in the root, in any tier
// or in the tier itself.
func (g *generator) makeSource() {
	const name = "other"
	t := g.anyTier()
	t.source = name
	g.r.Sources = append(g.r.Sources, "GitRepository/"+g.r.Namespace+"/"+name)
	object := source(name, g.r.Namespace, g.r.url)
	if g.chance(30) {
		object += "  suspend: true\n"
	}
	switch g.IntN(5) {
	case 0:
	case 1:
		t.add(object)
	case 2, 3:
		g.root = append(g.root, object)
	default:
		g.anyTier().add(object)
	}
}

// makeCheck lets a tier's health checks name an object of any tier, or one of Flux's own that nothing makes: others may
// come with a chart, and the audit says nothing of them.
func (g *generator) makeCheck() {
	t := g.anyTier()
	t.wait = g.chance(20) // with it, healthChecks count for nothing
	some := []check{releaseCheck("nobody"), {"kustomize.toolkit.fluxcd.io/v1", "Kustomization", "nobody"}}
	for range 4 {
		name := g.anyTier().name
		some = append(some, check{"v1", "ConfigMap", name}, check{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", name})
	}
	t.checks = append(t.checks, some[g.IntN(len(some))])
}

func (g *generator) makeHealthExpression() {
	g.anyTier().healthExpr = g.one("data.colour == 'green'", "has(data.colour)", "true", "data.colour ==", "colour == 'green'", "'green'", "1 + 1")
}

func (g *generator) makeReadyExpression() {
	i := g.IntN(len(g.tiers))
	t := g.tiers[i]
	if len(t.dependsOn) == 0 {
		t.dependOn(g.tiers[max(i-1, 0)].name)
	}
	t.readyExpr = g.one("dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
		"has(dep.status.conditions) && dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True' && c.observedGeneration == dep.metadata.generation)",
		"dep.status.", "other.metadata.name == ''", "'Ready'", "size(self.metadata.name)")
}

// makeHomeless adds an object without a namespace.
func (g *generator) makeHomeless() {
	t := g.anyTier()
	object := configMap("homeless", g.r.Namespace)
	if k := g.kinds[g.IntN(len(g.kinds))]; k.from == "git" && g.chance(50) {
		object = g.object(k.CRD, "homeless")
	}
	t.add(strings.Replace(object, "  namespace: "+g.r.Namespace+"\n", "", 1))
	if g.chance(50) {
		t.target = g.r.Namespace
	}
}

// makeGuests puts objects into a namespace that is nowhere, or made in the same pass or by any tier.
func (g *generator) makeGuests() {
	ns := g.r.Namespace + "-guests"
	t := g.anyTier()
	t.add(configMap("guest", ns))
	switch g.IntN(3) {
	case 0:
		t.add(namespace(ns))
	case 1:
		g.anyTier().add(namespace(ns))
	}
}

// setOptions sets some of the fields that seldom matter.
func (g *generator) setOptions() {
	for _, t := range g.tiers {
		t.keep, t.force = g.chance(30), g.chance(30)
	}
	i := g.IntN(len(g.tiers))
	t := g.tiers[i]
	switch g.IntN(3) {
	case 0:
		t.target = g.r.Namespace
	case 1:
		if !slices.ContainsFunc(g.tiers, func(child *tier) bool { return child.parent == i }) {
			t.target = g.r.Namespace + "-target"
			g.anyTier().add(namespace(t.target))
		}
	}
}

// ignoreObject tells Flux to leave one of the objects alone that others may need. Not one of a class: Flux
// waits for it, and nobody could bring it before its kind.
func (g *generator) ignoreObject() {
	var all []*string
	for _, t := range g.tiers {
		for i := range t.objects {
			if t.objects[i] != configMap(t.name, g.r.Namespace) && !strings.Contains(t.objects[i], "kind: PearClass\n") {
				all = append(all, &t.objects[i])
			}
		}
	}
	if len(all) > 0 {
		object := all[g.IntN(len(all))]
		g.r.ignored = *object
		*object = annotated(*object, g.ignoring())
	}
}

// ignoreTier does that to a tier: on a cold cluster it is never created.
func (g *generator) ignoreTier() { g.anyTier().annotation = g.ignoring() }

func (g *generator) ignoring() string {
	return "kustomize.toolkit.fluxcd.io/" + g.one("reconcile: disabled", "ssa: Ignore")
}

// makeSecretInputs lets tiers read Secrets and ConfigMaps that any tier makes or nothing does, optional
// or not, and use their variable.
func (g *generator) makeSecretInputs() {
	in := input{kind: g.one("Secret", "ConfigMap"), name: "more"}
	if g.chance(70) {
		object := configMap(in.name, g.r.Namespace)
		if in.kind == "Secret" {
			object = secret(in.name, g.r.Namespace)
		}
		g.anyTier().add(object)
	}
	for range 1 + g.IntN(2) {
		t := g.anyTier()
		in.optional = g.chance(40)
		t.inputs = append(t.inputs, in)
		if g.chance(40) {
			t.add(strings.Replace(configMap("painted-"+t.name, g.r.Namespace), "green", g.one("${colour}", "${colour:=red}"), 1))
		}
	}
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (t *tier) dependOn(name string) {
	if name != t.name && !slices.Contains(t.dependsOn, name) {
		t.dependsOn = append(t.dependsOn, name)
	}
}

func secret(name, namespace string) string {
	return strings.NewReplacer("kind: ConfigMap", "kind: Secret", "\ndata:", "\nstringData:").Replace(configMap(name, namespace))
}

func annotated(object, annotation string) string {
	return strings.Replace(object, "metadata:\n", "metadata:\n  annotations:\n    "+annotation+"\n", 1)
}

// source is a GitRepository of the repository itself.
func source(name, namespace, url string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n  interval: 10m\n  ref:\n    branch: main\n  url: %s\n", name, namespace, url)
}
