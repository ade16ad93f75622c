package resume

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Object names one Flux object: a tier's Kustomization, a HelmRelease or a source.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns Kind/namespace/name.
func (o Object) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// Tier returns the key of the tier that the object is, and whether it is one.
func (o Object) Tier() (tiers.Key, bool) {
	return tiers.Key{Namespace: o.Namespace, Name: o.Name}, o.Kind == kustomizev1.KustomizationKind
}

func tierObject(key tiers.Key) Object {
	return Object{Kind: kustomizev1.KustomizationKind, Namespace: key.Namespace, Name: key.Name}
}

func releaseObject(key flux.Key) Object {
	return Object{Kind: helmv2.HelmReleaseKind, Namespace: key.Namespace, Name: key.Name}
}

func sourceObject(ref flux.SourceRef) Object { return Object(ref) }

// request returns the object's last request for a pass, and whether the object exists.
func request(o Object, s flux.Snapshot) (requested string, exists bool) {
	key := flux.Key{Namespace: o.Namespace, Name: o.Name}
	switch o.Kind {
	case kustomizev1.KustomizationKind:
		if k := s.Kustomizations[key]; k != nil {
			return k.Annotations[flux.RequestAnnotation], true
		}
	case helmv2.HelmReleaseKind:
		if h := s.HelmReleases[key]; h != nil {
			return h.Annotations[flux.RequestAnnotation], true
		}
	default:
		if src := s.Sources[flux.SourceRef(o)]; src != nil {
			return src.RequestedAt, true
		}
	}
	return "", false
}
