package crds

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// snapshot reads the tier, what it depends on, and their sources: a handful of requests, so that a
// single tier can be freed without watching all.
func (f *freer) snapshot(ctx context.Context) (flux.Snapshot, error) {
	s := flux.Snapshot{Kustomizations: map[flux.Key]*kustomizev1.Kustomization{}, Sources: map[flux.SourceRef]*flux.Source{}}
	keys := append([]tiers.Key{f.tier.Key}, f.tier.DependsOn...)
	for _, key := range keys {
		k, err := f.kustomization(ctx, key)
		if err != nil {
			return s, err
		}
		if k == nil {
			continue
		}
		s.Kustomizations[key] = k
		ref := flux.SourceOf(k)
		if _, known := s.Sources[ref]; known {
			continue
		}
		source, err := f.source(ctx, ref)
		if err != nil {
			return s, err
		}
		if source != nil {
			s.Sources[ref] = source
		}
	}
	return s, nil
}

func (f *freer) kustomization(ctx context.Context, key tiers.Key) (*kustomizev1.Kustomization, error) {
	u, err := f.clients.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not there is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("Kustomization/%s: reading: %w", key, err)
	}
	k := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, k); err != nil {
		return nil, fmt.Errorf("Kustomization/%s: reading: %w", key, err)
	}
	return k, nil
}

func (f *freer) source(ctx context.Context, ref flux.SourceRef) (*flux.Source, error) {
	resource := sourceResource(ref.Kind)
	if resource.Empty() {
		return nil, nil //nolint:nilnil // a kind we know nothing of
	}
	u, err := f.clients.Dynamic.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not there is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("%s: reading: %w", ref, err)
	}
	revision, _, _ := unstructured.NestedString(u.Object, "status", "artifact", "revision")
	return &flux.Source{SourceRef: ref, Revision: revision, Generation: u.GetGeneration()}, nil
}

func sourceResource(kind string) schema.GroupVersionResource {
	names := map[string]string{
		sourcev1.GitRepositoryKind:    "gitrepositories",
		sourcev1.OCIRepositoryKind:    "ocirepositories",
		sourcev1.BucketKind:           "buckets",
		sourcev1.ExternalArtifactKind: "externalartifacts",
	}
	if names[kind] == "" {
		return schema.GroupVersionResource{}
	}
	return sourcev1.GroupVersion.WithResource(names[kind])
}

// checkRevision compares the graph's commit with the one that the tier's GitRepository has. Other
// kinds of sources have no commit to compare.
func (f *freer) checkRevision(live flux.Snapshot) error {
	k := live.Kustomizations[f.tier.Key]
	if k == nil || f.opts.Graph.Revision == "" {
		return nil
	}
	source := live.Sources[flux.SourceOf(k)]
	if source == nil || source.Kind != sourcev1.GitRepositoryKind || source.Revision == "" {
		return nil
	}
	if !sameCommit(source.Revision, f.opts.Graph.Revision) {
		return &RevisionError{Tier: f.tier.Key, Graph: f.opts.Graph.Revision, Cluster: source.Revision}
	}
	return nil
}

// sameCommit compares a revision such as main@sha1:… with a commit id, which may be short, or with
// another such revision.
func sameCommit(revision, commit string) bool {
	return strings.HasPrefix(commitOf(revision), commitOf(commit))
}

func commitOf(revision string) string {
	_, digest, ok := strings.Cut(revision, "@")
	if !ok {
		digest = revision
	}
	return strings.TrimPrefix(digest, "sha1:")
}

// readyCondition is a Kustomization's Ready condition; zero when it has none.
func readyCondition(k *kustomizev1.Kustomization) metav1.Condition {
	for _, c := range k.Status.Conditions {
		if c.Type == meta.ReadyCondition {
			return c
		}
	}
	return metav1.Condition{}
}
