package resume

import (
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/standup-sh/standup/pkg/flux"
)

// Load is what a run saw of kustomize-controller's workers. Passes too short to show in the status,
// such as those of tiers turned away at their dependencies, are not in it.
type Load struct {
	// Workers is the --concurrent that the run assumed, or more if more passes ran at once.
	Workers int `json:"workers"`
	// Peak is the most passes seen at once.
	Peak int `json:"peak"`
	// Busy is the sum of all passes' time.
	Busy time.Duration `json:"busy"`
	// Saturated is how long every worker had a pass while another tier stood in the queue.
	Saturated time.Duration `json:"saturated"`
}

// Advice says what would have made the run faster, if the workers were its limit for a good part of
// it; otherwise it is empty.
func (l Load) Advice(elapsed time.Duration) string {
	if elapsed <= 0 || l.Saturated < elapsed/4 || l.Saturated < 10*time.Second {
		return ""
	}
	return fmt.Sprintf("kustomize-controller's %d workers were all busy for %s of %s while tiers waited: raise its --concurrent",
		l.Workers, l.Saturated.Round(time.Second), elapsed.Round(time.Second))
}

// meter measures a load from one snapshot to the next.
type meter struct {
	load            Load
	since           time.Time
	running, queued int
}

func newMeter(workers int) meter { return meter{load: Load{Workers: workers}} }

// observe accounts for the time since the last snapshot and reads this one.
func (m *meter) observe(s flux.Snapshot, now time.Time) {
	m.account(now)
	m.running, m.queued = 0, 0
	for _, k := range s.Kustomizations {
		switch {
		case k.Spec.Suspend:
		case flux.Classify(k).Reconciling:
			m.running++
		case queued(k):
			m.queued++
		}
	}
	m.load.Peak = max(m.load.Peak, m.running)
	m.load.Workers = max(m.load.Workers, m.running)
}

func (m *meter) account(now time.Time) {
	if !m.since.IsZero() {
		span := now.Sub(m.since)
		m.load.Busy += span * time.Duration(m.running)
		if m.running >= m.load.Workers && m.queued > 0 {
			m.load.Saturated += span
		}
	}
	m.since = now
}

// queued reports whether a tier waits for a worker: it was asked for a pass, or is new.
func queued(k *kustomizev1.Kustomization) bool {
	return len(k.Status.Conditions) == 0 ||
		!flux.Answered(k.Annotations[flux.RequestAnnotation], k.Status.LastHandledReconcileAt)
}
