package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Location is a place in the repository.
type Location struct {
	File string
	Line int // 1-based; 0 when unknown
	// Note says what is to be seen there, such as "the trigger".
	Note string
}

// Finding is one thing that keeps the cluster from coming up, or makes it slower or less sure.
type Finding struct {
	// Rule is the stable id of the rule: see [Rules].
	Rule     string
	Severity tiers.Severity
	// Tier is the tier at fault; zero when a file alone is.
	Tier tiers.Key
	// Object is the first object concerned, as Kind/namespace/name; empty when the tier itself is.
	Object string
	// Objects lists all the objects concerned, Object first.
	Objects []string
	// At is where the fault is written, Related what else one has to look at.
	At       Location
	Related  []Location
	Evidence crds.Evidence
	// Reference is where the catalogue's evidence can be checked, and how far it was; empty for other
	// evidence.
	Reference string
	// Message is one sentence: what is wrong. Cause is why Flux behaves so, a sentence each.
	Message string
	Cause   []string
	// Fix is the smallest change to git that mends it; FixYAML, if any, is a manifest to go with it.
	Fix     string
	FixYAML string
	// Blocked lists the tiers that can never come up because of this, sorted; BlockedDirectly says
	// how many of them name the tier at fault in their dependsOn.
	Blocked         []tiers.Key
	BlockedDirectly int
	// Accepted is set when the configuration accepts the finding.
	Accepted *Acceptance
	// edges are the dependencies that Fix adds.
	edges []advisedEdge
	// also lists other tiers at fault in the same way.
	also []tiers.Key
	// Repeat counts the findings before this one that are the same but for what they say.
	Repeat int
}

// Fingerprint identifies the finding across runs and edits, and in its run: it depends on the rule,
// the tier and the objects, and not on lines, wording or the order of files. Findings that have all
// this in common are counted.
func (f Finding) Fingerprint() string {
	objects := slices.Clone(f.Objects)
	slices.Sort(objects)
	id := append([]string{f.Rule, f.Tier.String(), f.Object}, objects...)
	if len(f.Objects) == 0 && f.Tier == (tiers.Key{}) {
		id = append(id, f.At.File)
	}
	if f.Repeat > 0 {
		id = append(id, strconv.Itoa(f.Repeat))
	}
	sum := sha256.Sum256([]byte(strings.Join(id, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// countRepeats sets the Repeat of findings, in the order of what they say.
func countRepeats(all []Finding) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].Message, all[b].Message) })
	seen := map[string]int{}
	for _, i := range order {
		f := &all[i]
		f.Repeat = 0
		id := f.Fingerprint()
		f.Repeat = seen[id]
		seen[id]++
	}
}

// Kind says where the definition of one kind comes from.
type Kind struct {
	Group, Kind string
	// Provider is one of builtin, git, chart, runtime, platform, unknown.
	Provider string
	// Trigger is the object that makes an operator create a runtime kind; empty otherwise.
	Trigger string
	// Tier holds the provider; zero when no tier does.
	Tier     tiers.Key
	Evidence crds.Evidence
	// Hint says what is known about a kind whose provider is not.
	Hint string
	// UsedBy lists the tiers that hold objects of the kind.
	UsedBy []tiers.Key
}

// Result is what an audit found.
type Result struct {
	// Findings are sorted by severity (errors first), file, line, rule, tier.
	Findings []Finding
	// Accepted are the findings that the configuration accepts, in the same order.
	Accepted []Finding
	// Kinds lists every kind that the tiers use, sorted by group and kind.
	Kinds []Kind
	// Assumed lists what nothing in git makes and the replay took to be there before Flux, sorted.
	Assumed []Assumption
	// Unused lists entries of the configuration that matched nothing, or have expired.
	Unused []Unused
	// Tiers and Ready count the tiers of the graph and those that the replay brought up; Stuck lists
	// the others, suspended ones among them, in graph order.
	Tiers, Ready int
	Stuck        []tiers.Key
	// Unsure are those of Stuck of which git alone does not tell: they come up if what the findings
	// doubt is there after all.
	Unsure []tiers.Key
}

// Assumption is something that the replay took for granted.
type Assumption struct {
	// What is a kind ("kind group/Kind") or an object ("Namespace/x").
	What string
	// Tiers are those that need it, sorted.
	Tiers []tiers.Key
}

// Errors counts the findings of severity error.
func (r *Result) Errors() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == tiers.Error {
			n++
		}
	}
	return n
}

func rank(s tiers.Severity) int {
	return slices.Index([]tiers.Severity{tiers.Error, tiers.Warning, tiers.Info}, s)
}

func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank(a.Severity), rank(b.Severity)),
			cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tier.String(), b.Tier.String()), cmp.Compare(a.Object, b.Object),
		)
	})
}

// Options say what an audit knows beside the graph. The zero value is a cluster with nothing on it
// but Kubernetes and Flux, and every rule.
type Options struct {
	// Config is what the repository declares; nil for nothing.
	Config *Config
	// Providers say where the kinds come from (crds.Providers of the same graph). Kinds that are not
	// among them are unknown.
	Providers []crds.Provider
	// Steps are files that look like steps before Flux: see [FindSteps].
	Steps []Step
	// Lines tells on which line of its file an object is written, where the object itself does not say:
	// render.Source.Line of the tree that was loaded. It is asked only for objects that a finding
	// names; nil leaves lines out.
	Lines func(render.Object) int
	// Rules restricts the findings to these rules; empty means all.
	Rules []string
	// Severity leaves out findings that weigh less; empty means Info, that is, none.
	Severity tiers.Severity
	// Now is the time against which acceptances expire; zero means they do not.
	Now time.Time
}
