package crds

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/standup-sh/standup/pkg/tiers"
)

// substitutesSecrets reports whether variables of a tier come from Secrets, so that any field of its
// objects may hold what a Secret holds. What an object is called is no secret: Flux itself writes it
// into events and inventories.
func substitutesSecrets(t *tiers.Tier) bool {
	if t == nil || t.Kustomization == nil || t.Kustomization.Spec.PostBuild == nil {
		return false
	}
	for _, ref := range t.Kustomization.Spec.PostBuild.SubstituteFrom {
		if ref.Kind == "Secret" {
			return true
		}
	}
	return false
}

// masked replaces the values that the API server quotes in an answer, and keeps everything else.
func masked(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	next := *status
	next.ErrStatus.Message = maskQuoted(status.ErrStatus.Message)
	if d := status.ErrStatus.Details; d != nil {
		details := *d
		details.Causes = slices.Clone(d.Causes)
		for i := range details.Causes {
			details.Causes[i].Message = maskQuoted(details.Causes[i].Message)
		}
		next.ErrStatus.Details = &details
	}
	return &next
}

// quoted is a value in one of those answers.
var quoted = regexp.MustCompile(`((?:Invalid|Duplicate|Unsupported|Required) value: )(?:"(?:[^"\\]|\\.)*"|\{.*\}|\[.*\]|[^\s,:]+)`)

// maskQuoted hides values in the API server's words for what it does not accept (ErrorBody in
// apimachinery's pkg/util/validation/field/errors.go, and the typed merge's own).
func maskQuoted(message string) string {
	return quoted.ReplaceAllString(message, `${1}"*****"`)
}

// said is the first line of what somebody says about a tier, without what may be a Secret's.
func (f *freer) said(message string) string {
	line := firstLine(strings.TrimSpace(message))
	if substitutesSecrets(f.tier) {
		line = maskQuoted(line)
	}
	return line
}
