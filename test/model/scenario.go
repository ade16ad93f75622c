package model

import "time"

// Scenario is a situation in which the model and the real controllers must end alike. The tests of
// pkg/resume play it on the model, those of test/e2e on a control plane.
type Scenario struct {
	Name string
	// Tiers are those below the root: one without a Parent is applied by the root tier, which is
	// called like the namespace of the model and waits for nothing.
	Tiers []Tier
	// Except leaves tiers out of the run.
	Except []string
	// Suspended says that the tiers stand suspended, after they have been up at an older revision.
	Suspended bool
	// Commit, Restart and Kill are when a new revision arrives, the controller is killed and started
	// again, and the run is killed and started again; 0: never.
	Commit, Restart, Kill time.Duration
	// TierTimeout bounds each tier.
	TierTimeout time.Duration
	Want        Want
}

// Want is how a scenario ends.
type Want struct {
	// Pending are the selected tiers that are not ready, and Causes the first causes among them,
	// each with its name for it.
	Pending []string
	Causes  map[string]string
	// Writes bounds the writes to each tier.
	Writes int
	// Untouched are tiers that get none.
	Untouched []string
}

// All returns the tiers with the root before them.
func (s Scenario) All() []Tier {
	all := []Tier{{Name: Namespace, Interval: 10 * time.Minute, Build: 50 * time.Millisecond, Apply: 100 * time.Millisecond}}
	for _, t := range s.Tiers {
		if t.Parent == "" {
			t.Parent = Namespace
		}
		t.Interval, t.Build = time.Hour, 60*time.Millisecond
		t.Apply = max(t.Apply, 100*time.Millisecond)
		all = append(all, t)
	}
	return all
}

// Scenarios are the situations, the plain ones first.
func Scenarios() []Scenario {
	substitute := &Failure{"BuildFailed", "substitute from 'ConfigMap/late' error: configmaps \"late\" not found"}
	build := &Failure{"BuildFailed", "kustomize build failed: accumulating resources"}
	namespace := &Failure{"ReconciliationFailed", `ConfigMap/absent/a not found: namespaces "absent" not found`}
	const health, patience = 3 * time.Second, 2 * time.Minute
	return []Scenario{
		{
			Name: "chain", Want: Want{Writes: 1},
			Tiers: []Tier{{Name: "a"}, {Name: "b", DependsOn: d("a")}, {Name: "c", DependsOn: d("b")}, {Name: "d", DependsOn: d("c")}},
		},
		{
			Name: "diamond-of-gates", Want: Want{Writes: 1},
			Tiers: []Tier{
				{Name: "base", Wait: true, Health: health, Timeout: patience},
				{Name: "left", Wait: true, Health: health, Timeout: patience, DependsOn: d("base")},
				{Name: "right", DependsOn: d("base")},
				{Name: "top", DependsOn: d("left", "right")},
			},
		},
		{
			Name: "waiting-parent", Want: Want{Writes: 1},
			Tiers: []Tier{
				{Name: "parent", Wait: true, Timeout: patience},
				{Name: "first", Parent: "parent"},
				{Name: "second", Parent: "parent", DependsOn: d("first")},
				{Name: "after", DependsOn: d("parent")},
			},
		},
		{
			Name: "broken-build", Want: Want{Writes: 1, Pending: d("bad", "behind"), Causes: map[string]string{"bad": "failed"}, Untouched: d("behind")},
			Tiers: []Tier{{Name: "base"}, {Name: "bad", DependsOn: d("base"), Broken: build}, {Name: "behind", DependsOn: d("bad")}, {Name: "beside", DependsOn: d("base")}},
		},
		{
			Name: "namespace-absent", TierTimeout: 25 * time.Second,
			Want:  Want{Writes: 5, Pending: d("bad", "behind"), Causes: map[string]string{"bad": "timed out"}, Untouched: d("behind")},
			Tiers: []Tier{{Name: "bad", Broken: namespace}, {Name: "behind", DependsOn: d("bad")}, {Name: "beside"}},
		},
		{
			Name: "substitute-appears", Want: Want{Writes: 4},
			Tiers: []Tier{{Name: "base"}, {Name: "late", DependsOn: d("base"), Sick: substitute, SickFor: 12 * time.Second}, {Name: "behind", DependsOn: d("late")}},
		},
		{
			Name: "kind-without-a-path", Want: Want{Writes: 3},
			Tiers: []Tier{
				{Name: "gate", Wait: true, Health: health, Timeout: patience},
				{Name: "definitions", DependsOn: d("gate"), Provides: d("Widget")},
				{Name: "objects", Needs: d("Widget")},
				{Name: "behind", DependsOn: d("objects")},
			},
		},
		{
			Name: "suspended-in-git", Want: Want{Writes: 1, Pending: d("behind"), Causes: map[string]string{"held": "suspended in git"}, Untouched: d("held", "behind")},
			Tiers: []Tier{{Name: "held", Suspended: true, InGit: true}, {Name: "behind", DependsOn: d("held")}, {Name: "beside"}},
		},
		{
			Name: "cycle", Want: Want{Writes: 1, Pending: d("a", "b", "behind"), Causes: map[string]string{"a": "cycle", "b": "cycle"}, Untouched: d("a", "b", "behind")},
			Tiers: []Tier{{Name: "a", DependsOn: d("b")}, {Name: "b", DependsOn: d("a")}, {Name: "behind", DependsOn: d("b")}, {Name: "apart"}},
		},
		{
			Name: "dangling-dependency", Want: Want{Writes: 1, Pending: d("bad", "behind"), Causes: map[string]string{"gone": "absent"}, Untouched: d("bad", "behind")},
			Tiers: []Tier{{Name: "bad", DependsOn: d("gone")}, {Name: "behind", DependsOn: d("bad")}, {Name: "beside"}},
		},
		{
			Name: "child-depends-on-waiting-parent", Want: Want{Writes: 1, Pending: d("parent", "child"), Causes: map[string]string{"parent": "cycle", "child": "cycle"}, Untouched: d("child")},
			Tiers: []Tier{{Name: "parent", Wait: true, Timeout: patience}, {Name: "child", Parent: "parent", DependsOn: d("parent")}, {Name: "apart"}},
		},
		{
			Name: "left-out", Except: d("b"), Want: Want{Writes: 1, Untouched: d("b")},
			Tiers: []Tier{{Name: "a"}, {Name: "b", DependsOn: d("a")}, {Name: "c", DependsOn: d("a")}},
		},
		{
			Name: "suspended", Suspended: true, Want: Want{Writes: 2},
			Tiers: []Tier{{Name: "a"}, {Name: "b", DependsOn: d("a")}, {Name: "c", DependsOn: d("b")}},
		},
		{
			Name: "commit-during-the-run", Commit: 4 * time.Second, Want: Want{Writes: 3},
			Tiers: []Tier{{Name: "a", Wait: true, Health: health, Timeout: patience}, {Name: "b", Wait: true, Health: health, Timeout: patience, DependsOn: d("a")}, {Name: "c", DependsOn: d("b")}},
		},
		{
			Name: "controller-killed", Restart: 3 * time.Second, Want: Want{Writes: 2},
			Tiers: []Tier{{Name: "a", Wait: true, Health: health, Timeout: patience}, {Name: "b", Wait: true, Health: health, Timeout: patience, DependsOn: d("a")}, {Name: "c", DependsOn: d("b")}},
		},
		{
			Name: "run-killed", Kill: 4 * time.Second, Want: Want{Writes: 1},
			Tiers: []Tier{{Name: "a", Wait: true, Health: health, Timeout: patience}, {Name: "b", Wait: true, Health: health, Timeout: patience, DependsOn: d("a")}, {Name: "c", DependsOn: d("b")}},
		},
	}
}

func d(names ...string) []string { return names }
