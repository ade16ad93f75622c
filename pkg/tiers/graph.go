package tiers

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/standup-sh/standup/pkg/render"
)

// Key identifies a tier: the namespace and name of its Flux Kustomization.
type Key = types.NamespacedName

// Tier is one Flux Kustomization, the unit of order.
type Tier struct {
	Key
	// Kustomization is the object as it will stand on the cluster: after its parent's patches,
	// namespace transformers and substitutions. Never nil.
	Kustomization *kustomizev1.Kustomization
	// File and Line say where in the repository the Kustomization is written; File is
	// repository-relative and empty when unknown (a live graph, a generator).
	File string
	Line int
	// Dir is the repository-relative folder that spec.path names, cleaned; empty for an opaque tier.
	Dir string
	// Source is the sourceRef with its namespace filled in, written Kind/namespace/name.
	Source string
	// Parent is the tier whose pass applies this Kustomization; nil for a root.
	Parent *Key
	// DependsOn lists spec.dependsOn with namespaces filled in, in the order of the spec,
	// including entries whose target does not exist (those are Problems too).
	DependsOn []Key
	// Wave is the length of the longest chain of edges that ends here; roots are wave 0.
	Wave int
	// Gate says that Ready means healthy, not only applied: spec.wait or spec.healthChecks.
	// healthCheckExprs alone check nothing (kustomize-controller, checkHealth).
	Gate bool
	// Leaf says that no edge leads to this tier: no other one needs it.
	Leaf bool
	// Suspend is spec.suspend as git has it.
	Suspend bool
	// Synthetic says that the Kustomization is not written in git: it is the root that Flux Operator
	// or flux bootstrap make of the entry path.
	Synthetic bool
	// Opaque is empty, or the reason why the tier's objects are not known (another repository,
	// a remote base, a path that does not exist).
	Opaque string
	// HelmReleases are the releases that the tier applies, by namespace and name; nil unless
	// Options.HelmReleases was set.
	HelmReleases []HelmRelease
	// Objects are the tier's rendered objects in kustomize's output order; nil unless
	// Options.Objects was set. Those of an opaque tier are what can be built without the part that is
	// not known, if anything.
	Objects []render.Object
}

// ReadyExpr is the expression that decides instead of Flux when a dependency is ready; empty for one
// that has none, and for what is no dependency of the tier.
func (t *Tier) ReadyExpr(dependency Key) string {
	for i, k := range t.DependsOn {
		if k == dependency && i < len(t.Kustomization.Spec.DependsOn) {
			return t.Kustomization.Spec.DependsOn[i].ReadyExpr
		}
	}
	return ""
}

// EdgeKind says why one tier comes after another.
type EdgeKind string

// The kinds of edges.
const (
	DependsOn EdgeKind = "dependsOn" // spec.dependsOn
	Parent    EdgeKind = "parent"    // From exists only once To has been applied
	Source    EdgeKind = "source"    // To applies the source object that From reads; left out between a tier and its ancestors
)

// Edge is one ordering constraint: From needs To.
type Edge struct {
	From, To Key
	Kind     EdgeKind
	// File and Line say where the edge is written; empty when unknown.
	File string
	Line int
}

// Severity grades a Problem.
type Severity string

// The severities, as SARIF and compilers use them.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Problem is something in git that keeps the graph from being what its author meant. A problem
// never stops the rest of the graph from being shown.
type Problem struct {
	// Rule is a stable identifier, such as "cycle" or "missing-dependency".
	Rule     string
	Severity Severity
	// Tier is the tier concerned; zero when the problem belongs to a file alone.
	Tier    Key
	File    string
	Line    int
	Message string
}

// Graph is every tier below one entry path and the order between them.
type Graph struct {
	// Tiers come in a valid order: each after all that it needs, ties by wave, then namespace/name.
	// Members of a cycle come last, sorted.
	Tiers []*Tier
	// Edges are sorted by From, To, Kind. Only edges between tiers of the graph are listed.
	Edges []Edge
	// CriticalPath is the longest chain, first tier first; ties go to the smallest name.
	CriticalPath []Key
	// LeftOut are the Kustomizations that git holds and Flux never creates, because they opt out of
	// being applied ([flux.Skipped]), by namespace and name. They are no tiers.
	LeftOut []render.Object
	// Problems are sorted by file, line, rule, tier.
	Problems []Problem
	// Revision names what was read: a commit id, or "" for the work tree or a live graph.
	Revision string
	// Entry is the entry path the graph was built from; empty for a live graph.
	Entry string
}
