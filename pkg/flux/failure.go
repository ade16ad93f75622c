package flux

import (
	"strings"

	apiacl "github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
)

// failureOf tells what a Kustomization's Ready=False means. Reasons decide; where one reason covers
// both kinds of failure, the controller's own wording does.
func failureOf(reason, message string) State {
	switch reason {
	case meta.DependencyNotReadyReason, meta.ProgressingReason, meta.HealthCheckCanceledReason:
		return Pending
	case meta.InvalidCELExpressionReason, meta.FeatureGateDisabledReason, apiacl.AccessDeniedReason:
		return Final
	case meta.ArtifactFailedReason:
		return artifactFailure(message)
	case meta.BuildFailedReason:
		return buildFailure(message)
	case meta.ReconciliationFailedReason:
		// The one refusal that comes from git alone and carries the general reason (apply).
		if strings.Contains(message, "is SOPS encrypted, configuring decryption is required") {
			return Final
		}
	}
	return MayHeal
}

// artifactFailure tells apart what kustomize-controller reports as ArtifactFailed: an artifact that
// is yet to come (Reconcile), a path that the revision does not have (reconcile), and the rest,
// such as a source that does not exist yet or a download that failed.
func artifactFailure(message string) State {
	switch {
	case strings.HasPrefix(message, "Source artifact not found"),
		strings.HasPrefix(message, "Source is not ready, artifact not found"):
		return Pending
	case strings.HasPrefix(message, "kustomization path not found"):
		return Final
	}
	return MayHeal
}

// buildFailure tells apart a build that git alone makes fail from one that misses something on the
// cluster: a ConfigMap or Secret of substituteFrom (fluxcd/pkg's kustomize/kustomize_varsub.go) or
// a decryption key (kustomize-controller's internal/decryptor/decryptor.go). A decryption Secret that
// does not exist is reported in the API's bare words (ImportKeys there).
func buildFailure(message string) State {
	if strings.HasPrefix(message, `secrets "`) && strings.HasSuffix(message, `" not found`) {
		return MayHeal
	}
	for _, part := range []string{
		"substitute from 'ConfigMap/",
		"substitute from 'Secret/",
		"decryption Secret '",
		"Vault ConfigMap '",
		"error decrypting sources",
		"decryption failed for '",
	} {
		if strings.Contains(message, part) {
			return MayHeal
		}
	}
	return Final
}
