package cluster

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed crds/*.yaml
var crdFiles embed.FS

// KustomizationGVK is the kind of tiers.
func KustomizationGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
}

// GitRepositoryGVK is the kind of Flux's git sources.
func GitRepositoryGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
}

func crdGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// installFlux applies Flux's CRDs and namespace and waits until the CRDs serve.
func (c *Cluster) installFlux(ctx context.Context) error {
	manifests, err := c.fluxManifests()
	if err != nil {
		return err
	}
	var crds []*unstructured.Unstructured
	for _, data := range manifests {
		objects, err := parse(data)
		if err != nil {
			return err
		}
		crds = append(crds, objects...)
	}
	errs := make([]error, len(crds))
	var group sync.WaitGroup
	for i, crd := range crds {
		group.Go(func() {
			if errs[i] = c.ApplyObject(ctx, crd); errs[i] == nil {
				errs[i] = c.waitEstablished(ctx, crd.GetName())
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("installing Flux's CRDs: %w", err)
	}
	return c.Apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+fluxNamespace+"}\n")
}

func (c *Cluster) fluxManifests() ([][]byte, error) {
	helm, err := crdFiles.ReadFile("crds/helm.toolkit.fluxcd.io_helmreleases.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading helm-controller's CRD: %w", err)
	}
	manifests := [][]byte{helm}
	for _, dir := range c.binaries.CRDDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("reading Flux's CRDs: %w", err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return nil, fmt.Errorf("reading Flux's CRDs: %w", err)
			}
			manifests = append(manifests, data)
		}
	}
	return manifests, nil
}

func (c *Cluster) waitEstablished(ctx context.Context, crd string) error {
	return c.WaitFor(ctx, crdGVK(), "", crd, func(o *unstructured.Unstructured) bool {
		return ConditionTrue(o, "Established")
	})
}

// Sync is what `flux bootstrap` writes into gotk-sync.yaml: a GitRepository and
// the Kustomization that applies one path of it.
type Sync struct {
	Repo      string // the repository on the cluster's git server
	Path      string // the entry path, from the repository's root
	Name      string // of both objects; flux-system where empty
	Namespace string // flux-system where empty
	Interval  string // of both objects; 10m where empty
	Wait      bool
	Suspend   bool // of the Kustomization
}

// Sync points Flux at a pushed repository.
func (c *Cluster) Sync(ctx context.Context, s Sync) error {
	name, namespace := cmp.Or(s.Name, fluxNamespace), cmp.Or(s.Namespace, fluxNamespace)
	interval := cmp.Or(s.Interval, "10m")
	source := map[string]any{
		"interval": interval,
		"ref":      map[string]any{"branch": Branch},
		"url":      c.Git.URL(s.Repo),
	}
	kustomization := map[string]any{
		"interval":  interval,
		"path":      "./" + s.Path,
		"prune":     true,
		"sourceRef": map[string]any{"kind": "GitRepository", "name": name},
	}
	if s.Wait {
		kustomization["wait"] = true
	}
	if s.Suspend {
		kustomization["suspend"] = true
	}
	for _, o := range []*unstructured.Unstructured{
		object(GitRepositoryGVK(), namespace, name, source),
		object(KustomizationGVK(), namespace, name, kustomization),
	} {
		if err := c.ApplyObject(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// WaitReady waits until a Kustomization is Ready at its current generation.
func (c *Cluster) WaitReady(ctx context.Context, namespace, name string) error {
	return c.WaitFor(ctx, KustomizationGVK(), namespace, name, func(o *unstructured.Unstructured) bool {
		return ConditionTrue(o, "Ready")
	})
}

func object(gvk schema.GroupVersionKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
