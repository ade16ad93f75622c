package crds

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// ReadSnapshot reads the live tiers of a graph and their sources at one moment: one list for every
// namespace that holds tiers, and one request for every source.
func ReadSnapshot(ctx context.Context, client dynamic.Interface, graph *tiers.Graph) (flux.Snapshot, error) {
	s := flux.Snapshot{Kustomizations: map[flux.Key]*kustomizev1.Kustomization{}, Sources: map[flux.SourceRef]*flux.Source{}}
	for _, namespace := range namespaces(graph) {
		list, err := client.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, fmt.Errorf("listing the Kustomizations in %s: %w", namespace, err)
		}
		for i := range list.Items {
			k := &kustomizev1.Kustomization{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, k); err != nil {
				return s, fmt.Errorf("Kustomization/%s/%s: reading: %w", namespace, list.Items[i].GetName(), err)
			}
			s.Kustomizations[flux.Key{Namespace: namespace, Name: k.Name}] = k
		}
	}
	reader := &freer{clients: Clients{Dynamic: client}}
	for _, t := range graph.Tiers {
		live := s.Kustomizations[t.Key]
		if live == nil {
			continue
		}
		ref := flux.SourceOf(live)
		if _, known := s.Sources[ref]; known {
			continue
		}
		source, err := reader.source(ctx, ref)
		if err != nil {
			return s, err
		}
		s.Sources[ref] = source
	}
	return s, nil
}

func namespaces(graph *tiers.Graph) []string {
	var names []string
	for _, t := range graph.Tiers {
		names = append(names, t.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
