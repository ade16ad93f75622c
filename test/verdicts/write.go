package verdicts

import (
	"fmt"
	"slices"
	"strings"
	"testing/fstest"
)

// write puts the repository into files: one folder a tier, and the entry path with the root itself.
func (g *generator) write(url string) {
	root := []string{
		fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: root\n  namespace: %s\nspec:\n  interval: 10m\n  ref:\n    branch: main\n  url: %s\n", g.r.Namespace, url),
		g.manifest(&tier{name: "root"}, Entry),
	}
	for i, t := range g.tiers {
		if t.parent < 0 {
			root = append(root, g.manifest(t, t.name))
		}
		objects := slices.Clone(t.objects)
		for _, child := range g.tiers {
			if child.parent == i {
				objects = append(objects, g.manifest(child, child.name))
			}
		}
		g.file(t.name+"/objects.yaml", objects)
	}
	g.file(Entry+"/tiers.yaml", root)
	g.r.Catalogue = g.catalogue()
}

func (g *generator) file(name string, objects []string) {
	g.r.Files[name] = &fstest.MapFile{Data: []byte(strings.Join(objects, "---\n")), Mode: 0o644}
}

// manifest is a tier's Kustomization. Retries come fast, so that a comparison need not wait for them.
func (g *generator) manifest(t *tier, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n", t.name, g.r.Namespace)
	fmt.Fprintf(&b, "  interval: 10m\n  retryInterval: 3s\n  timeout: 7s\n  path: ./%s\n  prune: true\n  sourceRef:\n    kind: GitRepository\n    name: root\n", path)
	if t.wait {
		b.WriteString("  wait: true\n")
	}
	if t.suspend {
		b.WriteString("  suspend: true\n")
	}
	list := func(field string, items []string, form string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "  %s:\n", field)
			for _, i := range items {
				fmt.Fprintf(&b, form, i)
			}
		}
	}
	list("dependsOn", t.dependsOn, "    - name: %s\n")
	list("healthChecks", t.checks, "    - apiVersion: helm.toolkit.fluxcd.io/v2\n      kind: HelmRelease\n      namespace: "+g.r.Namespace+"\n      name: %s\n")
	if len(t.inputs) > 0 {
		b.WriteString("  postBuild:\n")
		list("  substituteFrom", t.inputs, "      - kind: ConfigMap\n        name: %s\n")
	}
	return b.String()
}

// catalogue tells standup what it would otherwise have to know of the charts and operators.
func (g *generator) catalogue() []byte {
	var b strings.Builder
	evidence := "    evidence: {link: 'https://example.org/', grade: verified}\n"
	b.WriteString("version: 1\noperators:\n")
	for _, k := range g.kinds {
		if k.from == "trigger" {
			fmt.Fprintf(&b, "  - name: %[1]s operator %[2]d\n    trigger: {group: %[3]s, kind: %[1]sOperator}\n    existing: adopts\n%[4]s    creates:\n      - group: %[3]s\n        kinds: [{kind: %[1]s, plural: %[5]s}]\n",
				k.Kind, g.r.Seed, k.Group, evidence, k.Plural())
		}
	}
	b.WriteString("charts:\n")
	for _, k := range g.kinds {
		if k.from == "chart" {
			name := fmt.Sprintf("v%d-%s", g.r.Seed, strings.ToLower(k.Kind))
			fmt.Fprintf(&b, "  - name: %[1]s\n    charts: [%[1]s]\n    groups: [%[2]s]\n    folder: true\n%[3]s", name, k.Group, evidence)
		}
	}
	return []byte(b.String())
}
