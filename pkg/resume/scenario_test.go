package resume

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/test/model"
)

// TestScenariosOnTheModel plays what test/e2e plays on the real controllers.
func TestScenariosOnTheModel(t *testing.T) {
	for _, s := range model.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			list := s.All()
			for i := range list {
				list[i].Suspended = list[i].Suspended || s.Suspended
			}
			opts := Options{TierTimeout: s.TierTimeout}
			for _, name := range s.Except {
				opts.Selection.Except = append(opts.Selection.Except, model.Key(name))
			}
			h := newHarness(t, model.New(list), opts)
			if s.Commit > 0 {
				h.After(s.Commit, func() { h.Commit(2) })
			}
			if s.Restart > 0 {
				h.After(s.Restart, func() { h.Restart(time.Second) })
			}
			if s.Kill > 0 {
				h.After(s.Kill, h.begin)
			}
			err := h.run(10 * time.Minute)
			h.wants(t, s, err)
			h.check(t)
			t.Logf("%s", h.elapsed().Round(time.Millisecond))
		})
	}
}

// wants compares how a scenario ended with how it should have.
func (h *harness) wants(t *testing.T, s model.Scenario, err error) {
	t.Helper()
	pending, causes := ended(t, err)
	if diff := cmp.Diff(s.Want.Pending, pending); diff != "" {
		t.Errorf("pending: want(-) got(+):\n%s", diff)
	}
	if diff := cmp.Diff(s.Want.Causes, causes); diff != "" {
		t.Errorf("causes: want(-) got(+):\n%s", diff)
	}
	for key, writes := range h.writes {
		if most := s.Want.Writes; writes > most || slices.Contains(s.Want.Untouched, key.Name) {
			t.Errorf("%s: %d writes, want at most %d and none to %v", key.Name, writes, most, s.Want.Untouched)
		}
	}
	if err != nil {
		return
	}
	before := maps.Clone(h.writes)
	h.begin()
	if err := h.run(time.Minute); err != nil || !maps.Equal(before, h.writes) {
		t.Errorf("second run: %v, writes %v after %v", err, h.writes, before)
	}
}

// ended reads what an error says is pending, and why.
func ended(t *testing.T, err error) (pending []string, causes map[string]string) {
	t.Helper()
	if err == nil {
		return nil, nil
	}
	var notReady *NotReadyError
	if !errors.As(err, &notReady) {
		t.Fatal(err)
	}
	causes = map[string]string{}
	for _, p := range notReady.Pending {
		pending = append(pending, p.Object.Name)
	}
	for _, root := range notReady.Roots() {
		causes[root.Object.Name] = string(root.Cause)
	}
	return pending, causes
}
