package wait

import (
	"slices"
	"time"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Cause names why a tier is not ready. The values are stable: scripts may compare them.
type Cause string

// The causes that lie with a source.
const (
	SourceMissing    Cause = "source-missing"     // the source object does not exist
	SourceSuspended  Cause = "source-suspended"   // suspended before it had the artifact that is needed
	SourceNotFetched Cause = "source-not-fetched" // source-controller cannot fetch it
	SourceNoArtifact Cause = "source-no-artifact" // fetched by nobody yet
	SourceInTier     Cause = "source-in-tier"     // the tier waits for the very source it is read from
	ArtifactDownload Cause = "artifact-download"  // kustomize-controller cannot get the artifact
	PathMissing      Cause = "path-missing"       // the revision does not have spec.path
)

// The causes that lie with the build.
const (
	BuildFailed         Cause = "build-failed"          // kustomize does not build it
	SubstituteMissing   Cause = "substitute-missing"    // a ConfigMap or Secret of substituteFrom is missing
	VariableMissing     Cause = "variable-missing"      // a ${VARIABLE} has no value and no default
	SubstituteFailed    Cause = "substitute-failed"     // a substitution that is not well-formed
	DecryptionKey       Cause = "decryption-key"        // the key for SOPS is missing or does not fit
	DecryptionNotSet    Cause = "decryption-not-set"    // an encrypted Secret in a tier without spec.decryption
	DecryptionFailed    Cause = "decryption-failed"     // the file, not the key
	ExpressionInvalid   Cause = "expression-invalid"    // a CEL expression that does not compile
	FeatureGateDisabled Cause = "feature-gate-disabled" // needs a feature gate of the controller
)

// The causes that lie with the apply.
const (
	KindMissing          Cause = "kind-missing"          // no CRD for a kind
	VersionNotServed     Cause = "version-not-served"    // the kind is served in other versions only
	DiscoveryStale       Cause = "discovery-stale"       // served by now; Flux has not looked again
	WebhookDown          Cause = "webhook-down"          // an admission or conversion webhook does not answer
	AdmissionDenied      Cause = "admission-denied"      // an admission webhook or policy said no
	NamespaceMissing     Cause = "namespace-missing"     // the object's namespace does not exist
	NamespaceTerminating Cause = "namespace-terminating" // the object's namespace is being deleted
	NamespaceUnset       Cause = "namespace-unset"       // a namespaced object without a namespace
	Forbidden            Cause = "forbidden"             // the account that applies may not
	ImpersonationDenied  Cause = "impersonation-denied"  // the controller may not act as the service account
	CrossNamespace       Cause = "cross-namespace"       // references across namespaces are blocked
	Immutable            Cause = "immutable"             // a field that cannot be changed
	Conflict             Cause = "conflict"              // another field manager, or a write that raced
	Invalid              Cause = "invalid"               // the API server refuses the object
	StageTimeout         Cause = "stage-timeout"         // CRDs, namespaces or classes not ready within a minute
	PruneFailed          Cause = "prune-failed"          // an object that left git cannot be deleted
	APIUnavailable       Cause = "api-unavailable"       // the API server did not answer the controller
)

// The causes that lie with readiness and order.
const (
	HealthCheckFailed    Cause = "health-check-failed"    // applied, and something is not healthy
	HelmReleaseSuspended Cause = "helmrelease-suspended"  // a waiting tier waits for a suspended release
	HelmReleaseFailed    Cause = "helmrelease-failed"     // a waiting tier waits for a failed release
	ChildSuspended       Cause = "child-suspended"        // a waiting parent waits for a suspended tier
	DependencySuspended  Cause = "dependency-suspended"   // suspended, and not at the current revision
	TierSuspended        Cause = "suspended"              // suspended, and nothing else waits for it
	DependencyMissing    Cause = "dependency-missing"     // dependsOn names what does not exist
	ExpressionFalse      Cause = "expression-false"       // a readyExpr that is not true (yet)
	Cycle                Cause = "cycle"                  // tiers that wait for each other
	NotApplied           Cause = "not-applied"            // in git, and not on the cluster
	ControllerDown       Cause = "controller-not-running" // nobody reconciles
	AwaitingRetry        Cause = "awaiting-retry"         // nothing is in the way; Flux has not looked again
	InProgress           Cause = "in-progress"            // a pass is running: no failure
	NotUnderstood        Cause = "unknown"                // Flux's message says what standup cannot tell
)

// Failure reports whether the cause is one that time alone may not cure. The others are what a
// healthy start looks like from outside.
func (c Cause) Failure() bool { return c != InProgress && c != AwaitingRetry }

// Diagnosis is one first cause and what it holds up.
type Diagnosis struct {
	Cause Cause
	// Tier is the tier in which the cause shows; of several, the first in the graph's order.
	Tier tiers.Key
	// Object is what the cause is about, as Kind/namespace/name; empty when it is the tier itself.
	Object string
	// Summary is one line in standup's words, without a final full stop.
	Summary string
	// Hint is one line that says what to change, where no command can help; may be empty.
	Hint string
	// FluxMessage is what Flux says itself, masked; empty when it says nothing.
	FluxMessage string
	// Since is when Flux first said so; zero when unknown.
	Since time.Time
	// Blocks are the other tiers that cannot become ready before this is cured, in the graph's order.
	Blocks []tiers.Key
	// Path is the way round for [Cycle], its first tier repeated at the end; empty otherwise.
	Path []tiers.Key
	// MissingKinds are the kinds that Flux's message says are not known.
	MissingKinds []flux.MissingKind
	// Waiting are the objects that are not healthy, as "Kind/namespace/name" in the order of the
	// message, with what [Gather] found out about them.
	Waiting []WaitingObject
	// NextRetry is when Flux alone tries again; zero when there is no telling. RetryEvery is the
	// interval; zero when Flux does not try again before something changes.
	NextRetry  time.Time
	RetryEvery time.Duration
	// Retrying says that the next pass runs already.
	Retrying bool
	// Command is what to run next; empty when there is nothing to run.
	Command string
	// Unread says what could not be looked at, and why; sorted.
	Unread []string

	// candidates are objects that may be what a running health check waits for; their states are
	// known only after Gather.
	candidates []string
}

// WaitingObject is one object that keeps a tier from being healthy.
type WaitingObject struct {
	ID string // Kind/namespace/name
	// Status is kstatus's word: InProgress, Failed, NotFound, Terminating, Unknown.
	Status string
	// Message is kstatus's reading of the object; empty before [Gather].
	Message string
	// Pods are the object's pods that do not run, Events the last warnings about it and them.
	Pods   []PodFact
	Events []string
}

// PodFact says why a pod does not run.
type PodFact struct {
	Name  string
	Phase string
	// Waiting are the reasons of its containers, such as "app: ImagePullBackOff: Back-off pulling
	// image"; or why it is not scheduled.
	Waiting []string
}

// HoldsUp reports whether a tier cannot become ready before the cause is cured.
func (d Diagnosis) HoldsUp(key tiers.Key) bool {
	return d.Tier == key || slices.Contains(d.Blocks, key)
}

// Key identifies a cause across snapshots: two diagnoses with the same key are the same trouble. A
// cause that lies outside the tiers, such as a source or a webhook, has one key for all of them.
func (d Diagnosis) Key() string {
	key := string(d.Cause)
	if len(d.MissingKinds) > 0 {
		for _, kind := range d.MissingKinds {
			key += " " + kind.GVK.String()
		}
		return key
	}
	if d.Object != "" && d.Cause.outside() {
		return key + " " + d.Object
	}
	return key + " " + d.Tier.String() + " " + d.Object
}

// outside reports whether the cause's object may hold up several tiers at once.
func (c Cause) outside() bool {
	switch c {
	case SourceMissing, SourceSuspended, SourceNotFetched, SourceNoArtifact, WebhookDown, NamespaceMissing,
		NamespaceTerminating, DependencyMissing, ControllerDown, SubstituteMissing, DecryptionKey, Cycle:
		return true
	}
	return false
}

// Final reports whether time alone does not cure the cause: by what Flux's own rules say of the
// failure, and otherwise by its nature.
func (d Diagnosis) Final(snapshot flux.Snapshot) bool {
	switch d.Cause {
	case Cycle, TierSuspended, ChildSuspended, DependencySuspended, HelmReleaseSuspended, HelmReleaseFailed, SourceSuspended, SourceInTier,
		HealthCheckFailed, PruneFailed, Forbidden, ImpersonationDenied, AdmissionDenied, Immutable, Invalid, StageTimeout, VersionNotServed:
		return true
	case InProgress, AwaitingRetry, DependencyMissing, NotApplied, ControllerDown:
		return false // may still come
	}
	return flux.Classify(snapshot.Kustomizations[d.Tier]).State == flux.Final
}
