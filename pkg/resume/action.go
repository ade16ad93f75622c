package resume

import "time"

// Verb is what an action does.
type Verb string

// The verbs.
const (
	// Resume takes suspend off and asks for a pass, in one patch.
	Resume Verb = "resume"
	// Nudge asks for a pass.
	Nudge Verb = "nudge"
	// Reset asks helm-controller for a pass that forgets the failures counted so far.
	Reset Verb = "reset"
	// Force asks helm-controller for a pass that installs or upgrades a release whatever its state.
	Force Verb = "force"
	// Free calls [Options.Free] for a tier.
	Free Verb = "free"
	// Suspend sets suspend; only [SuspendTiers] does that.
	Suspend Verb = "suspend"
)

// Why is the occasion of an action.
type Why string

// The occasions.
const (
	// WhySuspended: the object is suspended and all that it needs is ready.
	WhySuspended Why = "suspended"
	// WhyDependencies: Flux turned the object away at its dependencies, and now all are ready.
	WhyDependencies Why = "dependencies ready"
	// WhyHeal: the last pass failed for a reason that may have passed.
	WhyHeal Why = "failure may have healed"
	// WhyIdle: Flux should have begun a pass by itself and has not, as with a source whose
	// Kustomizations form a cycle somewhere.
	WhyIdle Why = "not started by itself"
	// WhyNew: the object has just been created, and its controller would leave it for a moment.
	WhyNew Why = "new"
	// WhyFreed: the tier has just been freed.
	WhyFreed Why = "freed"
	// WhyStuck: no pass of the tier can succeed before it is freed.
	WhyStuck Why = "stuck"
	// WhySuspected: the tier may be stuck, and nothing else moves that could bring what it lacks.
	WhySuspected Why = "may be stuck"
	// WhyReset: the release's retries are exhausted.
	WhyReset Why = "retries exhausted"
	// WhyAsked: the caller wants it.
	WhyAsked Why = "asked"
)

// Action is one thing to do now.
type Action struct {
	Verb   Verb
	Object Object
	Why    Why
}

// Phase is where an object stands in a run.
type Phase string

// The phases.
const (
	// Settled: ready at the latest generation and at its source's revision.
	Settled Phase = "settled"
	// Working: a pass runs, or is about to.
	Working Phase = "working"
	// Blocked: it waits for others that can still come.
	Blocked Phase = "blocked"
	// Failing: its last pass failed, and another one is to come.
	Failing Phase = "failing"
	// Stopped: it cannot come up in this run.
	Stopped Phase = "stopped"
	// Held: it is left alone on purpose, and the run does not wait for it.
	Held Phase = "held"
)

// Cause says why an object is Stopped or Held.
type Cause string

// The causes. Blocker means that another object is to blame, and says which.
const (
	CauseFailed      Cause = "failed"             // its last failure is final
	CauseTimeout     Cause = "timed out"          // it had its time
	CauseAbsent      Cause = "absent"             // it does not exist and nothing will create it
	CauseSuspended   Cause = "suspended in git"   // intent, left alone
	CauseUnselected  Cause = "not selected"       // left alone, as told
	CauseBlocker     Cause = "blocked"            // it needs something that is stopped
	CauseCycle       Cause = "cycle"              // it needs itself
	CauseExpression  Cause = "invalid expression" // a readyExpr does not compile
	CauseSource      Cause = "source unavailable" // its source has no artifact and will not get one
	CauseTerminating Cause = "terminating"        // it is being deleted
	CauseNone        Cause = ""
)

// Link says how an object needs another one.
type Link string

// The links.
const (
	LinkDependency Link = "dependency" // spec.dependsOn
	LinkParent     Link = "parent"     // it is applied by it
	LinkSource     Link = "source"     // it reads it
	LinkChild      Link = "child"      // it waits for its health
)

// Blocker is an object that must come before another one can go on.
type Blocker struct {
	Object  Object `json:"object"`
	Link    Link   `json:"link"`
	Message string `json:"message,omitempty"`
}

// Decision is what a [Dispatcher] makes of a snapshot.
type Decision struct {
	// Actions are to be done now, sources first, then tiers and releases in the order of the graph.
	Actions []Action
	// Standings are where everything stands: the sources and the releases of the selected tiers,
	// every tier of the graph in its order, and what they need that neither is there nor will come.
	Standings []Standing
	// Wake is when to decide again even if nothing changes; zero: never.
	Wake time.Time
	// Done says that nothing more can be done or waited for: every selected tier is settled, held
	// or stopped, and no release remains to be resumed.
	Done bool
	// Memory replaces the memory that the decision was made with.
	Memory Memory
}
