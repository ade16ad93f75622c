package verdicts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/fstest"
)

// Entry is the entry path of every generated repository.
const Entry = "cluster"

// Repository is one generated repository.
type Repository struct {
	Seed uint64
	// Namespace is the repository's own: all its tiers live there. It must exist before Flux.
	Namespace string
	Files     fstest.MapFS
	// Catalogue is what standup is to know of the repository's charts and operators.
	Catalogue []byte
	// Charts lists the CRDs that each chart brings, Triggers those that appear after a trigger of a kind.
	Charts   map[string][]CRD
	Triggers map[CRD][]CRD
	// Sources lists the sources besides the root's that lead to the repository itself.
	Sources []string
	url     string
	// ignored is the object that Flux is told to leave alone, as it would be otherwise.
	ignored string
}

// CRD is one kind and its group; its plural is its kind in lower case and an s.
type CRD struct{ Group, Kind string }

// Plural is the resource's name.
func (c CRD) Plural() string { return strings.ToLower(c.Kind) + "s" }

// generator throws the dice for one repository.
type generator struct {
	*rand.Rand
	r     *Repository
	tiers []*tier
	kinds []kind
	root  []string // objects of the entry path
}

type tier struct {
	name      string
	parent    int // -1: the root
	dependsOn []string
	wait      bool
	suspend   bool
	checks    []check
	inputs    []input
	objects   []string
	releases  []string
	// What makeShapes sets.
	source, target, annotation string
	healthExpr, readyExpr      string
	keep, force                bool
}

// kind is a kind and how it comes to be.
type kind struct {
	CRD
	from string // git, chart, trigger
	tier int    // what brings it is in
}

// Generate makes the repository of a seed: equal seeds and URLs give equal repositories.
func Generate(seed uint64, url string) *Repository {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 4711)), r: &Repository{
		Seed: seed, url: url, Namespace: fmt.Sprintf("v%d", seed), Files: fstest.MapFS{}, Charts: map[string][]CRD{}, Triggers: map[CRD][]CRD{},
	}}
	g.makeTiers()
	g.makeKinds()
	g.makeObjects()
	g.makeNamespaces()
	g.makeInputs()
	g.makeShapes()
	g.write()
	return g.r
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) anyTier() *tier { return g.tiers[g.IntN(len(g.tiers))] }

// user is a tier to put something into that needs what tier i brings: two times out of three one that
// depends on it, as an author with his wits about him would choose, and otherwise any.
func (g *generator) user(i int) *tier {
	if i+1 >= len(g.tiers) || g.chance(33) {
		return g.anyTier()
	}
	t := g.tiers[i+1+g.IntN(len(g.tiers)-i-1)]
	t.dependOn(g.tiers[i].name)
	return t
}

// early is the index of a tier, sooner one of the first.
func (g *generator) early() int { return min(g.IntN(len(g.tiers)), g.IntN(len(g.tiers))) }

// makeTiers lays out the graph: mostly edges to tiers before, now and then one that makes a circle.
func (g *generator) makeTiers() {
	for i := range 2 + g.IntN(5) {
		t := &tier{name: fmt.Sprintf("t%d", i), parent: -1, wait: g.chance(50), suspend: g.chance(2)}
		if i > 0 && g.chance(20) {
			t.parent = g.IntN(i)
		}
		for j := range i {
			if g.chance(35) {
				t.dependsOn = append(t.dependsOn, g.tiers[j].name)
			}
		}
		if g.chance(2) {
			t.dependsOn = append(t.dependsOn, "nobody")
		}
		g.tiers = append(g.tiers, t)
	}
	if g.chance(6) {
		i := g.IntN(len(g.tiers))
		g.tiers[i].dependsOn = append(g.tiers[i].dependsOn, g.anyTier().name)
	}
}

func (g *generator) makeKinds() {
	names := []string{"Apple", "PearClass", "Plum", "Cherry"}
	for _, name := range names[:1+g.IntN(len(names))] {
		k := kind{CRD{fmt.Sprintf("%s.v%d.example.org", strings.ToLower(name), g.r.Seed), name}, []string{"git", "chart", "trigger"}[g.IntN(3)], g.early()}
		switch k.from {
		case "git":
			g.tiers[k.tier].add(definition(k.CRD))
		case "chart":
			g.addRelease(g.tiers[k.tier], strings.ToLower(name), k.CRD)
		case "trigger":
			trigger := CRD{k.Group, name + "Operator"}
			g.r.Triggers[trigger] = []CRD{k.CRD}
			crd := min(k.tier, g.early())
			g.tiers[crd].add(definition(trigger))
			if crd < k.tier && g.chance(80) {
				g.tiers[k.tier].dependsOn = append(g.tiers[k.tier].dependsOn, g.tiers[crd].name)
			}
			g.tiers[k.tier].add(g.object(trigger, "main"))
		}
		g.kinds = append(g.kinds, k)
	}
}

// addRelease puts a HelmRelease of a chart of its own into a tier.
func (g *generator) addRelease(t *tier, name string, brings ...CRD) {
	chart := fmt.Sprintf("v%d-%s", g.r.Seed, name)
	g.r.Charts[chart] = brings
	var extra string
	if g.chance(5) {
		extra += "  suspend: true\n"
	}
	if len(g.r.Charts) > 1 && g.chance(25) {
		others := g.releaseNames()
		extra += fmt.Sprintf("  dependsOn:\n    - name: %s\n", others[g.IntN(len(others))])
	}
	if g.chance(35) {
		ns := fmt.Sprintf("%s-%s", g.r.Namespace, name)
		extra += "  targetNamespace: " + ns + "\n"
		if g.chance(50) {
			extra += "  install:\n    createNamespace: true\n"
		} else {
			t.add(namespace(ns))
		}
		if g.chance(40) {
			host := t
			if g.chance(60) {
				host = g.user(slices.Index(g.tiers, t))
			}
			host.add(configMap("guest-"+name, ns))
		}
	}
	t.releases = append(t.releases, name)
	t.add(fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n  interval: 10m\n%s  chart:\n    spec:\n      chart: %s\n      sourceRef:\n        kind: HelmRepository\n        name: elsewhere\n", name, g.r.Namespace, extra, chart))
}

func (g *generator) releaseNames() []string {
	var out []string
	for _, t := range g.tiers {
		out = append(out, t.releases...)
	}
	if len(out) == 0 {
		return []string{"nobody"}
	}
	return out
}

// makeObjects puts objects of the kinds into tiers, and names releases in healthChecks.
func (g *generator) makeObjects() {
	for _, k := range g.kinds {
		for n := range 1 + g.IntN(2) {
			g.user(k.tier).add(g.object(k.CRD, fmt.Sprintf("one%d", n)))
		}
	}
	for _, t := range g.tiers {
		t.add(configMap(t.name, g.r.Namespace))
		if !t.wait && len(t.releases) > 0 && g.chance(50) {
			for _, name := range t.releases {
				t.checks = append(t.checks, releaseCheck(name))
			}
		}
	}
}

func (g *generator) makeNamespaces() {
	if !g.chance(40) {
		return
	}
	ns, at := g.r.Namespace+"-shared", g.early()
	g.tiers[at].add(namespace(ns))
	for n := range 1 + g.IntN(2) {
		g.user(at).add(configMap(fmt.Sprintf("shared%d", n), ns))
	}
}

func (g *generator) makeInputs() {
	if !g.chance(35) {
		return
	}
	at := g.early()
	g.tiers[at].add(configMap("settings", g.r.Namespace))
	for range 1 + g.IntN(2) {
		t := g.user(at)
		t.inputs = []input{{kind: "ConfigMap", name: "settings"}}
	}
}

func (t *tier) add(object string) { t.objects = append(t.objects, object) }

func (g *generator) object(k CRD, name string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata:\n  name: %s\n  namespace: %s\nspec: {}\n", k.Group, k.Kind, name, g.r.Namespace)
}

func configMap(name, namespace string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  colour: green\n", name, namespace)
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", name)
}

// definition is the CRD of a kind.
func definition(k CRD) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
spec:
  group: %[2]s
  names: {kind: %[3]s, plural: %[1]s}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, k.Plural(), k.Group, k.Kind)
}
