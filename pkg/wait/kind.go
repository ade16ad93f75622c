package wait

import (
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
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

// watchedKind is one kind of the snapshot: where it is served, how it is read, where it is put.
type watchedKind struct {
	kind string
	gvr  schema.GroupVersionResource
	// optional says that a cluster without this kind is not an error.
	optional bool
	convert  func(*unstructured.Unstructured) (any, error)
	put      func(*flux.Snapshot, flux.Key, any)
}

// absent reports whether an error says that an optional kind is not served.
func (k watchedKind) absent(err error) bool { return k.optional && apierrors.IsNotFound(err) }

func kustomizations() watchedKind {
	return watchedKind{
		kind:    kustomizev1.KustomizationKind,
		gvr:     kustomizev1.GroupVersion.WithResource("kustomizations"),
		convert: func(u *unstructured.Unstructured) (any, error) { return typed(u, &kustomizev1.Kustomization{}) },
		put: func(s *flux.Snapshot, key flux.Key, value any) {
			s.Kustomizations[key], _ = value.(*kustomizev1.Kustomization)
		},
	}
}

func helmReleases() watchedKind {
	return watchedKind{
		kind:     helmv2.HelmReleaseKind,
		gvr:      helmv2.GroupVersion.WithResource("helmreleases"),
		optional: true,
		convert:  func(u *unstructured.Unstructured) (any, error) { return typed(u, &helmv2.HelmRelease{}) },
		put: func(s *flux.Snapshot, key flux.Key, value any) {
			s.HelmReleases[key], _ = value.(*helmv2.HelmRelease)
		},
	}
}

// sourceResource returns the resource name of a kind of source, "" for any other kind.
func sourceResource(kind string) string {
	switch kind {
	case sourcev1.GitRepositoryKind:
		return "gitrepositories"
	case sourcev1.OCIRepositoryKind:
		return "ocirepositories"
	case sourcev1.BucketKind:
		return "buckets"
	case sourcev1.HelmRepositoryKind:
		return "helmrepositories"
	case sourcev1.ExternalArtifactKind:
		return "externalartifacts"
	default:
		return ""
	}
}

// kindNamed returns the watched kind of that name; its put is nil if there is none.
func kindNamed(name string) watchedKind {
	switch name {
	case kustomizev1.KustomizationKind:
		return kustomizations()
	case helmv2.HelmReleaseKind:
		return helmReleases()
	}
	resource := sourceResource(name)
	if resource == "" {
		return watchedKind{kind: name}
	}
	return watchedKind{
		kind:     name,
		gvr:      sourcev1.GroupVersion.WithResource(resource),
		optional: true,
		convert:  func(u *unstructured.Unstructured) (any, error) { return readSource(name, u) },
		put: func(s *flux.Snapshot, _ flux.Key, value any) {
			if source, ok := value.(*flux.Source); ok {
				s.Sources[source.SourceRef] = source
			}
		},
	}
}

// SourceKinds lists the kinds of the sources that the graph's tiers read, sorted, each once.
func SourceKinds(graph *tiers.Graph) []string {
	var kinds []string
	for _, t := range graph.Tiers {
		if kind := t.Kustomization.Spec.SourceRef.Kind; sourceResource(kind) != "" {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func newSnapshot() flux.Snapshot {
	return flux.Snapshot{
		Kustomizations: make(map[flux.Key]*kustomizev1.Kustomization),
		Sources:        make(map[flux.SourceRef]*flux.Source),
		HelmReleases:   make(map[flux.Key]*helmv2.HelmRelease),
	}
}

func typed[T any](u *unstructured.Unstructured, into *T) (*T, error) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
	return into, err
}

// sourceShape is the part that all kinds of sources have in common.
type sourceShape struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		URL     string `json:"url"`
		Type    string `json:"type"`
		Suspend bool   `json:"suspend"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration          int64              `json:"observedGeneration"`
		Conditions                  []metav1.Condition `json:"conditions"`
		Artifact                    *meta.Artifact     `json:"artifact"`
		meta.ReconcileRequestStatus `json:",inline"`
	} `json:"status"`
}

func readSource(kind string, u *unstructured.Unstructured) (*flux.Source, error) {
	shape, err := typed(u, &sourceShape{})
	if err != nil {
		return nil, err
	}
	source := &flux.Source{
		SourceRef:            flux.SourceRef{Kind: kind, Namespace: shape.Namespace, Name: shape.Name},
		Generation:           shape.Generation,
		ObservedGeneration:   shape.Status.ObservedGeneration,
		Suspended:            shape.Spec.Suspend,
		SuspendedInGit:       flux.SuspendedInGit(u, shape.Spec.Suspend),
		Static:               kind == sourcev1.HelmRepositoryKind && shape.Spec.Type == sourcev1.HelmRepositoryTypeOCI,
		HasFinalizer:         slices.Contains(shape.Finalizers, sourcev1.SourceFinalizer),
		URL:                  shape.Spec.URL,
		Conditions:           shape.Status.Conditions,
		RequestedAt:          shape.Annotations[meta.ReconcileRequestAnnotation],
		LastHandledReconcile: shape.Status.LastHandledReconcileAt,
	}
	if shape.Status.Artifact != nil {
		source.Revision = shape.Status.Artifact.Revision
	}
	return source, nil
}

// SourceResource tells where a kind of source is served; false for any other kind.
func SourceResource(kind string) (schema.GroupVersionResource, bool) {
	resource := sourceResource(kind)
	return sourcev1.GroupVersion.WithResource(resource), resource != ""
}
