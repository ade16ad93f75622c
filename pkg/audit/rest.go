package audit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/tiers"
)

// leaves finds leaves whose health holds up more than themselves: their parent waits for them, and
// other tiers wait for the parent.
func (w *world) leaves() []Finding {
	var out []Finding
	for i, t := range w.tiers {
		if !t.Gate || !t.Leaf || t.Parent == nil {
			continue
		}
		p, ok := w.index[*t.Parent]
		if !ok {
			continue
		}
		parent := w.tiers[p]
		if !parent.Kustomization.Spec.Wait || !w.awaited(parent.Key) {
			continue
		}
		f := w.at(leafGates, i, nil)
		f.Message = fmt.Sprintf("nothing depends on %s, and yet all that waits for %s waits for its health", t.Key, parent.Key)
		f.Cause = []string{fmt.Sprintf("%s is Ready only once its children are, and %s only once all its objects are healthy", parent.Key, t.Key)}
		f.Fix = fmt.Sprintf("set wait: false on %s, unless the others really need it", t.Key)
		out = append(out, f)
	}
	return out
}

// awaited reports whether a tier outside a parent's own children depends on it.
func (w *world) awaited(k tiers.Key) bool {
	for _, t := range w.tiers {
		if slices.Contains(t.DependsOn, k) {
			return true
		}
	}
	return false
}

// tokens finds ${NAMES} that would reach the cluster as they stand, in tiers whose build
// substitutes nothing. A name that other tiers substitute was meant to be substituted; of other
// names one cannot be sure: shell scripts and dashboards are full of them.
func (w *world) tokens() []Finding {
	names := w.variables()
	var out []Finding
	for i, t := range w.tiers {
		if t.Synthetic || w.substitutes(t) {
			continue
		}
		groups := map[string][]*item{}
		for _, it := range w.items[i] {
			if substituteDisabled(it) {
				continue
			}
			for name, sure := range tokensOf(it.Object.Object, names) {
				if sure {
					groups[name] = append(groups[name], it)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			f := w.at(literalToken, i, groups[name])
			f.Message = fmt.Sprintf("${%s} would reach the cluster as it stands in %s: %s substitutes nothing", name, words(f.Objects), t.Key)
			f.Cause = []string{"Flux substitutes only where spec.postBuild is set and defines at least one variable"}
			f.Fix = fmt.Sprintf("add postBuild.substituteFrom to %s", t.Key)
			if w.injected {
				f.Severity = tiers.Info
				f.Cause = append(f.Cause, "not certain: an admission webhook changes Kustomizations, and may add the substitution")
			}
			if from := names[name]; from != "" {
				f.Message += fmt.Sprintf(", while %s defines the variable", from)
				f.Fix += " as " + strings.TrimPrefix(from, "postBuild of ") + " has it"
			} else {
				f.Severity = tiers.Info
				f.Fix += ", or write $${" + name + "} in tiers that substitute if it is meant literally"
			}
			out = append(out, f)
		}
	}
	return out
}

// variables maps the names that some tier substitutes to where they are defined.
func (w *world) variables() map[string]string {
	out := map[string]string{}
	for _, t := range w.tiers {
		p := t.Kustomization.Spec.PostBuild
		if p == nil {
			continue
		}
		for name := range p.Substitute {
			if out[name] == "" {
				out[name] = t.Key.String()
			}
		}
		for _, s := range p.SubstituteFrom {
			for _, it := range w.byRef[ref{kind: s.Kind, namespace: t.Namespace, name: s.Name}] {
				for _, field := range []string{"data", "stringData"} {
					data, _, _ := unstructured.NestedMap(it.Object.Object, field)
					for name := range data {
						if out[name] == "" {
							out[name] = it.ID()
						}
					}
				}
			}
		}
	}
	return out
}

// substitutes reports whether a tier's build replaces variables. What a substituteFrom holds that
// git does not show is taken to define some.
func (w *world) substitutes(t *tiers.Tier) bool {
	p := t.Kustomization.Spec.PostBuild
	return p != nil && (len(p.Substitute) > 0 || len(p.SubstituteFrom) > 0 || p.SubstituteStrategy == kustomizev1.SubstituteStrategyAlways)
}

func substituteDisabled(it *item) bool {
	return ssautil.AnyInMetadata(it.Unstructured, map[string]string{kustomizev1.GroupVersion.Group + "/substitute": kustomizev1.DisabledValue})
}

// tokensOf finds the variables in an object's strings. It reports those in known always, and other
// names only where a shell or a template engine can hardly be meant.
func tokensOf(object map[string]any, known map[string]string) map[string]bool {
	pattern := regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	out := map[string]bool{}
	var walk func(v any, plain bool)
	walk = func(v any, plain bool) {
		switch v := v.(type) {
		case map[string]any:
			for key, child := range v {
				walk(child, plain && !scriptField(key))
			}
		case []any:
			for _, child := range v {
				walk(child, plain)
			}
		case string:
			if !strings.Contains(v, "${") {
				return
			}
			for _, m := range pattern.FindAllStringSubmatch(v, -1) {
				if strings.HasPrefix(m[0], "$$") {
					continue
				}
				_, ok := known[m[1]]
				if ok || plain && !strings.Contains(v, "\n") && m[1] == strings.ToUpper(m[1]) {
					out[m[1]] = true
				}
			}
		}
	}
	walk(object, true)
	return out
}

func scriptField(key string) bool {
	return slices.Contains([]string{"command", "args", "env", "data", "stringData", "binaryData", "values", "script", "annotations", "description", "config", "template"}, key)
}

// versions finds objects written in a version that nothing serves, where everything that brings the
// kind is known to the version.
func (w *world) versions() []Finding {
	var out []Finding
	for _, p := range w.providers {
		unserved := p.Unserved()
		if len(unserved) == 0 || w.config.Serves(p.GroupKind) {
			continue
		}
		origin := p.Primary()
		for i := range w.tiers {
			for _, it := range w.items[i] {
				version := it.GroupVersionKind().Version
				if it.gk != p.GroupKind || it.ref.cluster != "" || !slices.Contains(unserved, version) {
					continue
				}
				f := w.at(versionNotServed, i, []*item{it})
				f.Evidence = origin.Evidence
				f.Message = fmt.Sprintf("%s is written in version %s, and %s serves %s", it.ID(), version, servedBy(origin), words(origin.Versions))
				f.Cause = []string{"to the API server this is an unknown kind: the dry-run fails, and with it the pass"}
				f.Fix = "write it in a version that is served, or update what defines the kind"
				if origin.Class == crds.FromBuiltin {
					f.Severity = tiers.Warning // which releases of Kubernetes serve it depends on the cluster
				}
				if origin.Object.Unstructured != nil {
					f.Related = append(f.Related, w.locationOf(&item{Object: &origin.Object}, origin.Object.ID()))
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// lacking finds kinds that nothing in git brings although it is known what would: a chart that no
// release installs, an operator whose trigger nobody writes. One finding a reason.
func (w *world) lacking() []Finding {
	type key struct{ hint, step string }
	groups := map[key][]*item{}
	var order []key
	for _, p := range w.providers {
		if p.Hint == "" || p.Group == "fluxcd.controlplane.io" || p.Primary().Class != crds.FromUnknown || w.config.Serves(p.GroupKind) {
			continue
		}
		for i := range w.tiers {
			for _, it := range w.items[i] {
				if it.gk != p.GroupKind || it.ref.cluster != "" {
					continue
				}
				k := key{p.Hint, w.stepBefore(it)}
				if groups[k] == nil {
					order = append(order, k)
				}
				groups[k] = append(groups[k], it)
			}
		}
	}
	var out []Finding
	for _, k := range order {
		out = append(out, w.lack(k.hint, k.step, groups[k]))
	}
	return out
}

// lack words objects of kinds that nothing brings. The finding weighs less where a step before Flux may
// do so, or what could not be read.
func (w *world) lack(hint, step string, items []*item) Finding {
	f := w.at(providerMissing, items[0].tier, items)
	f.Evidence = crds.EvidenceCatalogue
	unknown := w.unknownTiers()
	nothing := "nothing in git"
	if len(unknown) > 0 {
		nothing = "nothing that is known of git"
	}
	f.Message = fmt.Sprintf("%s brings %s, which %s %s of: %s", nothing, kindWords(items), words(f.Objects), verb(len(items), "is", "are"), hint)
	f.Cause = []string{"if nothing outside git brings it either, every pass with such an object fails"}
	f.Fix = "bring it with a tier of its own, or declare in " + ConfigFile + " what is there before Flux"
	f.Related = nil // one place is enough for what is absent
	switch {
	case step != "":
		f.Severity = tiers.Info
		f.Cause = append(f.Cause, "not certain: "+step)
	case len(unknown) > 0:
		f.Severity = tiers.Info
		f.Cause = append(f.Cause, "not certain: the objects are not all known of "+words(unknown))
	}
	return f
}

// unknownTiers lists the tiers of this cluster whose objects are not all known, each with the reason.
func (w *world) unknownTiers() []string {
	var out []string
	for _, t := range w.tiers {
		if t.Opaque != "" && clusterOf(t) == "" {
			out = append(out, fmt.Sprintf("%s (%s)", t.Key, shorten(t.Opaque)))
		}
	}
	return out
}

func servedBy(o crds.Origin) string {
	switch o.Class {
	case crds.FromBuiltin:
		return "Kubernetes"
	case crds.FromGit:
		return "the CRD in git"
	}
	return o.Name
}
