package audit

import (
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/tiers"
)

// tierManifest writes the Kustomization to split off: like the tier it comes from, and after it. What
// decides where its objects land, and with what in them, is taken over; patches and the like name objects
// that stay.
func tierManifest(t *tiers.Tier, name, dependsOn, path string) string {
	spec := t.Kustomization.Spec
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: %s\n  namespace: %s\nspec:\n", name, t.Namespace)
	// Many an operator's own object has no condition Ready, and counts as healthy before the kind exists:
	// the first pass may come a moment too early, and is not to be retried only after an interval.
	retry := time.Minute
	if spec.RetryInterval != nil {
		retry = spec.RetryInterval.Duration
	}
	fmt.Fprintf(&b, "  dependsOn:\n    - name: %s\n  interval: %s\n  retryInterval: %s\n", dependsOn, shortDuration(spec.Interval.Duration), shortDuration(retry))
	fmt.Fprintf(&b, "  path: %s\n  prune: %t\n  wait: true\n  sourceRef:\n    kind: %s\n    name: %s\n", path, spec.Prune, spec.SourceRef.Kind, spec.SourceRef.Name)
	if ns := spec.SourceRef.Namespace; ns != "" && ns != t.Namespace {
		fmt.Fprintf(&b, "    namespace: %s\n", ns)
	}
	b.WriteString(inherited(spec))
	return b.String()
}

// inherited is the part of a spec that goes for each of its objects, as lines of YAML.
func inherited(spec kustomizev1.KustomizationSpec) string {
	data, err := yaml.Marshal(struct {
		CommonMetadata     *kustomizev1.CommonMetadata `json:"commonMetadata,omitempty"`
		Decryption         *kustomizev1.Decryption     `json:"decryption,omitempty"`
		KubeConfig         *meta.KubeConfigReference   `json:"kubeConfig,omitempty"`
		NamePrefix         string                      `json:"namePrefix,omitempty"`
		NameSuffix         string                      `json:"nameSuffix,omitempty"`
		PostBuild          *kustomizev1.PostBuild      `json:"postBuild,omitempty"`
		ServiceAccountName string                      `json:"serviceAccountName,omitempty"`
		TargetNamespace    string                      `json:"targetNamespace,omitempty"`
	}{
		spec.CommonMetadata, spec.Decryption, spec.KubeConfig, spec.NamePrefix, spec.NameSuffix,
		spec.PostBuild, spec.ServiceAccountName, spec.TargetNamespace,
	})
	if err != nil || string(data) == "{}\n" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimSuffix(string(data), "\n"), "\n", "\n  ") + "\n"
}
