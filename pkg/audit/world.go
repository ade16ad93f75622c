package audit

import (
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// ref identifies an object on one cluster.
type ref struct {
	cluster         string // empty for the cluster Flux runs on: see clusterOf
	group, kind     string
	namespace, name string
}

func (r ref) String() string {
	if r.namespace != "" {
		return r.kind + "/" + r.namespace + "/" + r.name
	}
	return r.kind + "/" + r.name
}

// item is one object of one tier, with what the replay asks of it worked out once.
type item struct {
	*render.Object
	tier  int
	ref   ref
	gk    schema.GroupKind
	stage flux.ApplyStage
	// hard are the uses without which the object cannot become healthy, once asked for.
	hard      []use
	hardKnown bool
}

// hardUses lists what the object needs of others to become healthy.
func (it *item) hardUses() []use {
	if !it.hardKnown {
		it.hardKnown = true
		for _, u := range usesOf(it) {
			if u.need == hard {
				it.hard = append(it.hard, u)
			}
		}
	}
	return it.hard
}

// release is a HelmRelease of some tier.
type release struct {
	*item
	spec helmv2.HelmRelease
}

// world is the graph, indexed for the replay and the rules.
type world struct {
	graph     *tiers.Graph
	providers []crds.Provider
	before    *tiers.Before
	tiers     []*tiers.Tier
	index     map[tiers.Key]int
	// items are the objects of each tier that Flux does not skip, in stage order.
	items [][]*item
	// skipped are the objects that Flux does not apply, and waits for all the same: ApplyAllStaged in
	// fluxcd/pkg's ssa/manager_apply.go ends the first two stages when all their objects are there.
	skipped []*item
	// byRef lists the manifests of an object, in tier order; made those of which a controller makes it.
	byRef, made map[ref][]*item
	releases    map[ref]*release
	// namespaces lists who makes a namespace: Namespace objects and createNamespace releases.
	namespaces map[ref][]*item
	// users lists the tiers that hold objects of a kind, inhabitants those with objects in a namespace.
	users, inhabitants map[ref][]int
	children           [][]int
	// readers lists the tiers whose pass reads an object.
	readers map[ref][]int
	// sources lists the tiers that apply the source of a tier.
	sources [][]int
	// given are the Secrets of the sources that roots read.
	given map[ref]bool
	// supplies by cluster and kind.
	supplies  map[ref][]supply
	scopes    scopes
	opaque    bool // some tier's objects are not known
	installer *unstructured.Unstructured
	// noCrossNamespace says that the controllers run with --no-cross-namespace-refs, as git has it.
	noCrossNamespace bool
	config           *Config
	lines            func(render.Object) int
	steps            []Step
	// injected says that an admission webhook adds to Kustomizations, variables for one.
	injected bool
	// expressions holds, by tier, why one of its expressions does not compile.
	expressions []error
	// healthFaults holds those that say nothing of the objects of a kind, once asked for.
	healthFaults map[kindOfTier]error
}

func newWorld(g *tiers.Graph, o Options) *world {
	w := &world{
		graph: g, providers: o.Providers, before: tiers.NewBefore(g), tiers: g.Tiers, index: make(map[tiers.Key]int, len(g.Tiers)),
		items: make([][]*item, len(g.Tiers)), byRef: map[ref][]*item{}, made: map[ref][]*item{}, releases: map[ref]*release{},
		namespaces: map[ref][]*item{}, children: make([][]int, len(g.Tiers)), sources: make([][]int, len(g.Tiers)),
		users: map[ref][]int{}, inhabitants: map[ref][]int{}, readers: map[ref][]int{}, given: map[ref]bool{}, supplies: map[ref][]supply{}, healthFaults: map[kindOfTier]error{}, scopes: scopesOf(g), config: o.Config, lines: o.Lines, steps: o.Steps,
	}
	for i, t := range g.Tiers {
		w.index[t.Key] = i
	}
	for i, t := range g.Tiers {
		w.opaque = w.opaque || t.Opaque != ""
		if t.Parent != nil {
			if p, ok := w.index[*t.Parent]; ok {
				w.children[p] = append(w.children[p], i)
			}
		}
		w.addItems(i, t)
		for _, in := range inputsOf(t) {
			addOnce(w.readers, in.ref, i)
		}
	}
	for _, t := range g.Tiers {
		w.expressions = append(w.expressions, flux.CheckExpressions(t.Kustomization))
	}
	for _, e := range g.Edges {
		from, ok := w.index[e.From]
		to, ok2 := w.index[e.To]
		if e.Kind == tiers.Source && ok && ok2 {
			w.sources[from] = append(w.sources[from], to)
		}
	}
	w.findGiven()
	w.installer = findInstaller(g)
	w.addSupplies(o.Providers)
	return w
}

func (w *world) addItems(i int, t *tiers.Tier) {
	cluster := clusterOf(t)
	for j := range t.Objects {
		o := &t.Objects[j]
		gvk := o.GroupVersionKind()
		it := &item{
			Object: o, tier: i, gk: gvk.GroupKind(), stage: flux.Stage(o.Unstructured, nil),
			ref: w.scopes.ref(cluster, o.Unstructured),
		}
		if flux.Skipped(o.Unstructured, nil) {
			if it.stage <= flux.StageClasses && !it.Unreadable() {
				w.skipped = append(w.skipped, it)
			}
			continue
		}
		w.items[i] = append(w.items[i], it)
		if it.Unreadable() {
			continue
		}
		w.byRef[it.ref] = append(w.byRef[it.ref], it)
		for _, what := range madeBy(it) {
			w.made[what] = append(w.made[what], it)
		}
		addOnce(w.users, kindRef(cluster, it.gk), i)
		if ns := w.scopes.namespaceOf(it); ns != "" {
			addOnce(w.inhabitants, namespaceRef(cluster, ns), i)
		}
		switch {
		case it.gk == (schema.GroupKind{Kind: "Namespace"}):
			w.addNamespace(cluster, it.GetName(), it)
		case isRelease(it.gk):
			w.addRelease(it)
		case forbidsCrossNamespace(it):
			w.noCrossNamespace = true
		}
		if injectsVariables(it) {
			w.injected = true
		}
	}
	slices.SortStableFunc(w.items[i], func(a, b *item) int { return int(a.stage) - int(b.stage) })
}

func (w *world) addRelease(it *item) {
	r := &release{item: it}
	if err := fromUnstructured(it.Object.Object, &r.spec); err != nil {
		return // an API version of old, or a manifest that the API server will refuse
	}
	w.releases[it.ref] = r
	if install := r.spec.Spec.Install; install != nil && install.CreateNamespace && !r.spec.Spec.Suspend {
		w.addNamespace(r.cluster(), r.namespace(), it)
	}
}

func (w *world) addNamespace(cluster, name string, it *item) {
	key := namespaceRef(cluster, name)
	w.namespaces[key] = append(w.namespaces[key], it)
}

// clusterOf names the cluster on which a tier's objects live: the one Flux runs on, or the one its
// kubeConfig leads to.
func clusterOf(t *tiers.Tier) string {
	k := t.Kustomization.Spec.KubeConfig
	switch {
	case k == nil:
		return ""
	case k.SecretRef != nil:
		return "Secret/" + t.Namespace + "/" + k.SecretRef.Name
	case k.ConfigMapRef != nil:
		return "ConfigMap/" + t.Namespace + "/" + k.ConfigMapRef.Name
	}
	return "remote"
}

// cluster names the cluster on which the release's chart is installed.
func (r *release) cluster() string {
	switch k := r.spec.Spec.KubeConfig; {
	case k == nil:
		return r.ref.cluster
	case k.SecretRef != nil:
		return "Secret/" + r.GetNamespace() + "/" + k.SecretRef.Name
	case k.ConfigMapRef != nil:
		return "ConfigMap/" + r.GetNamespace() + "/" + k.ConfigMapRef.Name
	}
	return "remote"
}

// namespace is the one that the chart's objects go to.
func (r *release) namespace() string {
	if ns := r.spec.Spec.TargetNamespace; ns != "" {
		return ns
	}
	return r.GetNamespace()
}

// forbidsCrossNamespace reports whether an object says that kustomize-controller runs with
// --no-cross-namespace-refs: its Deployment, or an instance with multitenant set.
func forbidsCrossNamespace(it *item) bool {
	switch {
	case it.gk.Kind == "FluxInstance":
		on, _, _ := unstructured.NestedBool(it.Object.Object, "spec", "cluster", "multitenant")
		return on
	case it.gk.Kind == "Deployment" && it.GetName() == "kustomize-controller":
		for _, c := range list(it.Object.Object, "spec", "template", "spec", "containers") {
			args, _, _ := unstructured.NestedStringSlice(c, "args")
			if slices.Contains(args, "--no-cross-namespace-refs=true") || slices.Contains(args, "--no-cross-namespace-refs") {
				return true
			}
		}
	}
	return false
}

// injectsVariables reports whether an object is, or installs, an admission webhook that changes
// Kustomizations on their way in: git does not show them as they will be.
func injectsVariables(it *item) bool {
	switch it.gk.Kind {
	case "MutatingWebhookConfiguration":
		for _, hook := range list(it.Object.Object, "webhooks") {
			for _, rule := range list(hook, "rules") {
				groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
				if slices.Contains(groups, kustomizev1.GroupVersion.Group) {
					return true
				}
			}
		}
	case helmv2.HelmReleaseKind, "OCIRepository":
		return it.GetName() == "kustomize-mutating-webhook"
	}
	return false
}

func namespaceRef(cluster, name string) ref {
	return ref{cluster: cluster, kind: "Namespace", name: name}
}

func crdKind(u *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

func isKustomization(gk schema.GroupKind) bool {
	return gk.Group == kustomizev1.GroupVersion.Group && gk.Kind == kustomizev1.KustomizationKind
}

func isRelease(gk schema.GroupKind) bool {
	return gk.Group == helmv2.GroupVersion.Group && gk.Kind == helmv2.HelmReleaseKind
}

// addOnce appends i unless it was the last to be appended.
func addOnce(m map[ref][]int, key ref, i int) {
	if list := m[key]; len(list) == 0 || list[len(list)-1] != i {
		m[key] = append(list, i)
	}
}
