package flux

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiacl "github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// ClassifySource tells what a source's status means. A source is Ready only with an artifact,
// except HelmRepositories of type oci, which are static: they have no status at all and read as
// Ready when Static is set. s may be nil.
func ClassifySource(s *Source) Status {
	if s == nil {
		return Status{State: Unknown, Reason: ReasonNotFound}
	}
	status := classify(false, s.Suspended, s.Generation, s.ObservedGeneration, s.Conditions)
	switch status.State {
	case MayHeal:
		status.State = sourceFailure(status.Reason)
	case Unknown:
		// ExternalArtifacts and static HelmRepositories carry no conditions.
		if s.Revision != "" || s.Static {
			status.State, status.Reason = Ready, ""
		}
	case Ready:
		if s.Revision == "" && !s.Static {
			status.State, status.Reason = Pending, ReasonNoArtifact
		}
	}
	return status
}

// sourceFailure tells apart the reasons of source-controller's API (api/v1/condition_types.go).
// Nearly all may heal: a host that is down, a Secret that is not there yet.
func sourceFailure(reason string) State {
	switch reason {
	case meta.ProgressingReason:
		return Pending
	case sourcev1.URLInvalidReason, sourcev1.InvalidSTSConfigurationReason, sourcev1.InvalidProviderConfigurationReason,
		meta.InvalidURLReason, meta.FeatureGateDisabledReason, apiacl.AccessDeniedReason:
		return Final
	}
	return MayHeal
}

// ClassifyHelm tells what a HelmRelease's status means. A release whose retries are exhausted is
// Stalled and therefore Final: Flux leaves it alone until its spec, chart or values change, or its
// counters are reset (see [ResetPatch]). h may be nil.
func ClassifyHelm(h *helmv2.HelmRelease) Status {
	if h == nil {
		return Status{State: Unknown, Reason: ReasonNotFound}
	}
	status := classify(h.GetDeletionTimestamp() != nil, h.Spec.Suspend, h.Generation, h.Status.ObservedGeneration, h.Status.Conditions)
	if status.State != MayHeal {
		return status
	}
	switch status.Reason {
	case meta.DependencyNotReadyReason, meta.ProgressingReason, reasonSourceNotReady:
		status.State = Pending
	case apiacl.AccessDeniedReason, meta.InvalidCELExpressionReason, meta.FeatureGateDisabledReason:
		status.State = Final
	}
	return status
}

// reasonSourceNotReady is set while a HelmRelease's chart has no artifact; the arrival of one wakes
// the release (reconcileRelease in helm-controller's internal/controller/helmrelease_controller.go).
const reasonSourceNotReady = "SourceNotReady"

// RetriesExhausted reports whether helm-controller has given up on a release until it is reset: it
// is Stalled for a failed install, upgrade, test or remediation.
func RetriesExhausted(h *helmv2.HelmRelease) bool {
	if ClassifyHelm(h).State != Final {
		return false
	}
	return h.Status.Failures > 0 || h.Status.InstallFailures > 0 || h.Status.UpgradeFailures > 0
}
