package wait

import (
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// State is where a tier stands on the way to Ready.
type State string

// The states.
const (
	// Ready: applied, and healthy if it is a gate, at the source's current revision.
	Ready State = "ready"
	// Reconciling: a pass runs, or the source has a revision that no pass has begun with yet.
	Reconciling State = "reconciling"
	// Waiting: turned away at a dependency or at a source without an artifact.
	Waiting State = "waiting"
	// Failed: the last pass failed. Flux may try again: see TierStatus.RetryEvery.
	Failed State = "failed"
	// Suspended: spec.suspend is set on the cluster.
	Suspended State = "suspended"
	// Missing: the graph has the tier, the cluster has no such Kustomization.
	Missing State = "missing"
	// Unknown: the Kustomization exists and no controller has reported on it.
	Unknown State = "unknown"
)

// TierStatus is the state of one tier at one moment.
type TierStatus struct {
	tiers.Key
	Wave  int
	State State
	// Since is when Flux last changed its mind about the tier; zero when it never said anything.
	// While dependencies keep a tier waiting it stays the same over many passes.
	Since time.Time
	// Revision is what was last applied successfully, SourceRevision what the source now has; each
	// is empty when there is none.
	Revision, SourceRevision string
	// Reason and Message are Flux's own, or standup's where Flux has none; Message is masked.
	Reason, Message string
	// NextRetry is when Flux alone tries again; zero when there is no telling, or it is overdue.
	NextRetry time.Time
	// RetryEvery is the interval of these tries; zero when Flux does not come back by itself.
	RetryEvery time.Duration
}

// Settled reports whether nothing is left to wait for.
func (s TierStatus) Settled() bool { return s.State == Ready }

// Status tells the state of every tier of the graph, in the graph's order. It is a pure function: a
// tier is what its Kustomization in the snapshot says, and the revision that counts is that of its
// source in the snapshot.
func Status(graph *tiers.Graph, snapshot flux.Snapshot, now time.Time) []TierStatus {
	statuses := make([]TierStatus, 0, len(graph.Tiers))
	for _, t := range graph.Tiers {
		statuses = append(statuses, tierStatus(t, snapshot, now))
	}
	return statuses
}

func tierStatus(t *tiers.Tier, snapshot flux.Snapshot, now time.Time) TierStatus {
	s := TierStatus{Key: t.Key, Wave: t.Wave}
	k := snapshot.Kustomizations[t.Key]
	if k == nil {
		s.State, s.Reason, s.Message = Missing, flux.ReasonNotFound, "not on the cluster"
		return s
	}
	status := flux.Classify(k)
	s.Reason, s.Message, s.Since = status.Reason, Mask(status.Message), status.Since.Time
	s.Revision = k.Status.LastAppliedRevision
	source := snapshot.Sources[flux.SourceOf(k)]
	if source != nil {
		s.SourceRevision = source.Revision
	}
	retry := flux.NextRetry(k)
	s.RetryEvery = retry.Every
	if retry.At.After(now) {
		s.NextRetry = retry.At
	}
	s.State = stateOf(status)
	switch {
	case s.State == Ready && !flux.Settled(k, snapshot):
		s.behind(k, source)
	case s.State == Suspended:
		s.Message = suspendedMessage(k)
	case s.Message == "" && s.Reason == flux.ReasonNoStatus:
		s.Message = "no controller has reported on it yet"
	case s.Reason == flux.ReasonNotObserved:
		s.Message = fmt.Sprintf("generation %d has not been reconciled yet", k.Generation)
	case s.Reason == flux.ReasonTerminating:
		s.Message = "being deleted"
	case s.State == Reconciling:
		s.Message = progress(k, s.Message)
	}
	return s
}

func stateOf(status flux.Status) State {
	switch status.State {
	case flux.Ready:
		return Ready
	case flux.Suspended:
		return Suspended
	case flux.MayHeal, flux.Final:
		return Failed
	case flux.Pending:
		if status.Reason == meta.DependencyNotReadyReason || status.Reason == meta.ArtifactFailedReason {
			return Waiting
		}
		return Reconciling
	default:
		return Unknown
	}
}

// behind corrects the state of a tier that Flux calls ready and whose source has moved on, or away.
func (s *TierStatus) behind(k *kustomizev1.Kustomization, source *flux.Source) {
	switch {
	case source == nil:
		s.State, s.Message = Waiting, fmt.Sprintf("its source %s does not exist", flux.SourceOf(k))
	case source.Revision == "":
		s.State, s.Message = Waiting, fmt.Sprintf("its source %s has no artifact", source.SourceRef)
	default:
		s.State, s.Message = Reconciling, fmt.Sprintf("applied %s, the source is at %s", revisionOrNone(s.Revision), source.Revision)
	}
}

func suspendedMessage(k *kustomizev1.Kustomization) string {
	if k.Status.LastAppliedRevision == "" {
		return "suspended, never applied"
	}
	return "suspended at " + k.Status.LastAppliedRevision
}

// progress prefers what the Reconciling condition says: it names the step of the pass.
func progress(k *kustomizev1.Kustomization, message string) string {
	c := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReconcilingCondition)
	if c != nil && c.Reason == meta.ProgressingReason && c.Message != "" {
		return Mask(c.Message)
	}
	return message
}

func revisionOrNone(revision string) string {
	if revision == "" {
		return "nothing"
	}
	return revision
}
