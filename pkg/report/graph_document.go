package report

import "github.com/standup-sh/standup/pkg/tiers"

// GraphDocument is the machine-readable form of a graph: the contract of `standup tiers -o json`.
// Fields are only ever added.
type GraphDocument struct {
	Tiers        []TierDocument    `json:"tiers"`
	Edges        []EdgeDocument    `json:"edges"`
	CriticalPath []string          `json:"criticalPath"`
	Problems     []ProblemDocument `json:"problems"`
}

// TierDocument is one tier of a GraphDocument.
type TierDocument struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Path      string   `json:"path"`
	File      string   `json:"file,omitempty"`
	Wave      int      `json:"wave"`
	Gate      bool     `json:"gate"`
	Leaf      bool     `json:"leaf"`
	Suspend   bool     `json:"suspend"`
	DependsOn []string `json:"dependsOn"`
	Parent    string   `json:"parent,omitempty"`
	Source    string   `json:"source"`
	Opaque    string   `json:"opaque,omitempty"`
	// HelmReleases are listed if they were asked for.
	HelmReleases []ReleaseDocument `json:"helmReleases,omitempty"`
}

// ReleaseDocument is one HelmRelease inside a tier.
type ReleaseDocument struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	DependsOn []string `json:"dependsOn"`
	Suspend   bool     `json:"suspend"`
	File      string   `json:"file,omitempty"`
}

// EdgeDocument is one edge of a GraphDocument: From needs To.
type EdgeDocument struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind"`
	// ReadyExpr is the CEL expression that decides instead of Flux's readiness, if there is one.
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// ProblemDocument is one problem of a GraphDocument.
type ProblemDocument struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Tier     string `json:"tier,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Message  string `json:"message"`
}

// NewGraphDocument converts a graph, keeping its order. Lists are never null.
func NewGraphDocument(g *tiers.Graph) GraphDocument {
	d := GraphDocument{
		Tiers:        make([]TierDocument, 0, len(g.Tiers)),
		Edges:        make([]EdgeDocument, 0, len(g.Edges)),
		CriticalPath: keyStrings(g.CriticalPath),
		Problems:     make([]ProblemDocument, 0, len(g.Problems)),
	}
	for _, t := range g.Tiers {
		d.Tiers = append(d.Tiers, newTierDocument(t))
	}
	exprs := readyExprs(g)
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, EdgeDocument{From: e.From.String(), To: e.To.String(), Kind: string(e.Kind), ReadyExpr: exprs[e]})
	}
	for _, p := range g.Problems {
		d.Problems = append(d.Problems, newProblemDocument(p))
	}
	return d
}

// readyExprs finds the expression of every edge that has one.
func readyExprs(g *tiers.Graph) map[tiers.Edge]string {
	byPair := map[[2]tiers.Key]string{}
	for _, t := range g.Tiers {
		for i, ref := range t.Kustomization.Spec.DependsOn {
			if ref.ReadyExpr != "" && i < len(t.DependsOn) {
				byPair[[2]tiers.Key{t.Key, t.DependsOn[i]}] = ref.ReadyExpr
			}
		}
	}
	out := map[tiers.Edge]string{}
	for _, e := range g.Edges {
		if e.Kind == tiers.DependsOn {
			out[e] = byPair[[2]tiers.Key{e.From, e.To}]
		}
	}
	return out
}

func newTierDocument(t *tiers.Tier) TierDocument {
	d := TierDocument{
		Name: t.Name, Namespace: t.Namespace, Path: t.Kustomization.Spec.Path, File: t.File,
		Wave: t.Wave, Gate: t.Gate, Leaf: t.Leaf, Suspend: t.Suspend,
		DependsOn: keyStrings(t.DependsOn), Source: t.Source, Opaque: t.Opaque,
	}
	if t.Parent != nil {
		d.Parent = t.Parent.String()
	}
	for _, h := range t.HelmReleases {
		d.HelmReleases = append(d.HelmReleases, ReleaseDocument{
			Name: h.Name, Namespace: h.Namespace, DependsOn: keyStrings(h.DependsOn), Suspend: h.Suspend, File: h.File,
		})
	}
	return d
}

func newProblemDocument(p tiers.Problem) ProblemDocument {
	d := ProblemDocument{Rule: p.Rule, Severity: string(p.Severity), File: p.File, Line: p.Line, Message: p.Message}
	if p.Tier != (tiers.Key{}) {
		d.Tier = p.Tier.String()
	}
	return d
}

func keyStrings(keys []tiers.Key) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}
