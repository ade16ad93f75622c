package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/standup-sh/standup/pkg/tiers"
)

// settings compares what of two Kustomizations decides over order, readiness and what becomes of
// their objects.
func settings(a, b *tiers.Tier) []Change {
	var out []Change
	before, after := describe(a), describe(b)
	for _, field := range slices.Sorted(maps.Keys(before)) {
		if before[field] != after[field] {
			out = append(out, Change{a.Key, field, before[field], after[field]})
		}
	}
	return out
}

func describe(t *tiers.Tier) map[string]string {
	s := t.Kustomization.Spec
	checks := make([]string, 0, len(s.HealthChecks))
	for _, h := range s.HealthChecks {
		checks = append(checks, h.Kind+"/"+h.Namespace+"/"+h.Name)
	}
	slices.Sort(checks)
	retry := ""
	if s.RetryInterval != nil {
		retry = s.RetryInterval.Duration.String()
	}
	timeout := ""
	if s.Timeout != nil {
		timeout = s.Timeout.Duration.String()
	}
	return map[string]string{
		"spec.path":                s.Path,
		"spec.sourceRef":           t.Source,
		"spec.wait":                fmt.Sprint(s.Wait),
		"spec.healthChecks":        strings.Join(checks, ", "),
		"spec.healthCheckExprs":    expressions(s.HealthCheckExprs),
		"spec.dependsOn.readyExpr": readyExprs(t),
		"spec.prune":               fmt.Sprint(s.Prune),
		"spec.deletionPolicy":      (&kustomizev1.Kustomization{Spec: s}).GetDeletionPolicy(),
		"spec.suspend":             fmt.Sprint(s.Suspend),
		"spec.force":               fmt.Sprint(s.Force),
		"spec.interval":            s.Interval.Duration.String(),
		"spec.retryInterval":       retry,
		"spec.timeout":             timeout,
		"spec.targetNamespace":     s.TargetNamespace,
		"spec.kubeConfig":          remote(s.KubeConfig),
	}
}

// remote names what leads to the cluster that a tier is applied to; empty for the one Flux runs on.
func remote(k *meta.KubeConfigReference) string {
	switch {
	case k == nil:
		return ""
	case k.SecretRef != nil:
		return "Secret/" + k.SecretRef.Name
	case k.ConfigMapRef != nil:
		return "ConfigMap/" + k.ConfigMapRef.Name
	}
	return "another cluster"
}

func expressions(list []kustomize.CustomHealthCheck) string {
	out := make([]string, 0, len(list))
	for _, h := range list {
		out = append(out, fmt.Sprintf("%s %s: current %q, inProgress %q, failed %q", h.APIVersion, h.Kind, h.Current, h.InProgress, h.Failed))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func readyExprs(t *tiers.Tier) string {
	var out []string
	for _, k := range t.DependsOn {
		if e := t.ReadyExpr(k); e != "" {
			out = append(out, fmt.Sprintf("%s: %q", k, e))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
