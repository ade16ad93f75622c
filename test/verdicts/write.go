package verdicts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing/fstest"
)

// write puts the repository into files: one folder a tier, and the entry path with the root itself.
func (g *generator) write() {
	root := append([]string{source("root", g.r.Namespace, g.r.url), g.manifest(&tier{name: "root"}, Entry)}, g.root...)
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
	line := func(on bool, format string, args ...any) {
		if on {
			fmt.Fprintf(&b, format, args...)
		}
	}
	from := cmp.Or(t.source, "root")
	line(true, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n", t.name, g.r.Namespace)
	line(true, "  interval: 10m\n  retryInterval: 3s\n  timeout: 7s\n  path: ./%s\n  prune: %t\n  sourceRef:\n    kind: GitRepository\n    name: %s\n", path, !t.keep, from)
	line(t.wait, "  wait: true\n")
	line(t.suspend, "  suspend: true\n")
	line(t.force, "  force: true\n")
	line(t.target != "", "  targetNamespace: %s\n", t.target)
	line(len(t.dependsOn) > 0, "  dependsOn:\n")
	for i, name := range t.dependsOn {
		line(true, "    - name: %s\n", name)
		line(t.readyExpr != "" && i == 0, "      readyExpr: %q\n", t.readyExpr)
	}
	line(len(t.checks) > 0, "  healthChecks:\n")
	for _, c := range t.checks {
		line(true, "    - apiVersion: %s\n      kind: %s\n      namespace: %s\n      name: %s\n", c.apiVersion, c.kind, g.r.Namespace, c.name)
	}
	line(t.healthExpr != "", "  healthCheckExprs:\n    - apiVersion: v1\n      kind: ConfigMap\n      current: %q\n", t.healthExpr)
	line(len(t.inputs) > 0, "  postBuild:\n    substituteFrom:\n")
	for _, in := range t.inputs {
		line(true, "      - kind: %s\n        name: %s\n", in.kind, in.name)
		line(in.optional, "        optional: true\n")
	}
	if t.annotation != "" {
		return annotated(b.String(), t.annotation)
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
