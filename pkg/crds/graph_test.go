package crds

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// spec is a tier in a test: its name, what it depends on, and its manifests.
type spec struct {
	name      string
	dependsOn []string
	manifests string
}

func key(name string) tiers.Key { return tiers.Key{Namespace: "flux-system", Name: name} }

// graphOf makes a graph of tiers that are given in a valid order.
func graphOf(t *testing.T, specs ...spec) *tiers.Graph {
	t.Helper()
	g := &tiers.Graph{}
	for _, s := range specs {
		tier := &tiers.Tier{Key: key(s.name), Kustomization: &kustomizev1.Kustomization{}}
		tier.Kustomization.Namespace, tier.Kustomization.Name = tier.Namespace, tier.Name
		tier.Objects = objectsOf(t, s.name, s.manifests)
		for _, d := range s.dependsOn {
			tier.DependsOn = append(tier.DependsOn, key(d))
			g.Edges = append(g.Edges, tiers.Edge{From: tier.Key, To: key(d), Kind: tiers.DependsOn})
		}
		g.Tiers = append(g.Tiers, tier)
	}
	return g
}

func objectsOf(t *testing.T, dir, manifests string) []render.Object {
	t.Helper()
	var objects []render.Object
	for _, document := range strings.Split(manifests, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, document)
		}
		objects = append(objects, render.Object{Unstructured: u, File: dir + "/" + strings.ToLower(u.GetKind()) + ".yaml", Line: 1})
	}
	return objects
}

func crdYAML(group, plural, kind string, versions ...string) string {
	var list strings.Builder
	for i, v := range versions {
		list.WriteString("  - {name: " + v + ", served: true, storage: ")
		list.WriteString(map[bool]string{true: "true", false: "false"}[i == 0])
		list.WriteString(", schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n")
	}
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\nspec:\n  group: " + group +
		"\n  scope: Cluster\n  names: {kind: " + kind + ", plural: " + plural + ", listKind: " + kind + "List, singular: " + strings.ToLower(kind) + "}\n  versions:\n" + list.String()
}

const (
	cdiObject      = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: CDI\nmetadata: {name: cdi}\nspec: {}\n"
	profileObject  = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {name: fast}\nspec: {}\n"
	cdiDeployment  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cdi-operator, namespace: cdi}\nspec: {template: {spec: {serviceAccountName: cdi-operator, containers: [{name: a, image: quay.io/kubevirt/cdi-operator:v1}]}}}\n"
	certRelease    = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cert-manager, namespace: certs}\nspec: {chart: {spec: {chart: cert-manager, sourceRef: {kind: HelmRepository, name: jetstack}}}, values: {crds: {enabled: true}}}\n"
	issuerObject   = "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: ca}\nspec: {}\n"
	configMap      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"
	separator      = "---\n"
	helmRepository = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: jetstack, namespace: certs}\nspec: {url: https://charts.example, secretRef: {name: login}}\n"
)

// servedWith is Kubernetes with Flux and some more kinds, written Kind.version.group.
func servedWith(kinds ...string) *Served {
	s := Builtin()
	add := func(group, version, kind, plural string) {
		s.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Resource{Plural: plural, Namespaced: true, Default: true})
	}
	add("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
	add("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
	add("source.toolkit.fluxcd.io", "v1", "HelmRepository", "helmrepositories")
	add("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
	for _, k := range kinds {
		parts := strings.SplitN(k, ".", 3)
		add(parts[2], parts[1], parts[0], strings.ToLower(parts[0])+"s")
	}
	return s
}
