package crds

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// wanted is an object to be applied.
type wanted struct {
	render.Object
	tier *tiers.Tier
	why  string
	// absentOnly leaves the object alone if it exists.
	absentOnly bool
	// triggers says that the object itself brings kinds; the others only go along with one that does.
	triggers bool
}

// withNeeds adds to a trigger what it cannot do without and that comes with the same pass: its
// Namespace, the CRD of its own kind, and the objects that it refers to by name. Only what the
// trigger cannot exist or work without; everything else is Flux's to apply. The result is in the
// order of Flux's stages.
func withNeeds(trigger wanted) []wanted {
	all := []wanted{trigger}
	for next := 0; next < len(all); next++ {
		for _, o := range trigger.tier.Objects {
			if flux.Skipped(o.Unstructured, nil) || !isNeeded(all[next].Object, o) || contains(all, o) {
				continue
			}
			all = append(all, wanted{Object: o, tier: trigger.tier, why: all[next].ID() + " needs it", absentOnly: true})
		}
	}
	byStage(all)
	return all
}

func contains(all []wanted, o render.Object) bool {
	return slices.ContainsFunc(all, func(w wanted) bool { return keyOf(w.Object) == keyOf(o) })
}

// byStage sorts as Flux applies: by stage, and within one in the order of the build, except that
// what a trigger needs goes before it.
func byStage(all []wanted) {
	slices.SortStableFunc(all, func(a, b wanted) int {
		trigger := func(w wanted) int {
			if w.triggers {
				return 1
			}
			return 0
		}
		return cmp.Or(
			cmp.Compare(flux.Stage(a.Unstructured, nil), flux.Stage(b.Unstructured, nil)),
			cmp.Compare(trigger(a), trigger(b)))
	})
}

// isNeeded reports whether o cannot do without candidate.
func isNeeded(o, candidate render.Object) bool {
	if keyOf(o) == keyOf(candidate) {
		return false
	}
	gk := candidate.GroupVersionKind().GroupKind()
	if (gk == schema.GroupKind{Kind: "Namespace"}) {
		return o.GetNamespace() != "" && candidate.GetName() == o.GetNamespace()
	}
	if isCRD(candidate) {
		kind, _ := definition(candidate)
		return kind.GroupKind == o.GroupVersionKind().GroupKind()
	}
	return refersTo(o.Object["spec"], o.GetNamespace(), candidate)
}

// refersTo looks for a reference to candidate anywhere below value: an object under a key that ends
// in Ref or Refs, From or Reference, with the candidate's name and, where it says a kind, its kind;
// without a kind the key must name it (secretRef). serviceAccountName is one too.
func refersTo(value any, namespace string, candidate render.Object) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if namesAccount(key, child, namespace, candidate) || isReference(key, child, namespace, candidate) || refersTo(child, namespace, candidate) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(child any) bool { return refersTo(child, namespace, candidate) })
	}
	return false
}

func namesAccount(key string, child any, namespace string, candidate render.Object) bool {
	return key == "serviceAccountName" && child == candidate.GetName() &&
		candidate.GetKind() == "ServiceAccount" && candidate.GetNamespace() == namespace
}

func isReference(key string, child any, namespace string, candidate render.Object) bool {
	if !regexp.MustCompile(`(?:Refs?|References?|From|dependsOn)$`).MatchString(key) {
		return false
	}
	refs, ok := child.([]any)
	if !ok {
		refs = []any{child}
	}
	return slices.ContainsFunc(refs, func(r any) bool {
		ref, ok := r.(map[string]any)
		return ok && matchesReference(key, ref, namespace, candidate)
	})
}

func matchesReference(key string, ref map[string]any, namespace string, candidate render.Object) bool {
	field := func(name string) string { s, _ := ref[name].(string); return s }
	if field("name") == "" || field("name") != candidate.GetName() {
		return false
	}
	if explicit := field("namespace"); explicit != "" {
		namespace = explicit
	}
	if candidate.GetNamespace() != "" && candidate.GetNamespace() != namespace {
		return false
	}
	if kind := field("kind"); kind != "" {
		return kind == candidate.GetKind()
	}
	if key == "dependsOn" {
		return candidate.GetKind() == "HelmRelease"
	}
	return strings.Contains(strings.ToLower(key), strings.ToLower(candidate.GetKind()))
}
