package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Tier is a Kustomization and how its passes go.
type Tier struct {
	Name      string
	DependsOn []string
	// Parent names the tier whose pass creates this one; empty for one that is there from the start.
	Parent string
	Wait   bool
	// Suspended is how the tier first stands; InGit says that git has it so, and that its parent
	// puts it back.
	Suspended, InGit bool
	Interval, Retry  time.Duration
	Timeout          time.Duration
	// Build and Apply are what a pass takes; Health is how long the objects take to be healthy
	// after they are first applied, and matters to a tier that waits.
	Build, Apply, Health time.Duration
	// Needs are kinds that the last stage needs, Provides are CRDs of the first stage.
	Needs, Provides []string
	// Registers are kinds that something registers some time after the tier was first applied.
	Registers map[string]time.Duration
	// Failures are how the first passes end that come as far as the apply.
	Failures []Failure
	// Broken is how every such pass ends.
	Broken *Failure
	// Sick is how passes end that come to the build before SickFor has gone by since the start.
	Sick    *Failure
	SickFor time.Duration
}

// Failure is a Ready=False.
type Failure struct{ Reason, Message string }

// Cluster is the API server, the source and the controller.
type Cluster struct {
	Clock
	// Workers is --concurrent; 0 is 4.
	Workers int
	// OnChange is called after every change of an object.
	OnChange func()
	// Passes counts the passes that came as far as the build, by tier.
	Passes map[flux.Key]int

	tiers    map[flux.Key]*tierState
	order    []flux.Key
	live     flux.Snapshot
	kinds    map[string]bool
	rules    flux.Rules
	queue    []flux.Key
	queued   map[flux.Key]bool
	running  map[flux.Key]bool
	dirty    map[flux.Key]bool
	delayed  map[flux.Key]time.Time
	restarts int
}

type tierState struct {
	Tier
	applied time.Time // first applied
	failed  int
	sick    int // passes to fail next, whatever Failures say
}

// Namespace is where everything in a model lives.
const Namespace = "flux-system"

// Source is the one source of a model.
func Source() flux.SourceRef {
	return flux.SourceRef{Kind: "GitRepository", Namespace: Namespace, Name: Namespace}
}

// Key returns a tier's key.
func Key(name string) flux.Key { return flux.Key{Namespace: Namespace, Name: name} }

// New returns a cluster whose source has an artifact and whose controller is about to start. kinds
// are those that are known from the start.
func New(list []Tier, kinds ...string) *Cluster {
	c := &Cluster{
		Clock:    Clock{now: Start()},
		Workers:  4,
		OnChange: func() {},
		Passes:   map[flux.Key]int{},
		tiers:    map[flux.Key]*tierState{},
		kinds:    map[string]bool{},
		queued:   map[flux.Key]bool{},
		running:  map[flux.Key]bool{},
		dirty:    map[flux.Key]bool{},
		delayed:  map[flux.Key]time.Time{},
		live: flux.Snapshot{
			Kustomizations: map[flux.Key]*kustomizev1.Kustomization{},
			Sources:        map[flux.SourceRef]*flux.Source{},
			HelmReleases:   map[flux.Key]*helmv2.HelmRelease{},
		},
	}
	for _, kind := range kinds {
		c.kinds[kind] = true
	}
	c.live.Sources[Source()] = source(revision(1))
	for _, t := range list {
		key := Key(t.Name)
		c.tiers[key], c.order = &tierState{Tier: t}, append(c.order, key)
		if t.Parent == "" {
			c.create(key)
		}
	}
	return c
}

func source(rev string) *flux.Source {
	return &flux.Source{
		SourceRef: Source(), Generation: 1, ObservedGeneration: 1, Revision: rev,
		Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, ObservedGeneration: 1}},
	}
}

func revision(n int) string { return fmt.Sprintf("main@sha1:%040d", n) }

// Snapshot returns the live objects. They are shared, and never change.
func (c *Cluster) Snapshot() flux.Snapshot {
	return flux.Snapshot{
		Kustomizations: maps.Clone(c.live.Kustomizations),
		Sources:        maps.Clone(c.live.Sources),
		HelmReleases:   maps.Clone(c.live.HelmReleases),
	}
}

// Graph returns the graph of the model's tiers, as git has them.
func (c *Cluster) Graph() *tiers.Graph {
	list := make([]Tier, 0, len(c.order))
	for _, key := range c.order {
		list = append(list, c.tiers[key].Tier)
	}
	return Graph(list, Namespace)
}

// Graph returns the graph of tiers that live in a namespace, as git has them: in the order of the
// list, which must be a valid one but for cycles, with waves.
func Graph(list []Tier, namespace string) *tiers.Graph {
	g := &tiers.Graph{}
	waves := map[string]int{}
	for _, t := range list {
		waves[t.Name] = 0
	}
	key := func(name string) flux.Key { return flux.Key{Namespace: namespace, Name: name} }
	for _, t := range list {
		k := manifest(t, namespace)
		k.Spec.Suspend = t.InGit && t.Suspended
		tier := &tiers.Tier{Key: key(t.Name), Kustomization: k, Suspend: k.Spec.Suspend, Gate: t.Wait}
		after := func(name string, kind tiers.EdgeKind) {
			if wave, known := waves[name]; known {
				g.Edges = append(g.Edges, tiers.Edge{From: tier.Key, To: key(name), Kind: kind})
				tier.Wave = max(tier.Wave, wave+1)
			}
		}
		for _, dep := range t.DependsOn {
			tier.DependsOn = append(tier.DependsOn, key(dep))
			after(dep, tiers.DependsOn)
		}
		if t.Parent != "" {
			parent := key(t.Parent)
			tier.Parent = &parent
			after(t.Parent, tiers.Parent)
		}
		waves[t.Name] = tier.Wave
		g.Tiers = append(g.Tiers, tier)
	}
	return g
}

func manifest(t Tier, namespace string) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: t.Name},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: t.Interval}, Wait: t.Wait, Suspend: t.Suspended,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: Namespace},
		},
	}
	if t.Retry > 0 {
		k.Spec.RetryInterval = &metav1.Duration{Duration: t.Retry}
	}
	if t.Timeout > 0 {
		k.Spec.Timeout = &metav1.Duration{Duration: t.Timeout}
	}
	for _, dep := range t.DependsOn {
		k.Spec.DependsOn = append(k.Spec.DependsOn, meta.DependencyReference{Name: dep})
	}
	return k
}

func (c *Cluster) create(key flux.Key) {
	k := manifest(c.tiers[key].Tier, Namespace)
	k.Generation, k.Status.ObservedGeneration = 1, -1
	c.own(k, c.tiers[key])
	c.live.Kustomizations[key] = k
	c.changed(key, true)
}

// own records that git has spec.suspend, where it does.
func (c *Cluster) own(k *kustomizev1.Kustomization, t *tierState) {
	if t.InGit {
		k.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kustomize-controller", Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:suspend":{}}}`)},
		}}
	}
}

// update changes a live object, on a copy.
func (c *Cluster) update(key flux.Key, wakes bool, change func(*kustomizev1.Kustomization)) {
	k := *c.live.Kustomizations[key]
	k.Annotations = maps.Clone(k.Annotations)
	k.Status.Conditions = slices.Clone(k.Status.Conditions)
	change(&k)
	c.live.Kustomizations[key] = &k
	c.changed(key, wakes)
}

// latency is what an event takes from the API server to the controller's queue.
const latency = 4 * time.Millisecond

func (c *Cluster) changed(key flux.Key, wakes bool) {
	if wakes {
		c.After(latency, func() { c.add(key) })
	}
	c.OnChange()
}

// Patch applies a merge patch to a tier, as the API server would: a change of the spec is a new
// generation. It reports whether there was anything to change.
func (c *Cluster) Patch(key flux.Key, data []byte) (bool, error) {
	var patch struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]*bool `json:"spec"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return false, err
	}
	k := c.live.Kustomizations[key]
	if k == nil {
		return false, fmt.Errorf("%s not found", key)
	}
	suspend, respec := patch.Spec["suspend"]
	want := suspend != nil && *suspend
	respec = respec && want != k.Spec.Suspend
	token, asked := patch.Metadata.Annotations[flux.RequestAnnotation]
	asked = asked && k.Annotations[flux.RequestAnnotation] != token
	if !respec && !asked {
		return false, nil
	}
	c.update(key, true, func(k *kustomizev1.Kustomization) {
		if asked {
			if k.Annotations == nil {
				k.Annotations = map[string]string{}
			}
			k.Annotations[flux.RequestAnnotation] = token
		}
		if respec {
			k.Spec.Suspend = want
			k.Generation++
		}
	})
	return true, nil
}

// Commit gives the source a new revision: all its Kustomizations that have not attempted it are
// woken, unless a cycle among them makes the controller's sort fail (requestsForRevisionChangeOf in
// kustomize-controller's internal/controller/kustomization_indexers.go).
func (c *Cluster) Commit(n int) {
	c.live.Sources[Source()] = source(revision(n))
	c.OnChange()
	if c.cyclic() {
		return
	}
	for _, key := range c.order {
		k := c.live.Kustomizations[key]
		if k == nil || k.Status.LastAttemptedRevision == revision(n) && (isTrue(k, meta.ReadyCondition) || isTrue(k, meta.ReconcilingCondition)) {
			continue
		}
		c.After(latency, func() { c.add(key) })
	}
}

// Sicken makes the next passes of a tier fail, and starts one.
func (c *Cluster) Sicken(key flux.Key, passes int) {
	c.tiers[key].sick += passes
	c.After(latency, func() { c.add(key) })
}

// Register makes a kind known.
func (c *Cluster) Register(kind string) { c.kinds[kind] = true }

// Known reports whether a kind is known.
func (c *Cluster) Known(kind string) bool { return c.kinds[kind] }

// Restart kills the controller in whatever it does; it comes back after a while and looks at
// everything.
func (c *Cluster) Restart(away time.Duration) {
	c.restarts++
	c.queue = nil
	for _, m := range []map[flux.Key]bool{c.queued, c.running, c.dirty} {
		clear(m)
	}
	clear(c.delayed)
	at := c.restarts
	c.After(away, func() {
		for _, key := range c.order {
			if c.restarts == at && c.live.Kustomizations[key] != nil {
				c.add(key)
			}
		}
	})
}

// Tier returns how a tier behaves.
func (c *Cluster) Tier(key flux.Key) Tier { return c.tiers[key].Tier }

func (c *Cluster) cyclic() bool {
	state := map[flux.Key]int{}
	var visit func(flux.Key) bool
	visit = func(key flux.Key) bool {
		if state[key] != 0 || c.tiers[key] == nil {
			return state[key] == 1
		}
		state[key] = 1
		if slices.ContainsFunc(c.tiers[key].DependsOn, func(dep string) bool { return visit(Key(dep)) }) {
			return true
		}
		state[key] = 2
		return false
	}
	return slices.ContainsFunc(c.order, visit)
}
