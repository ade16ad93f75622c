package resume

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/test/model"
)

// scenario is a random graph and what happens to it.
type scenario struct {
	*rand.Rand
	list  []model.Tier
	kinds []string
	quiet bool // no faults at all
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func (s *scenario) chance(percent int) bool { return s.IntN(100) < percent }

func (s *scenario) span(most time.Duration) time.Duration {
	return time.Duration(s.Int64N(int64(most) + 1))
}

func newScenario(seed uint64, quiet bool) *scenario {
	s := &scenario{Rand: rand.New(rand.NewPCG(seed, 1)), quiet: quiet}
	suspend := pick(s.Rand, 0, 0, 50, 100)
	for i := range 2 + s.IntN(12) {
		t := model.Tier{
			Name: fmt.Sprintf("t%02d", i), Wait: s.chance(30), Suspended: s.chance(suspend),
			Interval: pick(s.Rand, 10*time.Minute, time.Hour), Timeout: pick(s.Rand, 0, 2*time.Minute, 5*time.Minute),
			Build: s.span(200 * time.Millisecond), Apply: s.span(2 * time.Second), Health: s.span(20 * time.Second),
		}
		for range s.IntN(3) {
			if i > 0 {
				t.DependsOn = append(t.DependsOn, s.list[s.IntN(i)].Name)
			}
		}
		slices.Sort(t.DependsOn)
		t.DependsOn = slices.Compact(t.DependsOn)
		if i > 0 && s.chance(25) {
			t.Parent = s.list[s.IntN(i)].Name
		}
		s.kindsOf(&t)
		if !quiet {
			s.faultsOf(&t)
		}
		s.list = append(s.list, t)
	}
	return s
}

// kindsOf lets tiers need kinds that others bring, mostly those that come before them.
func (s *scenario) kindsOf(t *model.Tier) {
	if s.chance(20) {
		kind := fmt.Sprintf("Kind%d", len(s.kinds))
		s.kinds = append(s.kinds, kind)
		if s.quiet || s.chance(50) {
			t.Provides = append(t.Provides, kind)
		} else {
			t.Registers = map[string]time.Duration{kind: s.span(30 * time.Second)}
		}
	}
	if len(s.kinds) > 0 && !s.quiet && s.chance(25) {
		t.Needs = append(t.Needs, pick(s.Rand, s.kinds...))
	}
}

func (s *scenario) faultsOf(t *model.Tier) {
	heals := []model.Failure{
		{Reason: "ReconciliationFailed", Message: "ConfigMap/x dry-run failed (InternalError): failed calling webhook"},
		{Reason: "BuildFailed", Message: "substitute from 'ConfigMap/cluster-vars' error: not found"},
		{Reason: "HealthCheckFailed", Message: "health check failed: timeout waiting for: []"},
		{Reason: "PruneFailed", Message: "x"},
	}
	if s.chance(15) {
		for range 1 + s.IntN(3) {
			t.Failures = append(t.Failures, pick(s.Rand, heals...))
		}
	}
	if s.chance(4) {
		t.Broken = &model.Failure{Reason: "BuildFailed", Message: "kustomize build failed"}
	}
	if s.chance(2) {
		t.Broken = &model.Failure{Reason: "ReconciliationFailed", Message: "forbidden"}
	}
	if s.chance(3) {
		t.Suspended, t.InGit = true, true
	}
	if s.chance(3) {
		t.DependsOn = append(t.DependsOn, "gone")
	}
	if s.chance(2) && len(s.list) > 0 { // a later tier: a cycle, perhaps
		t.DependsOn = append(t.DependsOn, fmt.Sprintf("t%02d", len(s.list)+1))
	}
}

// outcome is what can become of the tiers at best, from their behaviour alone.
// A tier is staged when a pass of it gets as far as the first stage of the apply.
type outcome struct{ exists, staged, applied, ready map[string]bool }

func (s *scenario) outcome() outcome {
	o := outcome{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for changed := true; changed; {
		changed = false
		set := func(m map[string]bool, name string, value bool) {
			if value && !m[name] {
				m[name], changed = true, true
			}
		}
		for _, t := range s.list {
			set(o.exists, t.Name, t.Parent == "" || o.applied[t.Parent])
			set(o.staged, t.Name, o.exists[t.Name] && builds(t, o))
			set(o.applied, t.Name, o.staged[t.Name] && s.applies(t, o))
			set(o.ready, t.Name, o.applied[t.Name] && s.healthy(t, o))
		}
	}
	return o
}

func builds(t model.Tier, o outcome) bool {
	if t.Broken != nil && t.Broken.Reason == "BuildFailed" || t.Suspended && t.InGit {
		return false
	}
	return !slices.ContainsFunc(t.DependsOn, func(dep string) bool { return !o.ready[dep] })
}

func (s *scenario) applies(t model.Tier, o outcome) bool {
	for _, kind := range t.Needs {
		known := false
		for _, other := range s.list {
			_, registers := other.Registers[kind]
			known = known || o.applied[other.Name] && registers || o.staged[other.Name] && slices.Contains(other.Provides, kind)
		}
		if !known {
			return false
		}
	}
	return t.Broken == nil
}

func (s *scenario) healthy(t model.Tier, o outcome) bool {
	for _, child := range s.list {
		if t.Wait && child.Parent == t.Name && !o.ready[child.Name] {
			return false
		}
	}
	return true
}

// disturb lets things happen during the run.
func (s *scenario) disturb(h *harness) (disturbances int) {
	at := func(percent int, most time.Duration, do func()) {
		if s.chance(percent) {
			disturbances++
			h.After(s.span(most), do)
		}
	}
	at(25, 30*time.Second, func() { h.Commit(2) })
	at(10, 60*time.Second, func() { h.Commit(3) })
	at(15, 20*time.Second, func() { h.Restart(s.span(10 * time.Second)) })
	at(25, 20*time.Second, func() { h.dropped = h.Now().Add(s.span(20 * time.Second)) })
	at(25, 40*time.Second, func() {
		if !h.over {
			h.begin() // killed, and run again
		}
	})
	for range 2 {
		at(20, 40*time.Second, func() {
			if key := model.Key(pick(s.Rand, s.list...).Name); h.Snapshot().Kustomizations[key] != nil {
				h.Sicken(key, 1+s.IntN(2)) // was ready, perhaps, and no longer is
			}
		})
		at(15, 40*time.Second, func() {
			if key := model.Key(pick(s.Rand, s.list...).Name); h.Snapshot().Kustomizations[key] != nil {
				_, _ = h.Patch(key, flux.NudgePatch("someone else")) // never fails on a tier that is there
			}
		})
	}
	if s.chance(30) {
		disturbances++
		h.patchFate = func() fate {
			if s.chance(70) {
				return arrives
			}
			return pick(s.Rand, conflicts, lostOnTheWay, answerLost)
		}
	}
	return disturbances
}

// shards spreads seeds over parallel tests.
func shards(t *testing.T, runs uint64, run func(t *testing.T, seed uint64)) {
	if testing.Short() {
		runs /= 10
	}
	const count = 4
	for shard := range uint64(count) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < runs && !t.Failed(); seed += count {
				run(t, seed)
			}
		})
	}
}

func TestRandomGraphsAndFaults(t *testing.T) {
	shards(t, 2000, func(t *testing.T, seed uint64) {
		s := newScenario(seed, false)
		h := newHarness(t, model.New(s.list), Options{TierTimeout: 10 * time.Minute, Timeout: 150 * time.Minute})
		disturbances := s.disturb(h)
		err := h.run(3 * time.Hour)
		s.judge(h, err, disturbances)
		s.report(t, seed, h)
	})
}

func (s *scenario) report(t *testing.T, seed uint64, h *harness) {
	if len(h.wrong) > 0 {
		t.Errorf("seed %d: %s\n%s\n%s", seed, strings.Join(h.wrong, "\n"), s.describe(), strings.Join(h.log, "\n"))
	}
}

// judge compares how a run ended with the best that could have become of it.
func (s *scenario) judge(h *harness, err error, disturbances int) {
	best := s.outcome()
	var notReady *NotReadyError
	if err != nil && !errors.As(err, &notReady) {
		h.wrong = append(h.wrong, fmt.Sprintf("unexpected error: %v", err))
	}
	pending := map[string]Standing{}
	if notReady != nil {
		for _, p := range notReady.Pending {
			pending[p.Object.Name] = p
		}
	}
	for _, t := range s.list {
		standing, isPending := pending[t.Name]
		held := t.InGit && t.Suspended && best.exists[t.Name]
		switch {
		case isPending && best.ready[t.Name]:
			h.wrong = append(h.wrong, fmt.Sprintf("%s could be ready and is %s, %s", t.Name, standing.Phase, standing.describe()))
		case !isPending && !best.ready[t.Name] && !held:
			h.wrong = append(h.wrong, fmt.Sprintf("%s is said to be ready and cannot be", t.Name))
		case isPending && standing.Phase != Stopped:
			h.wrong = append(h.wrong, fmt.Sprintf("%s is pending and %s", t.Name, standing.Phase))
		}
		if most := 2*(1+disturbances)*(1+len(s.list)) + 2*maxHeals; h.writes[model.Key(t.Name)] > most {
			h.wrong = append(h.wrong, fmt.Sprintf("%s: %d writes", t.Name, h.writes[model.Key(t.Name)]))
		}
	}
	if notReady != nil {
		for _, root := range notReady.Roots() {
			if !s.guilty(root, best) {
				h.wrong = append(h.wrong, fmt.Sprintf("%s is named as a cause: %s", root.Object.Name, root.describe()))
			}
		}
	}
}

// guilty reports whether a tier is at fault itself: all that it depends on comes up, and it does not.
func (s *scenario) guilty(root Standing, best outcome) bool {
	name := root.Object.Name
	i := slices.IndexFunc(s.list, func(t model.Tier) bool { return t.Name == name })
	if i < 0 {
		return root.Cause == CauseAbsent // a name that nothing has
	}
	if root.Cause == CauseCycle {
		return !best.ready[name]
	}
	for _, dep := range s.list[i].DependsOn {
		if !best.ready[dep] && !(s.list[i].InGit && s.list[i].Suspended) {
			return false
		}
	}
	return best.exists[name] && !best.ready[name]
}

func (s *scenario) describe() string {
	var b strings.Builder
	for _, t := range s.list {
		fmt.Fprintf(&b, "%+v\n", t)
	}
	return b.String()
}

func TestRandomGraphsWithoutFaults(t *testing.T) {
	shards(t, 600, func(t *testing.T, seed uint64) {
		s := newScenario(seed, true)
		h := newHarness(t, model.New(s.list), Options{})
		err := h.run(3 * time.Hour)
		s.judge(h, err, 0)
		if err == nil {
			s.costs(h)
		}
		s.report(t, seed, h)
	})
}

// costs checks that a run without faults wrote no more than it may, and that another writes nothing.
func (s *scenario) costs(h *harness) {
	for _, t := range s.list {
		if got := h.writes[model.Key(t.Name)]; got > 2 {
			h.wrong = append(h.wrong, fmt.Sprintf("%s: %d writes without a fault", t.Name, got))
		}
	}
	clear(h.writes)
	h.begin()
	if err := h.run(time.Hour); err != nil || len(h.writes) > 0 {
		h.wrong = append(h.wrong, fmt.Sprintf("second run: %v, writes %v", err, h.writes))
	}
}
