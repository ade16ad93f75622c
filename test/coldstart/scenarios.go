package main

import (
	"fmt"
	"io/fs"
	"strings"
	"testing/fstest"
)

// entry is where the generated repositories keep their Kustomizations.
const entry = "clusters/bench"

// scenario is a repository to bring up.
type scenario struct {
	name, what string
	// tree is the repository's content; nil for the home network, which needs more than content.
	tree fs.FS
	// tiers is how many Kustomizations must be Ready in the end, the entry's own among them.
	tiers int
}

func scenarios() []scenario {
	return []scenario{
		{name: "chain", what: "chain of 10, a ConfigMap each", tree: layered(10, 1, configMap), tiers: 11},
		{name: "wide", what: "50 tiers side by side, a ConfigMap each", tree: layered(1, 50, configMap), tiers: 51},
		{name: "layered", what: "100 tiers in 10 layers, a Deployment each, wait", tree: layered(10, 10, deployment), tiers: 101},
		{name: "home", what: "the home network, repaired", tiers: 14},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// layered makes layers of tiers; each depends on one tier of the layer before it.
func layered(layers, width int, content func(name string) string) fs.FS {
	tree := fstest.MapFS{}
	write := func(path, text string) { tree[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	var resources []string
	for l := range layers {
		for w := range width {
			name := tierName(l, w, width)
			depends := ""
			if l > 0 {
				depends = "  dependsOn:\n    - name: " + tierName(l-1, w, width) + "\n"
			}
			write("tiers/"+name+"/content.yaml", content(name))
			write(entry+"/"+name+".yaml", fmt.Sprintf(kustomization, name, depends, name))
			resources = append(resources, "  - "+name+".yaml")
		}
	}
	write(entry+"/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"+strings.Join(resources, "\n")+"\n")
	return tree
}

func tierName(layer, w, width int) string {
	if width == 1 {
		return fmt.Sprintf("tier-%02d", layer)
	}
	return fmt.Sprintf("tier-%02d-%02d", layer, w)
}

const kustomization = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %s
  namespace: flux-system
spec:
  interval: 10m
%s  path: ./tiers/%s
  prune: true
  wait: true
  timeout: 5m
  sourceRef:
    kind: GitRepository
    name: flux-system
`

func configMap(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: default\ndata:\n  tier: %s\n", name, name)
}

func deployment(name string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: default
spec:
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      containers:
        - name: app
          image: registry.example/app:1
`, name)
}
