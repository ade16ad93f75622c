package audit

import (
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/tiers"
)

// input is an object that Flux must read before it can build or apply a tier.
type input struct {
	ref
	// field is where the Kustomization names it.
	field string
}

// inputsOf lists what a tier's pass reads from the cluster before its first dry-run, optional ones
// left out. They always live on the cluster Flux runs on, in the tier's namespace.
//
// It follows SubstituteVariables in fluxcd/pkg's kustomize/kustomize_varsub.go, ImportKeys in
// kustomize-controller's internal/decryptor/decryptor.go and reconcile in its controller.
func inputsOf(t *tiers.Tier) []input {
	spec := t.Kustomization.Spec
	var out []input
	add := func(kind, name, field string) {
		if name != "" {
			out = append(out, input{ref{kind: kind, namespace: t.Namespace, name: name}, field})
		}
	}
	if spec.PostBuild != nil {
		for _, s := range spec.PostBuild.SubstituteFrom {
			if !s.Optional {
				add(s.Kind, s.Name, "spec.postBuild.substituteFrom")
			}
		}
	}
	if d := spec.Decryption; d != nil && d.SecretRef != nil {
		add("Secret", d.SecretRef.Name, "spec.decryption.secretRef")
	}
	if k := spec.KubeConfig; k != nil {
		if k.SecretRef != nil {
			add("Secret", k.SecretRef.Name, "spec.kubeConfig.secretRef")
		}
		if k.ConfigMapRef != nil {
			add("ConfigMap", k.ConfigMapRef.Name, "spec.kubeConfig.configMapRef")
		}
	} else {
		add("ServiceAccount", spec.ServiceAccountName, "spec.serviceAccountName")
	}
	return out
}

// inputBlocker tells whether an input is still to come. What nothing in git makes is taken to be
// there, and so is everything that a root needs: whoever created the root gave it its inputs.
func (r *replay) inputBlocker(i int, in input) (blocker, bool) {
	if r.tiers[i].Parent == nil || !r.toCome(in.ref) {
		return blocker{}, false
	}
	if r.broughtByHand(in) {
		return blocker{}, false
	}
	return r.waitFor(byInput, in.ref, nil), true
}

// broughtByHand reports whether an input is a key that decrypts, and is itself encrypted in git or made
// from values of a store outside: somebody brings such a key first, or nothing would ever start.
func (w *world) broughtByHand(in input) bool {
	return strings.HasPrefix(in.field, "spec.decryption") &&
		(w.fromOutside(in.ref) || slices.ContainsFunc(w.byRef[in.ref], func(m *item) bool { return m.Encrypted() }))
}

// releaseInputs lists the objects that helm-controller reads before it can install a release:
// values, and the source of the chart.
func releaseInputs(rel *release) []ref {
	spec := rel.spec.Spec
	var out []ref
	for _, v := range spec.ValuesFrom {
		if !v.Optional {
			out = append(out, ref{cluster: rel.ref.cluster, kind: v.Kind, namespace: rel.GetNamespace(), name: v.Name})
		}
	}
	if src, ok := chartSource(&rel.spec); ok {
		src.cluster = rel.ref.cluster
		out = append(out, src)
	}
	return out
}

// releaseNeeds lists all that has to be there before helm-controller can install a release.
func releaseNeeds(rel *release) []ref {
	out := releaseInputs(rel)
	for _, d := range rel.spec.Spec.DependsOn {
		out = append(out, releaseDependency(rel, d.Namespace, d.Name))
	}
	return out
}

// releaseDependency is a HelmRelease that another one names, by default in its own namespace.
func releaseDependency(rel *release, namespace, name string) ref {
	if namespace == "" {
		namespace = rel.GetNamespace()
	}
	return ref{cluster: rel.ref.cluster, group: helmv2.GroupVersion.Group, kind: helmv2.HelmReleaseKind, namespace: namespace, name: name}
}

// chartSource is the object that a release's chart comes from.
func chartSource(h *helmv2.HelmRelease) (ref, bool) {
	src := ref{group: sourcev1.GroupVersion.Group}
	switch {
	case h.Spec.ChartRef != nil:
		src.kind, src.namespace, src.name = h.Spec.ChartRef.Kind, h.Spec.ChartRef.Namespace, h.Spec.ChartRef.Name
	case h.Spec.Chart != nil:
		s := h.Spec.Chart.Spec.SourceRef
		src.kind, src.namespace, src.name = s.Kind, s.Namespace, s.Name
	default:
		return ref{}, false
	}
	if src.namespace == "" {
		src.namespace = h.Namespace
	}
	return src, true
}

// initialNamespace reports whether a namespace is there before Flux's first pass: Kubernetes' own,
// those in which the root tiers were created, and those that the configuration declares.
func (w *world) initialNamespace(cluster, name string) bool {
	if name == "default" || name == "kube-system" || name == "kube-public" || name == "kube-node-lease" {
		return true
	}
	if cluster != "" {
		return false
	}
	for _, t := range w.tiers {
		if t.Parent == nil && t.Namespace == name {
			return true
		}
	}
	return w.declared(namespaceRef("", name))
}

// declared reports whether an object is there before Flux: the configuration says so, or a root's source
// is fetched with it.
func (w *world) declared(r ref) bool {
	return w.given[r] || w.config.object(r)
}

func nestedString(object map[string]any, fields ...string) string {
	s, _, _ := unstructured.NestedString(object, fields...)
	return s
}
