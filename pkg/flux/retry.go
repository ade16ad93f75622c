package flux

import (
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apiacl "github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
)

// DependencyRequeue is the controllers' default --requeue-dependency.
const DependencyRequeue = 30 * time.Second

// Retry says when Flux alone would look at an object again.
type Retry struct {
	// At is the time of the next pass; zero when it cannot be told, or when there is none.
	At time.Time
	// Every is the interval that applies; zero when Flux will not come back by itself.
	Every time.Duration
}

// Never reports that Flux will not try again until the object or its source changes.
func (r Retry) Never() bool { return r.Every == 0 }

// NextRetry tells when kustomize-controller alone would try again. At is only known after a failed
// pass: every pass sets Ready to Unknown first, so that the transition marks its end. One that is
// turned away at its source or its dependencies changes nothing that tells its time.
//
// It follows the results that Reconcile in kustomize-controller's
// internal/controller/kustomization_controller.go returns, with --requeue-dependency at its
// default.
func NextRetry(k *kustomizev1.Kustomization) Retry {
	status := Classify(k)
	switch status.State {
	case Suspended:
		return Retry{}
	case Ready:
		return Retry{Every: k.GetRequeueAfter()}
	case Unknown, Pending:
		if status.Reason == meta.DependencyNotReadyReason || status.Reason == meta.ArtifactFailedReason {
			return Retry{Every: DependencyRequeue}
		}
		return Retry{}
	}
	switch status.Reason {
	case meta.InvalidCELExpressionReason, meta.FeatureGateDisabledReason, apiacl.AccessDeniedReason:
		return Retry{}
	case meta.ArtifactFailedReason:
		if strings.HasSuffix(status.Message, "not found") { // the source object
			return Retry{Every: k.GetRetryInterval()}
		}
	}
	retry := Retry{Every: k.GetRetryInterval()}
	if !status.Since.IsZero() {
		retry.At = status.Since.Add(retry.Every)
	}
	return retry
}

// NextHelmRetry tells when helm-controller alone would try a HelmRelease again. A failed release is
// retried with the work queue's back-off, of which the status says nothing.
func NextHelmRetry(h *helmv2.HelmRelease) Retry {
	status := ClassifyHelm(h)
	switch {
	case status.State == Suspended, status.State == Final, status.State == Unknown:
		return Retry{}
	case status.Reason == meta.DependencyNotReadyReason:
		return Retry{Every: DependencyRequeue}
	}
	return Retry{Every: h.GetRequeueAfter()}
}
