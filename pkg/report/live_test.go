package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

func TestLiveShowsTroubleFirstAndCountsTheRest(t *testing.T) {
	start := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	live := &Live{Title: "standup up · clusters/prod", Namespace: "flux-system", Start: start}
	changed := func(name string, wave int, to wait.State, message string) {
		live.Wait(wait.TierChanged{At: start, To: to, Status: wait.TierStatus{
			Key: tiers.Key{Namespace: "flux-system", Name: name}, Wave: wave, State: to, Message: message,
		}})
	}
	changed("infra", 1, wait.Ready, "")
	changed("database", 2, wait.Reconciling, "Running health checks")
	changed("broken", 2, wait.Failed, "no matches\nfor kind")
	for i := range 200 {
		changed(fmt.Sprintf("app-%03d", i), 3, wait.Waiting, "dependency 'flux-system/database' is not ready")
	}
	got := live.View(60, 7, start.Add(12*time.Second))
	want := `standup up · clusters/prod · 1 of 203 tiers ready · 12s
  ✗ broken       12s  failed: no matches for kind
  ► database     12s  reconciling: Running health checks
  · app-000      12s  waiting: dependency 'flux-system/data…
  · app-001      12s  waiting: dependency 'flux-system/data…
  … and 198 more
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if lines := strings.Count(got, "\n"); lines > 7 {
		t.Errorf("view has %d lines, want at most 7", lines)
	}
}
