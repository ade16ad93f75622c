package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/wait"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/model"
)

// TestE2EResumeChainOfTen is the case that the project's speed is measured by. Flux alone takes four
// and a half minutes for it; `make bench-coldstart` runs both.
func TestE2EResumeChainOfTen(t *testing.T) {
	e := newResumeEnv(t)
	s := model.Scenario{Name: "ten"}
	for i := range 10 {
		tier := model.Tier{Name: fmt.Sprintf("tier-%02d", i)}
		if i > 0 {
			tier.DependsOn = []string{fmt.Sprintf("tier-%02d", i-1)}
		}
		s.Tiers = append(s.Tiers, tier)
	}
	st := e.stage(t, s, "ten")
	var a attempt
	requests := e.requestsOf(t, func() { a = st.run(t.Context()) })
	if a.err != nil {
		t.Fatalf("%v\n%s", a.err, strings.Join(a.log, "\n"))
	}
	own := st.ownTimes()
	t.Logf("took %.2f s, the tiers' own times %.2f s, ratio %.2f\n%s", a.took.Seconds(), own.Seconds(), a.took.Seconds()/own.Seconds(), strings.Join(a.log, "\n"))
	for name, writes := range a.writes {
		if writes > 2 {
			t.Errorf("%s: %d writes, want at most 2", name, writes)
		}
	}
	got := tally(requests)
	// One for each tier; the entry, or a tier that was slow to begin, may be asked once more.
	if n := got["patch kustomizations"]; n < 10 || n > 22 {
		t.Errorf("%d patches, want at least one for each of 10 tiers and at most two for each of 11", n)
	}
	if n := got["patch gitrepositories"]; n > 1 {
		t.Errorf("%d patches of the source, want at most one", n)
	}
	delete(got, "patch kustomizations")
	delete(got, "patch gitrepositories")
	want := map[string]int{"list kustomizations": 1, "watch kustomizations": 1, "list gitrepositories": 1, "watch gitrepositories": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests: want(-) got(+):\n%s", diff)
	}
	again := e.requestsOf(t, func() { a = st.run(t.Context()) })
	if a.err != nil || len(cluster.Writes(again)) != 0 {
		t.Errorf("second run: %v, writes %v", a.err, cluster.Writes(again))
	}
}

// tally counts requests by verb and resource.
func tally(requests []cluster.Entry) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Verb+" "+r.Resource]++
	}
	return counts
}

// ownTimes is the sum of what the tiers' last passes took, by Flux's own account.
func (s *stage) ownTimes() time.Duration {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var sum time.Duration
	_ = resume.NewCluster(s.client, wait.WatchOptions{}).Watch(ctx, func(snapshot flux.Snapshot) { // ends by cancel
		sum = 0
		for _, t := range s.graph.Tiers {
			if k := snapshot.Kustomizations[t.Key]; k != nil && k.Status.History.Latest() != nil {
				sum += k.Status.History.Latest().LastReconciledDuration.Duration
			}
		}
		cancel()
	})
	return sum
}

// TestE2EResumeScenarios plays on the real controllers what pkg/resume plays on the model.
func TestE2EResumeScenarios(t *testing.T) {
	e := newResumeEnv(t)
	for i, s := range model.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			st := e.stage(t, s, fmt.Sprintf("s%02d", i))
			if s.Suspended {
				st.suspendAll()
			}
			if slices.ContainsFunc(s.Tiers, func(t model.Tier) bool { return t.Sick != nil }) {
				st.later(12*time.Second, st.lateConfigMap)
			}
			st.later(s.Commit, func() { st.push(2); st.fetch() })
			st.later(s.Restart, func() {
				if err := e.Kill(cluster.KustomizeController); err != nil {
					t.Error(err)
				}
				if err := e.StartComponent(context.WithoutCancel(t.Context()), cluster.KustomizeController); err != nil {
					t.Error(err)
				}
			})
			a := st.runOrKill()
			st.wants(a)
		})
	}
	t.Run("helm-releases", func(t *testing.T) { helmReleases(t, e) })
}

// helmReleases lets a run resume two releases of a tier, the second on the first. In place of
// helm-controller the test says that the first is installed.
func helmReleases(t *testing.T, e *resumeEnv) {
	st := e.stage(t, model.Scenario{Name: "helm-releases", Tiers: []model.Tier{{Name: "a"}}}, "helm")
	release := func(name, spec string) string {
		return fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: %s\n  namespace: helm\n"+
			"  labels: {kustomize.toolkit.fluxcd.io/name: a, kustomize.toolkit.fluxcd.io/namespace: helm}\n"+
			"spec: {interval: 1h, suspend: true, chartRef: {kind: OCIRepository, name: x}%s}\n", name, spec)
	}
	if err := e.Apply(t.Context(), release("one", "")+"---\n"+release("two", ", dependsOn: [{name: one}]")); err != nil {
		t.Fatal(err)
	}
	installed := make(chan error, 1)
	go func() {
		gvk := schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
		err := e.WaitFor(t.Context(), gvk, "helm", "one", func(o *unstructured.Unstructured) bool {
			suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
			if suspended {
				return false
			}
			status := o.DeepCopy()
			status.Object = map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": "one", "namespace": "helm"},
				"status": map[string]any{
					"observedGeneration": o.GetGeneration(), "lastHandledReconcileAt": o.GetAnnotations()[flux.RequestAnnotation],
					"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "", "lastTransitionTime": "2026-11-30T00:00:00Z"}},
				},
			}
			return e.ApplyStatus(t.Context(), status) == nil
		})
		installed <- err
	}()
	a := st.run(t.Context())
	if err := <-installed; err != nil {
		t.Fatal(err)
	}
	if a.err != nil || a.writes["one"] != 1 || a.writes["two"] != 1 {
		t.Errorf("%v, writes %v\n%s", a.err, a.writes, strings.Join(a.log, "\n"))
	}
}

// suspendAll brings the tiers up, suspends them in reverse, and commits: what was ready is of an
// older revision then.
func (s *stage) suspendAll() {
	s.t.Helper()
	if a := s.run(s.t.Context()); a.err != nil {
		s.t.Fatal(a.err)
	}
	s.readyTiers()
	var order []string
	live := resume.NewCluster(s.client, wait.WatchOptions{Sources: wait.SourceKinds(s.graph)})
	err := resume.SuspendTiers(s.t.Context(), live, resume.Options{Graph: s.graph}, func(e resume.Event) {
		if e.Action != nil {
			order = append(order, e.Action.Object.Name)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if want := []string{"c", "b", "a", model.Namespace}; !slices.Equal(order, want) {
		s.t.Errorf("suspended in the order %v, want %v", order, want)
	}
	s.push(2)
	s.fetch()
}

// runOrKill runs standup, twice if the scenario kills the first run.
func (s *stage) runOrKill() attempt {
	s.t.Helper()
	if s.scenario.Kill == 0 {
		return s.run(s.t.Context())
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), s.scenario.Kill)
	defer cancel()
	first := s.run(ctx)
	if ctx.Err() == nil {
		s.t.Error("the first run ended before it could be killed")
	}
	second := s.run(s.t.Context())
	for name, n := range first.writes {
		second.writes[name] += n
	}
	second.log = append(append(first.log, "killed"), second.log...)
	return second
}

// wants compares how the scenario ended with how it should have.
func (s *stage) wants(a attempt) {
	s.t.Helper()
	want := s.scenario.Want
	pending, causes := a.ended(s.t)
	if diff := cmp.Diff(want.Pending, pending); diff != "" {
		s.t.Errorf("pending: want(-) got(+):\n%s", diff)
	}
	if diff := cmp.Diff(want.Causes, causes); diff != "" {
		s.t.Errorf("causes: want(-) got(+):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(a.writes)) {
		if n := a.writes[name]; n > want.Writes || slices.Contains(want.Untouched, name) {
			s.t.Errorf("%s: %d writes, want at most %d and none to %v", name, n, want.Writes, want.Untouched)
		}
	}
	if a.err == nil {
		if again := s.requestsOf(s.t, func() { a.err = s.run(s.t.Context()).err }); a.err != nil || len(cluster.Writes(again)) > 0 {
			s.t.Errorf("second run: %v, writes %v", a.err, cluster.Writes(again))
		}
	}
	s.t.Logf("%.2f s", a.took.Seconds())
	if s.t.Failed() {
		s.t.Logf("the run:\n%s", strings.Join(a.log, "\n"))
	}
}
