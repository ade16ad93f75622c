package wait

import (
	"context"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// now is the moment at which tests look at the cluster.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const (
	current = "main@sha1:2222222222222222222222222222222222222222"
	old     = "main@sha1:1111111111111111111111111111111111111111"
)

// cluster builds a graph and the snapshot that goes with it. All tiers read GitRepository
// flux-system/flux-system, which is at the revision current.
type cluster struct {
	graph    *tiers.Graph
	snapshot flux.Snapshot
}

func newCluster() *cluster {
	c := &cluster{graph: &tiers.Graph{Entry: "clusters/prod"}, snapshot: newSnapshot()}
	c.source("flux-system", current)
	return c
}

func key(name string) tiers.Key { return tiers.Key{Namespace: "flux-system", Name: name} }

func keys(names ...string) []tiers.Key {
	var keys []tiers.Key
	for _, n := range names {
		keys = append(keys, key(n))
	}
	return keys
}

func (c *cluster) source(name, revision string, change ...func(*flux.Source)) {
	s := &flux.Source{SourceRef: flux.SourceRef{Kind: "GitRepository", Namespace: "flux-system", Name: name}, Revision: revision, Generation: 1, ObservedGeneration: 1}
	for _, f := range change {
		f(s)
	}
	c.snapshot.Sources[s.SourceRef] = s
}

// tier adds a Kustomization to the graph and, changed by each of change, to the cluster.
func (c *cluster) tier(name string, dependsOn string, change ...func(*kustomizev1.Kustomization)) *tiers.Tier {
	k := &kustomizev1.Kustomization{}
	k.Namespace, k.Name, k.Generation = "flux-system", name, 1
	k.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	k.Spec.Interval = metav1.Duration{Duration: 10 * time.Minute}
	k.Spec.Path = "./" + name
	k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "flux-system"}
	t := &tiers.Tier{Key: key(name), Kustomization: k, Source: "GitRepository/flux-system/flux-system", File: "clusters/prod/" + name + ".yaml"}
	for dep := range strings.FieldsSeq(dependsOn) {
		k.Spec.DependsOn = append(k.Spec.DependsOn, kustomizev1.DependencyReference{Name: dep})
		t.DependsOn = append(t.DependsOn, key(dep))
		c.graph.Edges = append(c.graph.Edges, tiers.Edge{From: t.Key, To: key(dep), Kind: tiers.DependsOn})
	}
	live := k.DeepCopy()
	for _, f := range change {
		f(live)
	}
	t.Kustomization = live.DeepCopy()
	c.graph.Tiers = append(c.graph.Tiers, t)
	c.snapshot.Kustomizations[t.Key] = live
	return t
}

// absent takes a tier off the cluster, not out of the graph.
func (c *cluster) absent(names ...string) {
	for _, n := range names {
		delete(c.snapshot.Kustomizations, key(n))
	}
}

func (c *cluster) child(parent, name string) {
	for _, t := range c.graph.Tiers {
		if t.Name == name {
			p := key(parent)
			t.Parent = &p
		}
	}
}

func (c *cluster) release(name string, change func(*helmv2.HelmRelease)) {
	h := &helmv2.HelmRelease{}
	h.Namespace, h.Name = "apps", name
	change(h)
	c.snapshot.HelmReleases[flux.Key{Namespace: "apps", Name: name}] = h
}

func condition(kind string, status metav1.ConditionStatus, reason, message string, ago time.Duration) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Add(-ago)), ObservedGeneration: 1,
	}
}

func readyAt(revision string) func(*kustomizev1.Kustomization) {
	return func(k *kustomizev1.Kustomization) {
		k.Status.ObservedGeneration, k.Status.LastAppliedRevision = k.Generation, revision
		k.Status.Conditions = []metav1.Condition{condition(meta.ReadyCondition, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+revision, time.Hour)}
	}
}

func failed(reason, message string) func(*kustomizev1.Kustomization) {
	return func(k *kustomizev1.Kustomization) {
		k.Status.ObservedGeneration = -1
		k.Status.Conditions = []metav1.Condition{condition(meta.ReadyCondition, metav1.ConditionFalse, reason, message, time.Minute)}
		if reason == meta.InvalidCELExpressionReason || reason == "AccessDenied" {
			k.Status.Conditions = append(k.Status.Conditions, condition(meta.StalledCondition, metav1.ConditionTrue, reason, message, time.Minute))
		}
	}
}

func waitingFor(dep string) func(*kustomizev1.Kustomization) {
	return failed(meta.DependencyNotReadyReason, "dependency 'flux-system/"+dep+"' is not ready")
}

// running is a pass that has come as far as message says.
func running(message string, ago time.Duration) func(*kustomizev1.Kustomization) {
	return func(k *kustomizev1.Kustomization) {
		k.Status.ObservedGeneration = -1
		k.Status.Conditions = []metav1.Condition{
			condition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message, ago),
			condition(meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason, "Reconciliation in progress", ago),
		}
		if strings.HasPrefix(message, "Running health checks") {
			k.Status.Conditions = append(k.Status.Conditions, condition(meta.HealthyCondition, metav1.ConditionUnknown, meta.ProgressingReason, message, ago))
		}
	}
}

func gate(k *kustomizev1.Kustomization) { k.Spec.Wait = true }

func suspendedTier(k *kustomizev1.Kustomization) { k.Spec.Suspend = true }

func holding(ids ...string) func(*kustomizev1.Kustomization) {
	return func(k *kustomizev1.Kustomization) {
		k.Status.Inventory = &kustomizev1.ResourceInventory{}
		for _, id := range ids {
			k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: id, Version: "v1"})
		}
	}
}

func requested(ago time.Duration) func(*kustomizev1.Kustomization) {
	return func(k *kustomizev1.Kustomization) {
		k.Annotations = map[string]string{flux.RequestAnnotation: flux.Token(now.Add(-ago))}
	}
}

func (c *cluster) diagnose(evidence Evidence) []Diagnosis {
	return Diagnose(context.Background(), c.graph, c.snapshot, evidence, now)
}
