package resume

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/model"
)

// suspecting drives a run in which every tier that fails for want of a kind is suspected.
func suspecting(t *testing.T, list []model.Tier, free func(c *model.Cluster, tier string) (FreeOutcome, error)) *harness {
	t.Helper()
	c := model.New(list)
	h := newHarness(t, c, Options{Suspected: func(key tiers.Key, s flux.Snapshot) bool {
		return len(flux.MissingKinds(flux.Classify(s.Kustomizations[key]).Message)) > 0
	}})
	h.free = func(key tiers.Key) (FreeOutcome, time.Duration, error) {
		outcome, err := free(c, key.Name)
		return outcome, time.Second, err
	}
	return h
}

// freedAt are the moments of a run at which Free was called, with the tiers.
func (h *harness) freedAt(tier string) []time.Duration {
	var at []time.Duration
	for _, f := range h.frees {
		if f.tier == tier {
			at = append(at, f.at)
		}
	}
	return at
}

func TestSuspectIsFreedOnceNothingElseMoves(t *testing.T) {
	list := []model.Tier{
		{Name: "base", Interval: time.Hour},
		{Name: "shop", DependsOn: []string{"base"}, Interval: time.Hour, Needs: []string{"Shelf"}},
		{Name: "apps", DependsOn: []string{"shop"}, Interval: time.Hour},
		{Name: "slow", Interval: time.Hour, Apply: 40 * time.Second},
	}
	h := suspecting(t, list, func(c *model.Cluster, _ string) (FreeOutcome, error) {
		c.Register("Shelf")
		return FreeOutcome{Freed: true}, nil
	})
	if err := h.run(2 * time.Minute); err != nil {
		t.Error(err)
	}
	at := h.freedAt("shop")
	if len(at) != 1 || at[0] < 50*time.Second || at[0] > 55*time.Second {
		t.Errorf("freed at %v, want once, 10 s after slow is ready", at)
	}
	if len(h.freedAt("apps"))+len(h.freedAt("slow")) > 0 {
		t.Errorf("freed: %v", h.frees)
	}
	h.check(t)
}

func TestSuspectThatOnlyNeedsPatienceIsNotFreed(t *testing.T) {
	for name, provider := range map[string]model.Tier{
		"its provider is slow":              {Apply: 2 * time.Minute, Provides: []string{"Shelf"}},
		"its provider fails for a while":    {Provides: []string{"Shelf"}, Sick: &model.Failure{Reason: "ReconciliationFailed", Message: "webhook"}, SickFor: 90 * time.Second},
		"its provider's operator is slow":   {Registers: map[string]time.Duration{"Shelf": 8 * time.Second}},
		"its provider waits for a slow one": {DependsOn: []string{"slow"}, Provides: []string{"Shelf"}},
	} {
		t.Run(name, func(t *testing.T) {
			provider.Name, provider.Interval = "provider", time.Hour
			list := []model.Tier{
				{Name: "slow", Interval: time.Hour, Apply: 30 * time.Second}, provider,
				{Name: "shop", Interval: time.Hour, Needs: []string{"Shelf"}},
			}
			h := suspecting(t, list, func(*model.Cluster, string) (FreeOutcome, error) { return FreeOutcome{Freed: true}, nil })
			if err := h.run(10 * time.Minute); err != nil {
				t.Error(err)
			}
			if len(h.frees) > 0 {
				t.Errorf("freed: %v", h.frees)
			}
			h.check(t)
		})
	}
}

// TestSuspectWaitsForReleases: a tier that is ready may hold a release that is still being installed, and
// one that has failed is not waited for.
func TestSuspectWaitsForReleases(t *testing.T) {
	progressing := metav1.Condition{Type: "Reconciling", Status: "True", Reason: "Progressing"}
	tests := map[string]struct {
		change func(*helmv2.HelmRelease)
		freed  bool
	}{
		"ready":            {nil, true},
		"being installed":  {says("Progressing", progressing), false},
		"not yet seen":     {func(h *helmv2.HelmRelease) { h.Status = helmv2.HelmReleaseStatus{} }, false},
		"failed":           {says("InstallFailed"), true},
		"waits for one":    {needs("other", says("DependencyNotReady")), false},
		"suspended in git": {func(h *helmv2.HelmRelease) { suspended(h); h.ManagedFields = inGit() }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts, s := ready(t, release("a", test.change), release("other", says("Progressing", progressing)))
			if name != "waits for one" {
				delete(s.HelmReleases, flux.Key{Namespace: "apps", Name: "other"})
			}
			shop := s.Kustomizations[model.Key("apps")].DeepCopy()
			shop.Name = "shop"
			shop.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "ReconciliationFailed"}}
			s.Kustomizations[model.Key("shop")] = shop
			graph := *opts.Graph
			tier := *graph.Tiers[0]
			tier.Key = model.Key("shop")
			graph.Tiers = append(slices.Clone(graph.Tiers), &tier)
			opts.Graph = &graph
			opts.Suspected = func(key tiers.Key, _ flux.Snapshot) bool { return key == model.Key("shop") }
			first := decide(t, opts, s, Memory{})
			later := decideAt(t, opts, s, first.Memory, quietGrace)
			if got := slices.Contains(texts(later), "free Kustomization/flux-system/shop (may be stuck)"); got != test.freed {
				t.Errorf("freed is %v: %v", got, texts(later))
			}
		})
	}
}

// TestSuspectDoesNotWaitForTheHopeless: a tier that could not be freed brings nothing to another.
func TestSuspectDoesNotWaitForTheHopeless(t *testing.T) {
	list := []model.Tier{{Name: "riddle", Interval: time.Hour, Needs: []string{"Riddle"}}, {Name: "shop", DependsOn: []string{"late"}, Interval: time.Hour, Needs: []string{"Shelf"}}, {Name: "late", Interval: time.Hour, Apply: 20 * time.Second}}
	h := suspecting(t, list, func(c *model.Cluster, tier string) (FreeOutcome, error) {
		if tier == "riddle" {
			return FreeOutcome{Hopeless: true}, errors.New("nothing brings it")
		}
		c.Register("Shelf")
		return FreeOutcome{Freed: true}, nil
	})
	if err := h.run(10 * time.Minute); err == nil || strings.Contains(err.Error(), "shop") {
		t.Errorf("got error %v", err)
	}
	if at := h.freedAt("shop"); len(at) != 1 || at[0] > 40*time.Second {
		t.Errorf("freed at %v, want 10 s after it failed", at)
	}
	h.check(t)
}

func TestPatienceWithOthersEnds(t *testing.T) {
	list := []model.Tier{
		{Name: "endless", Interval: time.Hour, Apply: time.Hour, Wait: true, Timeout: 30 * time.Minute},
		{Name: "shop", Interval: time.Hour, Needs: []string{"Shelf"}},
	}
	h := suspecting(t, list, func(c *model.Cluster, _ string) (FreeOutcome, error) {
		c.Register("Shelf")
		return FreeOutcome{Freed: true}, nil
	})
	settled := func() bool { return flux.Settled(h.Snapshot().Kustomizations[model.Key("shop")], h.Snapshot()) }
	if !h.RunUntil(5*time.Minute, settled) {
		t.Error("shop is not ready after 5 minutes")
	}
	if at := h.freedAt("shop"); len(at) != 1 || at[0] < 3*time.Minute {
		t.Errorf("freed at %v, want once, when its own time would have been over", at)
	}
	h.check(t)
}

// TestHopelessSuspectEndsTheRun: what nobody brings is no reason to try for ever.
func TestHopelessSuspectEndsTheRun(t *testing.T) {
	tests := map[string]struct {
		outcome FreeOutcome
		err     error
		times   int
	}{
		"nothing brings it":           {FreeOutcome{Hopeless: true}, errors.New("nothing brings it"), 1},
		"freeing fails":               {FreeOutcome{}, errors.New("refused"), 1 + freeAttempts},
		"it is freed, and fails":      {FreeOutcome{Freed: true}, nil, maxSuspicions},
		"it cannot be freed":          {FreeOutcome{}, nil, 1},
		"what it waits for is coming": {FreeOutcome{Retry: 2 * time.Second}, nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := suspecting(t, []model.Tier{{Name: "shop", Interval: time.Hour, Needs: []string{"Shelf"}}},
				func(*model.Cluster, string) (FreeOutcome, error) { return test.outcome, test.err })
			err := h.run(15 * time.Minute)
			if err == nil || !strings.Contains(err.Error(), `shop: timed out: ReconciliationFailed: Shelf/shop dry-run failed: no matches for kind "Shelf"`) {
				t.Errorf("got error %v", err)
			}
			if h.elapsed() > 6*time.Minute || h.writes[model.Key("shop")] > 12 {
				t.Errorf("took %s and %d writes", h.elapsed(), h.writes[model.Key("shop")])
			}
			if test.times > 0 && len(h.frees) != test.times {
				t.Errorf("freed %v, want %d times", h.frees, test.times)
			}
			for i, at := range h.freedAt("shop")[1:] {
				if gap := at - h.freedAt("shop")[i]; gap < 3*time.Second { // freeing itself takes one
					t.Errorf("freed again after %s", gap)
				}
			}
			h.check(t)
		})
	}
}

// TestFreeingTakesItsTime: an operator may need longer than a tier, and that is no reason to give
// the tier up.
func TestFreeingTakesItsTime(t *testing.T) {
	c := model.New([]model.Tier{{Name: "config", Interval: time.Hour, Needs: []string{"Profile"}}})
	h := newHarness(t, c, Options{FailFast: true, Stuck: func(tiers.Key, flux.Snapshot) bool { return !c.Known("Profile") }})
	h.free = func(tiers.Key) (FreeOutcome, time.Duration, error) {
		c.After(450*time.Second, func() { c.Register("Profile") })
		return FreeOutcome{Freed: true, Applied: 2}, 450 * time.Second, nil
	}
	if err := h.run(10 * time.Minute); err != nil {
		t.Error(err)
	}
	if s := h.machine.summary; s.Applied != 2 || s.Writes != 2+s.Nudged {
		t.Errorf("%d writes, %d of them to free, want %d and 2", s.Writes, s.Applied, 2+s.Nudged)
	}
	h.check(t)
}

func TestTimeoutHoldsAlsoWhileATierIsFreed(t *testing.T) {
	c := model.New([]model.Tier{{Name: "config", Interval: time.Hour, Needs: []string{"Profile"}}})
	h := newHarness(t, c, Options{Timeout: time.Minute, Stuck: func(tiers.Key, flux.Snapshot) bool { return true }})
	h.free = func(tiers.Key) (FreeOutcome, time.Duration, error) { return FreeOutcome{Freed: true}, time.Hour, nil }
	if err := h.run(61 * time.Second); !errors.Is(err, ErrTimeout) {
		t.Errorf("got error %v, want a timeout", err)
	}
	h.check(t)
}

func inGit() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", Operation: "Apply", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:suspend":{}}}`)}}}
}
