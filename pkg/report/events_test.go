package report

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

func TestLinesOfFreeing(t *testing.T) {
	var text strings.Builder
	start := time.Now()
	lines := &Lines{W: &text, Namespace: "flux-system", Start: start, Width: 6}
	tier := tiers.Key{Namespace: "flux-system", Name: "shop"}
	object := resume.Object{Kind: "Kustomization", Namespace: "flux-system", Name: "shop"}
	lines.CRDs(start, crds.Event{Kind: crds.EventWaiting, Tier: tier, Kinds: []schema.GroupVersionKind{{Group: "shop.example", Version: "v1", Kind: "Shelf"}}})
	lines.Resume(resume.Event{Time: start, Kind: resume.EventAction, Action: &resume.Action{Verb: resume.Free, Object: object}, Message: "still waiting"})
	lines.Resume(resume.Event{Time: start, Kind: resume.EventAction, Action: &resume.Action{Verb: resume.Free, Object: object}})
	lines.Resume(resume.Event{Time: start, Kind: resume.EventWarning, Object: &object, Message: "freeing: one\ntwo"})
	lines.Resume(resume.Event{Time: start, Kind: resume.EventFinished, Summary: &resume.Summary{Ready: 1, Tiers: 1, Writes: 3, Nudged: 1, Applied: 2}})
	const want = `   0.0s  shop    waits for Shelf (shop.example/v1)
   0.0s  shop    not freed yet: still waiting
   0.0s  shop    warning: freeing: one; two
   0.0s          1 of 1 tier ready after 0.0s; 3 writes: 0 resumed, 1 nudged, 2 applied
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
}

// A line that only counts leaves people guessing what a run waits for.
func TestLinesOfProgressNameTheFirstCause(t *testing.T) {
	var text strings.Builder
	start := time.Now()
	lines := &Lines{W: &text, Namespace: "flux-system", Start: start, Width: 6}
	shop := tiers.Key{Namespace: "flux-system", Name: "shop"}
	lines.Wait(wait.Progress{At: start.Add(10 * time.Second), Ready: 3, Total: 5, Causes: []wait.Diagnosis{
		{Tier: shop, Summary: "shop is suspended, never applied", Blocks: []tiers.Key{{Namespace: "flux-system", Name: "till"}}},
	}})
	lines.Wait(wait.Progress{At: start.Add(20 * time.Second), Ready: 4, Total: 5})
	const want = `  10.0s          3 of 5 tiers ready; shop: shop is suspended, never applied (holds up 1 more tier)
  20.0s          4 of 5 tiers ready
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
}
