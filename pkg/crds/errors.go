package crds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/tiers"
)

// RevisionError says that the cluster is at another revision than the graph: what would be applied
// is not what Flux is going to apply. Nothing was written when it is returned by a call that has no
// writes in its outcome.
type RevisionError struct {
	Tier           tiers.Key
	Graph, Cluster string
}

func (e *RevisionError) Error() string {
	return fmt.Sprintf("Kustomization/%s: the cluster is at revision %s, what was read is %s", e.Tier, e.Cluster, e.Graph)
}

// BeginError says that Options.Begin did not let a call write. Nothing was written.
type BeginError struct{ Err error }

func (e *BeginError) Error() string { return e.Err.Error() }

// Unwrap returns the error of Options.Begin.
func (e *BeginError) Unwrap() error { return e.Err }

// NotYetError says that a tier cannot be freed now, and what has to happen first.
type NotYetError struct {
	Tier   tiers.Key
	Reason string
}

func (e *NotYetError) Error() string {
	return fmt.Sprintf("Kustomization/%s: cannot be freed yet: %s", e.Tier, e.Reason)
}

// OperatorNotRunningError says that the operator that must answer a trigger is not there, or is not
// available.
type OperatorNotRunningError struct {
	Operator string // the catalogue's name
	Object   string // the trigger
	Workload string // Kind/namespace/name; empty when there is none on the cluster
	Message  string
}

func (e *OperatorNotRunningError) Error() string {
	if e.Workload == "" {
		return fmt.Sprintf("%s: %s does not run on this cluster: %s", e.Object, e.Operator, e.Message)
	}
	return fmt.Sprintf("%s: %s is not available: %s: %s", e.Object, e.Operator, e.Workload, e.Message)
}

// TriggerFailedError says that the controller of a trigger reports a failure on it.
type TriggerFailedError struct {
	Object                     string // the trigger
	Condition, Reason, Message string
}

func (e *TriggerFailedError) Error() string {
	return fmt.Sprintf("%s: its controller reports %s (%s): %s", e.Object, e.Condition, e.Reason, e.Message)
}

// OrphanError says that an operator waits because CRDs that it means to create exist already, and
// nothing of it says that they are its own.
type OrphanError struct {
	Operator string
	Object   string   // the trigger
	CRDs     []string // names, sorted
	Link     string   // where this behaviour of the operator is described
}

func (e *OrphanError) Error() string {
	return fmt.Sprintf("%s: %s does not deploy while CRDs of its own exist that it did not create: %s", e.Object, e.Operator, strings.Join(e.CRDs, ", "))
}

// EncryptedError says that an object that is needed is encrypted in git, and so cannot be applied.
type EncryptedError struct {
	Object string // the encrypted object
	Needed string // what needs it; the same object when it is the trigger itself
}

func (e *EncryptedError) Error() string {
	if e.Object == e.Needed {
		return e.Object + ": it is encrypted with SOPS; only Flux can apply it"
	}
	return fmt.Sprintf("%s: it needs %s, which is encrypted with SOPS; only Flux can apply that", e.Needed, e.Object)
}

// ConflictError says that someone else than Flux owns fields that git wants otherwise.
type ConflictError struct {
	Object string
	Fields []string // one a field: its path and the manager that owns it
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: applying: others own fields that git sets: %s", e.Object, strings.Join(e.Fields, "; "))
}

// RefusedError says that the API server, or a webhook, refused an object.
type RefusedError struct {
	Object string
	// DryRun says that nothing of this round was written.
	DryRun bool
	Err    error
}

func (e *RefusedError) Error() string {
	what := "applying"
	if e.DryRun {
		what = "dry run"
	}
	return fmt.Sprintf("%s: %s: %v", e.Object, what, e.Err)
}

// Unwrap returns the API server's answer.
func (e *RefusedError) Unwrap() error { return e.Err }

// NotServedError says that kinds did not appear in time.
type NotServedError struct {
	Tier  tiers.Key
	Kinds []schema.GroupVersionKind
	// Cause is the most that can be said of why; may be nil.
	Cause error
}

func (e *NotServedError) Error() string {
	text := fmt.Sprintf("Kustomization/%s: still waiting for %s", e.Tier, kindList(e.Kinds))
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *NotServedError) Unwrap() error { return e.Cause }

// UnknownProviderError says that everything of a tier that can be applied is applied, and nothing
// of it has brought the kinds that are missing.
type UnknownProviderError struct {
	Tier  tiers.Key
	Kinds []schema.GroupVersionKind
}

func (e *UnknownProviderError) Error() string {
	return fmt.Sprintf("Kustomization/%s: nothing is known to bring %s, and all else of the tier is applied", e.Tier, kindList(e.Kinds))
}

// PassError says that a tier's next pass did not succeed although its kinds are there.
type PassError struct {
	Tier            tiers.Key
	Reason, Message string
	// Running says that the pass had not ended when time was up.
	Running bool
}

func (e *PassError) Error() string {
	if e.Running {
		return fmt.Sprintf("Kustomization/%s: its pass has not ended: %s: %s", e.Tier, e.Reason, e.Message)
	}
	return fmt.Sprintf("Kustomization/%s: %s: %s", e.Tier, e.Reason, e.Message)
}

// kindList writes kinds as Kind.group/version, sorted.
func kindList(kinds []schema.GroupVersionKind) string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, kindName(k))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// kindName writes a kind as messages do: StorageProfile (cdi.kubevirt.io/v1beta1).
func kindName(k schema.GroupVersionKind) string {
	return fmt.Sprintf("%s (%s)", k.Kind, k.GroupVersion())
}

// MissingKindError says that a tier needs a kind that the cluster lacks and that nothing which is
// known will bring.
type MissingKindError struct {
	Tier    tiers.Key
	Missing Missing
}

func (e *MissingKindError) Error() string {
	return fmt.Sprintf("Kustomization/%s: %s is missing: %s", e.Tier, kindName(e.Missing.GroupVersionKind), e.Missing.Reason)
}
