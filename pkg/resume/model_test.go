package resume

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/model"
)

// chain returns n tiers, each of which depends on the one before, with the times measured on the
// real controllers for a ConfigMap apiece.
func chain(n int, change func(i int, t *model.Tier)) []model.Tier {
	list := make([]model.Tier, n)
	for i := range list {
		list[i] = model.Tier{
			Name: fmt.Sprintf("tier-%02d", i), Interval: time.Hour,
			Build: 60 * time.Millisecond, Apply: 300 * time.Millisecond,
		}
		if i > 0 {
			list[i].DependsOn = []string{list[i-1].Name}
		}
		if change != nil {
			change(i, &list[i])
		}
	}
	return list
}

func TestChainOfTenAgainstFluxAlone(t *testing.T) {
	alone := fluxAlone(t, model.New(chain(10, nil)), 10*time.Minute)
	h := newHarness(t, model.New(chain(10, nil)), Options{})
	if err := h.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	h.check(t)
	t.Logf("flux alone %s, standup %s: %.0f times", alone.Round(time.Second), h.elapsed().Round(10*time.Millisecond), alone.Seconds()/h.elapsed().Seconds())
	if ratio := alone.Seconds() / h.elapsed().Seconds(); ratio < 40 {
		t.Errorf("%.1f times as fast as Flux alone, want 40", ratio)
	}
	if alone < 265*time.Second || alone > 285*time.Second {
		t.Errorf("Flux alone takes %s in the model; on the real controllers it took 273s", alone)
	}
	own := 10 * 370 * time.Millisecond
	if limit := own*5/4 + time.Second; h.elapsed() > limit {
		t.Errorf("took %s, want at most %s: 1.25 times the tiers' own %s, and the start of the first", h.elapsed(), limit, own)
	}
}

// check reports broken invariants, with the story that led to them.
func (h *harness) check(t *testing.T) {
	t.Helper()
	for _, w := range h.wrong {
		t.Errorf("%s", w)
	}
	if t.Failed() {
		t.Logf("the run:\n%s", strings.Join(h.log, "\n"))
	}
}

func TestSuspendedChainIsResumedInOrder(t *testing.T) {
	list := chain(5, func(_ int, t *model.Tier) { t.Suspended = true })
	h := newHarness(t, model.New(list), Options{})
	if err := h.run(time.Minute); err != nil {
		t.Error(err)
	}
	for i := range list {
		if got := h.writes[model.Key(list[i].Name)]; got != 1 {
			t.Errorf("%s: %d writes, want 1", list[i].Name, got)
		}
	}
	h.check(t)
}

func TestSecondRunWritesNothing(t *testing.T) {
	h := newHarness(t, model.New(chain(5, nil)), Options{})
	if err := h.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	clear(h.writes)
	h.begin()
	if err := h.run(time.Minute); err != nil {
		t.Error(err)
	}
	if len(h.writes) > 0 {
		t.Errorf("second run wrote: %v", h.writes)
	}
	h.check(t)
}

func TestWaitingParentIsResumedFirstAndAwaitedLast(t *testing.T) {
	list := []model.Tier{
		{Name: "root", Interval: time.Hour, Wait: true, Suspended: true, Timeout: 5 * time.Minute, Apply: time.Second},
		{Name: "a", Parent: "root", Interval: time.Hour, Apply: time.Second},
		{Name: "b", Parent: "root", DependsOn: []string{"a"}, Interval: time.Hour, Apply: time.Second},
	}
	h := newHarness(t, model.New(list), Options{})
	if err := h.run(time.Minute); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(h.writes[model.Key("root")], h.writes[model.Key("a")], h.writes[model.Key("b")]); got != "1 1 1" {
		t.Errorf("writes to root, a, b: got %s, want 1 1 1", got)
	}
	h.check(t)
}

func TestFailureThatHealsIsRetriedLongBeforeTheInterval(t *testing.T) {
	list := chain(3, func(i int, t *model.Tier) {
		if i == 1 {
			t.Failures = []model.Failure{{Reason: "ReconciliationFailed", Message: "webhook"}, {Reason: "ReconciliationFailed", Message: "webhook"}}
		}
	})
	h := newHarness(t, model.New(list), Options{})
	if err := h.run(2 * time.Minute); err != nil {
		t.Error(err)
	}
	if h.elapsed() > 30*time.Second {
		t.Errorf("took %s", h.elapsed())
	}
	h.check(t)
}

func TestFinalFailureStopsOnlyItsBranch(t *testing.T) {
	list := []model.Tier{
		{Name: "base", Interval: time.Hour},
		{Name: "bad", DependsOn: []string{"base"}, Interval: time.Hour, Broken: &model.Failure{Reason: "BuildFailed", Message: "kustomize build failed"}},
		{Name: "behind", DependsOn: []string{"bad"}, Interval: time.Hour},
		{Name: "beside", DependsOn: []string{"base"}, Interval: time.Hour},
	}
	h := newHarness(t, model.New(list), Options{})
	err := h.run(time.Minute)
	const want = "2 tiers not ready\nKustomization/flux-system/bad: failed: BuildFailed: kustomize build failed"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if h.writes[model.Key("beside")] != 1 || h.writes[model.Key("behind")] != 0 {
		t.Errorf("writes: %v", h.writes)
	}
	h.check(t)
}

func TestSuspendedInGitIsLeftAlone(t *testing.T) {
	list := chain(3, func(i int, t *model.Tier) { t.Suspended = i == 1; t.InGit = i == 1 })
	h := newHarness(t, model.New(list), Options{})
	err := h.run(time.Minute)
	const want = "1 tier not ready\nKustomization/flux-system/tier-01: suspended in git: Suspended"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	if h.writes[model.Key("tier-01")] != 0 || h.writes[model.Key("tier-02")] != 0 {
		t.Errorf("writes: %v", h.writes)
	}
	h.check(t)
}

func TestCycleIsNamed(t *testing.T) {
	list := []model.Tier{
		{Name: "a", DependsOn: []string{"b"}, Interval: time.Hour},
		{Name: "b", DependsOn: []string{"a"}, Interval: time.Hour},
		{Name: "behind", DependsOn: []string{"b"}, Interval: time.Hour},
		{Name: "apart", Interval: time.Hour},
	}
	h := newHarness(t, model.New(list), Options{})
	err := h.run(time.Minute)
	const want = "3 tiers not ready\n" +
		"Kustomization/flux-system/a: cycle: needs Kustomization/flux-system/b\n" +
		"Kustomization/flux-system/b: cycle: needs Kustomization/flux-system/a"
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	h.check(t)
}

func TestStuckTierIsFreedBeforeItLosesAPass(t *testing.T) {
	list := []model.Tier{
		{Name: "operator", Interval: time.Hour, Apply: time.Second},
		{Name: "config", DependsOn: []string{"operator"}, Interval: time.Hour, Needs: []string{"Profile"}, Apply: time.Second},
		{Name: "apps", DependsOn: []string{"config"}, Interval: time.Hour},
	}
	c := model.New(list)
	h := newHarness(t, c, Options{
		Stuck: func(key tiers.Key, _ flux.Snapshot) bool { return key == model.Key("config") && !c.Known("Profile") },
	})
	asked := 0
	h.free = func(tiers.Key) (FreeOutcome, time.Duration, error) {
		asked++
		if asked == 1 {
			return FreeOutcome{Retry: 2 * time.Second}, time.Second, nil
		}
		c.Register("Profile")
		return FreeOutcome{Freed: true, Message: "applied CDI/cdi"}, time.Second, nil
	}
	if err := h.run(time.Minute); err != nil {
		t.Error(err)
	}
	if got := c.Passes[model.Key("config")]; got != 1 {
		t.Errorf("config had %d passes, want 1: freed before it lost one", got)
	}
	if h.writes[model.Key("config")] != 1 {
		t.Errorf("writes: %v", h.writes)
	}
	h.check(t)
}
