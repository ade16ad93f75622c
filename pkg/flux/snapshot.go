// Package flux holds Flux's rules as pure functions over snapshots of objects: is this dependency
// ready, in which stage is this object applied, what does this condition mean. It does no I/O and
// knows nothing of git or of standup's commands. Every rule names the upstream file and function
// it mirrors; where they disagree, upstream is right.
package flux

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key identifies a Kustomization or a HelmRelease by namespace and name.
type Key = types.NamespacedName

// SourceRef identifies a source object: GitRepository, OCIRepository, Bucket, HelmRepository,
// ExternalArtifact.
type SourceRef struct {
	Kind, Namespace, Name string
}

// String returns Kind/namespace/name.
func (r SourceRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Source is what Flux's rules need to know of a source object, whatever its kind.
type Source struct {
	SourceRef
	Generation, ObservedGeneration int64
	// Revision is status.artifact.revision, such as "main@sha1:…"; empty without an artifact.
	Revision  string
	Suspended bool
	// SuspendedInGit is what the function of that name says of the source object.
	SuspendedInGit bool
	// Static says that the source never has an artifact or a status: a HelmRepository of type oci.
	Static bool
	// HasFinalizer says that source-controller has seen the source: its first look only adds that.
	HasFinalizer bool
	// URL is spec.url; empty for kinds without one.
	URL                  string
	Conditions           []metav1.Condition
	RequestedAt          string // annotation reconcile.fluxcd.io/requestedAt
	LastHandledReconcile string // status.lastHandledReconcileAt
}

// Snapshot is every live Flux object that concerns the tiers, as read at one moment. A missing
// entry means that the object does not exist. Objects in it are shared and must not be changed.
type Snapshot struct {
	Kustomizations map[Key]*kustomizev1.Kustomization
	Sources        map[SourceRef]*Source
	HelmReleases   map[Key]*helmv2.HelmRelease
}
