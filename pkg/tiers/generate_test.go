package tiers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// generateRepo writes a repository of n tiers, three objects each, in layers of fifty: every tier
// depends on two of the layer before. The entry path is clusters/main.
func generateRepo(t testing.TB, dir string, n int) {
	t.Helper()
	const layer = 50
	var list string
	for i := range n {
		deps := ""
		if i >= layer {
			first := (i/layer - 1) * layer
			deps = fmt.Sprintf("  dependsOn:\n    - name: tier-%04d\n    - name: tier-%04d\n", first+i%layer, first+(i*7+3)%layer)
		}
		put(t, dir, fmt.Sprintf("clusters/main/tier-%04d.yaml", i), fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: tier-%04d
  namespace: flux-system
spec:
  interval: 10m
  path: ./tiers/tier-%04d
  prune: true
  wait: true
  sourceRef:
    kind: GitRepository
    name: flux-system
%s`, i, i, deps))
		list += fmt.Sprintf("  - tier-%04d.yaml\n", i)
		base := fmt.Sprintf("tiers/tier-%04d/", i)
		put(t, dir, base+"kustomization.yaml", "resources:\n  - config.yaml\n  - service.yaml\n  - deployment.yaml\n")
		put(t, dir, base+"config.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-%04d\n  namespace: apps\ndata:\n  key: value\n  number: \"%d\"\n", i, i))
		put(t, dir, base+"service.yaml", fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: app-%04d\n  namespace: apps\nspec:\n  selector:\n    app: app-%04d\n  ports:\n    - name: http\n      port: 80\n      targetPort: 8080\n", i, i))
		put(t, dir, base+"deployment.yaml", fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-%04d
  namespace: apps
  labels:
    app: app-%04d
spec:
  replicas: 2
  selector:
    matchLabels:
      app: app-%04d
  template:
    metadata:
      labels:
        app: app-%04d
    spec:
      containers:
        - name: app
          image: registry.example.com/app:1.0
          ports:
            - containerPort: 8080
          env:
            - name: KEY
              valueFrom:
                configMapKeyRef:
                  name: config-%04d
                  key: key
          resources:
            requests:
              cpu: 10m
              memory: 32Mi
`, i, i, i, i, i))
	}
	put(t, dir, "clusters/main/kustomization.yaml", "resources:\n  - gotk-sync.yaml\n"+list)
	put(t, dir, "clusters/main/gotk-sync.yaml", `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 1m
  url: https://git.example.com/fleet
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 10m
  path: ./clusters/main
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
`)
}

func put(t testing.TB, dir, name, data string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}
