package audit

import (
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// blockerKind says which of Flux's rules holds a tier up.
type blockerKind string

const (
	byParent     blockerKind = "parent"    // the tier does not exist: its parent has not applied it
	bySource     blockerKind = "source"    // the source object does not exist, or cannot be fetched
	byDependency blockerKind = "dependsOn" // a dependency is not ready
	byMissing    blockerKind = "missing"   // a dependency does not exist
	bySuspended  blockerKind = "suspended" // a dependency, child or release is suspended in git
	byInput      blockerKind = "input"     // a ConfigMap, Secret or ServiceAccount that the pass itself needs
	byBuild      blockerKind = "build"     // the tier cannot be built
	bySOPS       blockerKind = "sops"      // an encrypted Secret and no decryption
	byKind       blockerKind = "kind"      // the kind of an object is not known
	byNamespace  blockerKind = "namespace" // the namespace of an object does not exist
	byAccount    blockerKind = "account"   // the ServiceAccount of a bare Pod does not exist
	byHealth     blockerKind = "health"    // a child or a release is not healthy
	byAccess     blockerKind = "access"    // cross-namespace references are forbidden
	byRelease    blockerKind = "release"   // a HelmRelease cannot run
	byUse        blockerKind = "use"       // an object cannot become healthy without another one
	byExpression blockerKind = "cel"       // an expression of the tier's does not compile, or gives no boolean
	byCheck      blockerKind = "check"     // a health check names what nothing makes
	byScope      blockerKind = "scope"     // an object has no namespace, and its kind needs one
)

// blocker is one thing that a tier waits for.
type blocker struct {
	kind blockerKind
	// what is the object or kind waited for.
	what ref
	// item is the object that needs it; nil when the tier itself does.
	item *item
	// on lists the tiers that could bring it, the tier itself possibly among them.
	on []int
	// lacks is what the object waited for is itself waiting for, where a controller is to make it.
	lacks []ref
	// source is the source that cannot be fetched without what is waited for, if that is why.
	source ref
	// problem is the graph's own account of a tier that cannot be built.
	problem *tiers.Problem
	err     error // why an expression does not compile
}

// gateBlockers are what keeps a tier's pass from reaching its first dry-run.
func (r *replay) gateBlockers(i int) []blocker {
	t := r.tiers[i]
	var out []blocker
	add := func(b blocker) {
		if !r.forced[b.force(i)] {
			out = append(out, b)
		}
	}
	if t.Parent != nil {
		if p, ok := r.index[*t.Parent]; ok && !r.exists(i, p) {
			add(blocker{kind: byParent, what: r.tierRef(i), on: []int{p}})
		}
	}
	if t.Suspend {
		add(blocker{kind: bySuspended, what: r.tierRef(i)})
	}
	if err := r.expressions[i]; err != nil {
		add(blocker{kind: byExpression, what: r.tierRef(i), err: err})
	}
	if b, ok := r.sourceBlocker(i); ok {
		add(b)
	}
	if src := flux.SourceOf(t.Kustomization); r.noCrossNamespace && src.Namespace != t.Namespace {
		add(blocker{kind: byAccess, what: ref{kind: src.Kind, namespace: src.Namespace, name: src.Name}})
	}
	for _, k := range t.DependsOn {
		if b, ok := r.dependencyBlocker(i, k); ok {
			add(b)
		}
	}
	for _, in := range inputsOf(t) {
		if b, ok := r.inputBlocker(i, in); ok {
			add(b)
		}
	}
	if p := r.buildProblem(i); p != nil {
		add(blocker{kind: byBuild, what: r.tierRef(i), problem: p})
	}
	if t.Kustomization.Spec.Decryption == nil && !t.Synthetic { // of a root that git does not show, this is not known
		for _, it := range r.items[i] {
			if it.Encrypted() && (it.gk == (schema.GroupKind{Kind: "Secret"}) && !decryptionDisabled(it) || it.Unreadable()) {
				add(blocker{kind: bySOPS, what: it.ref, item: it})
			}
		}
	}
	return out
}

// decryptionDisabled mirrors IsDecryptionDisabled in kustomize-controller's
// internal/decryptor/decryptor.go.
func decryptionDisabled(it *item) bool {
	return it.GetAnnotations()[kustomizev1.GroupVersion.Group+"/decrypt"] == kustomizev1.DisabledValue
}

func (r *replay) tierRef(i int) ref { return tierRef(r.tiers[i].Key) }

func tierRef(k tiers.Key) ref {
	return ref{group: kustomizev1.GroupVersion.Group, kind: kustomizev1.KustomizationKind, namespace: k.Namespace, name: k.Name}
}

// sourceBlocker tells whether a tier's source is still to come. A root's source is there before it,
// and so is one that git does not show.
func (r *replay) sourceBlocker(i int) (blocker, bool) {
	t := r.tiers[i]
	if t.Parent == nil || r.isRootSource(t.Source) {
		return blocker{}, false
	}
	what := sourceRef(t)
	if makers := r.byRef[what]; len(makers) > 0 {
		if suspended(makers[0]) {
			return blocker{kind: bySuspended, what: what, item: makers[0]}, true
		}
		if !r.present[what] {
			return blocker{kind: bySource, what: what, on: itemTiers(makers)}, true
		}
		return r.unfetched(bySource, what, nil)
	}
	for _, s := range r.sources[i] {
		if r.applied[s] {
			return blocker{}, false
		}
	}
	return blocker{kind: bySource, what: what, on: r.sources[i]}, len(r.sources[i]) > 0
}

// sourceRef is the source that a tier reads.
func sourceRef(t *tiers.Tier) ref {
	src := flux.SourceOf(t.Kustomization)
	return ref{group: sourcev1.GroupVersion.Group, kind: src.Kind, namespace: src.Namespace, name: src.Name}
}

// isRootSource reports whether a root reads the source: then it was there before anything of git.
func (w *world) isRootSource(source string) bool {
	return slices.ContainsFunc(w.tiers, func(t *tiers.Tier) bool { return t.Parent == nil && t.Source == source })
}

// buildProblem is the graph's account of why a tier cannot be built, if it cannot.
func (r *replay) buildProblem(i int) *tiers.Problem {
	for j := range r.graph.Problems {
		p := &r.graph.Problems[j]
		if p.Tier == r.tiers[i].Key && p.Severity == tiers.Error && breaksBuild(p.Rule) && r.doubtful(*p) == "" {
			return p
		}
	}
	return nil
}

// doubtful says why a problem of the graph may be none on the cluster; empty when it is one.
func (w *world) doubtful(p tiers.Problem) string {
	switch p.Rule {
	case problemVariable:
		if w.injected {
			return "an admission webhook changes Kustomizations, and may add the variable"
		}
	case problemBuild:
		for _, other := range w.graph.Problems {
			if other.Tier == p.Tier && other.Rule == problemRemote {
				return "a base of the tier was not fetched, and may hold what is missing"
			}
		}
	}
	return ""
}

// invalid is the graph's account of a Kustomization that the API server would refuse, which ends the
// pass of the tier that holds it. Where a variable is not known, nobody can say.
func (w *world) invalid(it *item) *tiers.Problem {
	if !isKustomization(it.gk) {
		return nil
	}
	for j := range w.graph.Problems {
		p := &w.graph.Problems[j]
		if p.Rule == problemInvalid && p.Tier == (tiers.Key{Namespace: it.GetNamespace(), Name: it.GetName()}) && !strings.Contains(p.Message, "${") {
			return p
		}
	}
	return nil
}

// stageBlockers are what the dry-run of one stage would stumble over.
func (r *replay) stageBlockers(i int, stage flux.ApplyStage) []blocker {
	var out []blocker
	for _, it := range r.items[i] {
		if it.stage != stage {
			continue
		}
		for _, b := range r.itemBlockers(it) {
			if !r.forced[b.force(i)] {
				out = append(out, b)
			}
		}
	}
	return out
}

func (r *replay) itemBlockers(it *item) []blocker {
	var out []blocker
	if p := r.invalid(it); p != nil {
		out = append(out, blocker{kind: byBuild, what: it.ref, item: it, problem: p})
	}
	// The root of an entry that git does not show may have a targetNamespace, and of a tier that is not known
	// as a whole the objects are as they were before its kustomization gave them one.
	if t := r.tiers[it.tier]; r.scopes.homeless(it) && !t.Synthetic && t.Opaque == "" {
		out = append(out, blocker{kind: byScope, what: ref{kind: "Namespace"}, item: it})
	}
	if key := kindRef(it.ref.cluster, it.gk); !r.served(key) {
		out = append(out, blocker{kind: byKind, what: key, item: it, on: supplyTiers(r.supplies[key])})
	}
	if ns := r.scopes.namespaceOf(it); ns != "" {
		if makers := r.namespaces[namespaceRef(it.ref.cluster, ns)]; len(makers) > 0 && !r.namespaceExists(it.ref.cluster, ns) {
			out = append(out, blocker{kind: byNamespace, what: namespaceRef(it.ref.cluster, ns), item: it, on: itemTiers(makers)})
		}
	}
	if account, ok := podAccount(it); ok {
		if r.toCome(account) {
			out = append(out, r.waitFor(byAccount, account, it))
		}
	}
	return out
}

// namespaceExists reports whether a namespace is there: from the start, from a Namespace that was
// applied, or from a release that has created it.
func (r *replay) namespaceExists(cluster, name string) bool {
	if r.initialNamespace(cluster, name) {
		return true
	}
	for _, it := range r.namespaces[namespaceRef(cluster, name)] {
		if isRelease(it.gk) && r.running[it.ref] || !isRelease(it.gk) && r.present[it.ref] {
			return true
		}
	}
	return false
}

// podAccount is the ServiceAccount that admission looks up for a bare Pod: a Deployment's pods are
// made later, and retried. A Pod without one uses "default", which every namespace gets.
func podAccount(it *item) (ref, bool) {
	if it.gk != (schema.GroupKind{Kind: "Pod"}) {
		return ref{}, false
	}
	name := nestedString(it.Object.Object, "spec", "serviceAccountName")
	if name == "" || name == "default" {
		return ref{}, false
	}
	return ref{cluster: it.ref.cluster, kind: "ServiceAccount", namespace: it.GetNamespace(), name: name}, true
}

// unhealthy lists what a tier's health checks wait for; nothing for a tier that has none.
func (r *replay) unhealthy(i int) []blocker {
	var out []blocker
	add := func(b blocker) {
		if !r.forced[b.force(i)] {
			out = append(out, b)
		}
	}
	for _, it := range r.watched(i) {
		if err := r.healthFault(i, it.gk); err != nil {
			add(blocker{kind: byExpression, what: kindRef(it.ref.cluster, it.gk), item: it, err: err})
			continue
		}
		switch {
		case isKustomization(it.gk):
			j, ok := r.index[tiers.Key{Namespace: it.GetNamespace(), Name: it.GetName()}]
			if !ok || j == i || r.ready[j] {
				continue
			}
			if r.tiers[j].Suspend {
				add(blocker{kind: bySuspended, what: it.ref, item: it})
				continue
			}
			add(blocker{kind: byHealth, what: it.ref, item: it, on: []int{j}})
		case r.releases[it.ref] != nil && !r.running[it.ref]:
			if r.releases[it.ref].spec.Spec.Suspend {
				add(blocker{kind: bySuspended, what: it.ref, item: it})
				continue
			}
			add(blocker{kind: byRelease, what: it.ref, item: it, on: r.releaseAwaits(it.ref)})
		case !r.present[it.ref] && !r.declared(it.ref): // of another tier, which healthChecks name
			add(blocker{kind: byHealth, what: it.ref, item: it, on: itemTiers(r.byRef[it.ref])})
		default:
			for _, b := range r.useBlockers(it) {
				if !r.saidOfMaker(i, b.what) {
					add(b)
				}
			}
		}
	}
	for _, what := range r.checksOfNothing(i) {
		add(blocker{kind: byCheck, what: what})
	}
	return out
}

// useBlockers are what an object lacks to become healthy.
func (r *replay) useBlockers(it *item) []blocker {
	var out []blocker
	for _, u := range it.hardUses() {
		if r.toCome(u.ref) {
			out = append(out, r.waitFor(byUse, u.ref, it))
		}
	}
	return out
}

// watched lists the objects of the graph that a tier's health checks look at.
func (r *replay) watched(i int) []*item {
	spec := r.tiers[i].Kustomization.Spec
	if spec.Wait {
		return r.items[i]
	}
	var out []*item
	for _, key := range r.checks(i) {
		if makers := r.byRef[key]; len(makers) > 0 {
			out = append(out, makers[0])
		}
	}
	return out
}

func supplyTiers(list []supply) []int {
	var out []int
	for _, s := range list {
		if s.tier >= 0 {
			out = append(out, s.tier)
		}
	}
	return out
}

func itemTiers(list []*item) []int {
	var out []int
	for _, it := range list {
		out = append(out, it.tier)
	}
	return out
}

func fromUnstructured(from map[string]any, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from, to)
}
