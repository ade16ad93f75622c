package resume

import (
	"context"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Options say what [Run] and a [Dispatcher] do. Only Graph must be set.
type Options struct {
	// Graph is the order to follow. Tiers that are not in it are never touched.
	Graph *tiers.Graph
	// Selection leaves tiers of the graph out.
	Selection Selection
	// Rules are Flux's rules under the cluster's feature gates; nil is Flux as shipped.
	Rules *flux.Rules
	// IncludeSuspendedInGit also resumes what git itself suspends. The parent's next pass suspends
	// it again.
	IncludeSuspendedInGit bool
	// ResetHelm resets HelmReleases whose retries are exhausted, once a run.
	ResetHelm bool
	// ForceHelm forces an install or upgrade of those instead, once a run.
	ForceHelm bool
	// FailFast ends the run at the first tier that has failed for good, instead of bringing up the
	// rest of the graph first.
	FailFast bool
	// Workers is kustomize-controller's --concurrent; 0 is its default, 4.
	Workers int
	// Parallel bounds the patches in flight; 0 is 16.
	Parallel int
	// Timeout bounds the whole run; 0 derives it from the graph's critical path (see [TotalLimit]).
	Timeout time.Duration
	// TierTimeout bounds each tier from the moment it could start; 0 derives it from Flux's own
	// timeout for the tier (see [TierLimit]).
	TierTimeout time.Duration
	// Stuck reports whether no pass of the tier can succeed before Free has been called for it. It
	// is asked often, must be quick and must not change anything. Nil: no tier is stuck.
	Stuck func(tiers.Key, flux.Snapshot) bool
	// Suspected reports whether a tier that has failed may be stuck: what it lacks may come by itself,
	// or only once Free has been called. Free is called for it too, but not before nothing else moves.
	// Like Stuck it is asked often. Nil: none is.
	Suspected func(tiers.Key, flux.Snapshot) bool
	// Free makes a stuck tier's next pass possible. It is called once the tier's dependencies are
	// ready and before it is resumed or nudged, from a goroutine of its own. Nil: never called.
	Free func(context.Context, tiers.Key) (FreeOutcome, error)
	// Lease is taken before the first write and released at the end; nil: none.
	Lease Lease
}

// FreeOutcome is what an [Options.Free] achieved.
type FreeOutcome struct {
	// Freed says that the tier's next pass can find its kinds. The tier is then asked for one.
	Freed bool
	// Retry says when to try again if not Freed; 0 means never: the tier goes on as Flux has it.
	Retry time.Duration
	// Applied counts the objects that were written, also beside an error.
	Applied int
	// Hopeless says, beside an error, that no repeat helps.
	Hopeless bool
	// Message says in one line what was written or waited for.
	Message string
}

// The defaults of Options.
const (
	DefaultWorkers  = 4
	DefaultParallel = 16
)

func (o Options) withDefaults() Options {
	if o.Rules == nil {
		o.Rules = new(flux.Rules)
	}
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	return o
}
