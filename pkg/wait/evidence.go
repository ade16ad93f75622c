package wait

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// DefaultFluxNamespace is where Flux's controllers run unless something else is said.
const DefaultFluxNamespace = "flux-system"

// Evidence is what was read from the cluster about causes that a snapshot of Flux's objects cannot
// explain. Its zero value knows nothing, and [Diagnose] says less then; a map without an entry means
// not looked at, never absent. [Gather] fills it.
type Evidence struct {
	// FluxNamespace is where the controllers run; "" means [DefaultFluxNamespace].
	FluxNamespace string
	// Kinds holds what discovery says about kinds that Flux did not know.
	Kinds map[schema.GroupVersionKind]KindFact
	// Objects holds the objects that keep tiers from being healthy, by Kind/namespace/name.
	Objects map[string]ObjectFact
	// Services holds the services behind webhooks.
	Services map[tiers.Key]ServiceFact
	// Namespaces holds the phase of namespaces, "" for one that does not exist.
	Namespaces map[string]string
	// Controllers holds Flux's controllers, by name, such as "kustomize-controller".
	Controllers map[string]ControllerFact
	// LastFailures holds what the last failed pass of a tier ended with, for tiers whose next pass
	// runs: their conditions no longer say.
	LastFailures map[tiers.Key]LastFailure
	// Unread says what could not be read, as sentences, sorted.
	Unread []string
}

// LastFailure is the end of a failed pass.
type LastFailure struct {
	Reason, Message string
	// Revision is the revision that the pass tried; the failure says nothing of any other.
	Revision string
	At       time.Time
}

// KindFact is what discovery says about one kind.
type KindFact struct {
	Served     bool
	Namespaced bool
	// Versions are the versions of the group in which the kind is served.
	Versions []string
	// GroupServed says that the group is served at all, in whatever version.
	GroupServed bool
}

// ObjectFact is one object as kstatus reads it.
type ObjectFact struct {
	Status    string // kstatus's word, or NotFound
	Message   string
	Suspended bool // spec.suspend
	Pods      []PodFact
	Events    []string
}

// ServiceFact is one service and how many of its endpoints are ready.
type ServiceFact struct {
	Exists bool
	Ready  int
}

// ControllerState says whether a controller works, as far as can be told without a write.
type ControllerState string

// The states of a controller.
const (
	ControllerAlive   ControllerState = "alive"
	ControllerStopped ControllerState = "stopped"
	ControllerUnknown ControllerState = "unknown" // there is neither a Deployment nor a Lease to tell
)

// ControllerFact is what is known of one controller.
type ControllerFact struct {
	State ControllerState
	// Message says what the state was read from.
	Message string
	// Since is when it was last alive, if its Lease tells.
	Since time.Time
	// Flags are those of its Deployment, if that can be read.
	Flags Flags
}

func (e Evidence) fluxNamespace() string {
	if e.FluxNamespace == "" {
		return DefaultFluxNamespace
	}
	return e.FluxNamespace
}

// suspended tells whether an object is suspended, and whether that is known.
func (e Evidence) suspended(id string) (suspended, known bool) {
	fact, known := e.Objects[id]
	return fact.Suspended, known
}

// judge returns the objects that are known not to be current, with what is known about them.
func (w *walk) judge(ids []string) []WaitingObject {
	var waiting []WaitingObject
	for _, id := range ids {
		if fact, ok := w.evidence.Objects[id]; ok && fact.Status != "Current" {
			waiting = append(waiting, WaitingObject{ID: id, Status: fact.Status, Message: fact.Message, Pods: fact.Pods, Events: fact.Events})
		}
	}
	return waiting
}

// refine adds to a cause what the evidence knows about it.
func (w *walk) refine(d Diagnosis) Diagnosis {
	d.Unread = w.evidence.Unread
	for i, object := range d.Waiting {
		if fact, ok := w.evidence.Objects[object.ID]; ok {
			d.Waiting[i] = WaitingObject{ID: object.ID, Status: object.Status, Message: fact.Message, Pods: fact.Pods, Events: fact.Events}
			if fact.Status != "Current" {
				d.Waiting[i].Status = fact.Status
			} else {
				d.Waiting[i].Message = "healthy by now; Flux has not looked again"
			}
		}
	}
	switch d.Cause {
	case KindMissing:
		return w.refineKind(d)
	case WebhookDown:
		return w.refineWebhook(d)
	case NamespaceMissing:
		if phase := w.evidence.Namespaces[strings.TrimPrefix(d.Object, "Namespace/")]; phase == "Active" {
			d.Cause, d.Summary = AwaitingRetry, strings.TrimPrefix(d.Object, "Namespace/")+" exists by now; Flux has not looked again"
			d.Command = reconcileCommand(d.Tier)
		}
	case SourceNoArtifact, SourceNotFetched, ArtifactDownload:
		if fact := w.evidence.Controllers[sourceController]; fact.State == ControllerStopped {
			return w.stopped(sourceController, fact, d)
		}
	}
	return d
}

// refineKind tells apart a kind without a CRD, one that is served in other versions, and one that is
// served by now. The first kind that is really missing decides.
func (w *walk) refineKind(d Diagnosis) Diagnosis {
	served := 0
	for _, kind := range d.MissingKinds {
		fact, ok := w.evidence.Kinds[kind.GVK]
		switch {
		case !ok:
			return d
		case fact.Served:
			served++
			continue
		case len(fact.Versions) > 0:
			d.Cause = VersionNotServed
			d.Summary = fmt.Sprintf("kind %s is served as %s, not as %s", kind.GVK.Kind,
				groupVersions(kind.GVK.Group, fact.Versions), kind.GVK.GroupVersion())
			d.Hint = "use a served version in git, or upgrade the CRD"
			d.Command = fmt.Sprintf("kubectl api-resources --api-group=%s", kind.GVK.Group)
		case fact.GroupServed:
			d.Summary = fmt.Sprintf("no CRD for kind %s: the group %s is served without it", kind.GVK.Kind, kind.GVK.Group)
		default:
			d.Summary = fmt.Sprintf("no CRD for kind %s of %s", kind.GVK.Kind, kind.GVK.GroupVersion())
		}
		return d
	}
	if served > 0 {
		kind := d.MissingKinds[0].GVK
		d.Cause, d.Summary = DiscoveryStale, fmt.Sprintf("kind %s of %s is served by now; Flux has not looked again", kind.Kind, kind.GroupVersion())
		d.Command = reconcileCommand(d.Tier)
	}
	return d
}

func groupVersions(group string, versions []string) string {
	var names []string
	for _, v := range versions {
		names = append(names, schema.GroupVersion{Group: group, Version: v}.String())
	}
	return strings.Join(names, ", ")
}

func (w *walk) refineWebhook(d Diagnosis) Diagnosis {
	namespace, service, _ := strings.Cut(strings.TrimPrefix(d.Object, "Service/"), "/")
	fact, ok := w.evidence.Services[tiers.Key{Namespace: namespace, Name: service}]
	switch {
	case !ok:
	case !fact.Exists:
		d.Summary += fmt.Sprintf("; the Service %s/%s does not exist", namespace, service)
	case fact.Ready == 0:
		d.Summary += fmt.Sprintf("; the Service %s/%s has no ready endpoints", namespace, service)
	default:
		d.Summary += fmt.Sprintf("; by now the Service %s/%s has %d ready endpoints", namespace, service, fact.Ready)
	}
	return d
}

func (w *walk) stopped(controller string, fact ControllerFact, d Diagnosis) Diagnosis {
	return Diagnosis{
		Cause: ControllerDown, Tier: d.Tier, Object: "Deployment/" + w.evidence.fluxNamespace() + "/" + controller,
		Summary: fmt.Sprintf("%s is not running: %s", controller, fact.Message), FluxMessage: d.FluxMessage,
		Since: fact.Since, Unread: d.Unread,
		Command: fmt.Sprintf("kubectl -n %s get deployment,pods,lease", w.evidence.fluxNamespace()),
	}
}

// patience is how long a controller may take before silence means something: longer than any queue
// of short passes, and than the requeue of a dependency.
const patience = 2 * time.Minute

// busy describes a pass that runs, or that its controller died in.
func (w *walk) busy(k *kustomizev1.Kustomization, s TierStatus) Diagnosis {
	return w.overdue(k, Diagnosis{Cause: InProgress, Summary: firstLine(s.Message), FluxMessage: s.Message, Since: s.Since})
}

// overdue turns a pass that should long have ended into a controller that is not running.
func (w *walk) overdue(k *kustomizev1.Kustomization, d Diagnosis) Diagnosis {
	limit := k.GetTimeout() + patience
	silent := !d.Since.IsZero() && w.now.Sub(d.Since) > limit
	return w.silent(d, silent, fmt.Sprintf("a pass began %s ago and has not ended", roughly(w.now.Sub(d.Since))))
}

// idle describes a tier with nothing in its way that Flux has not begun with.
func (w *walk) idle(k *kustomizev1.Kustomization, s TierStatus) Diagnosis {
	d := Diagnosis{Cause: AwaitingRetry, Summary: firstLine(s.Message), FluxMessage: s.Message, Since: s.Since, RetryEvery: s.RetryEvery}
	d.Command = reconcileCommand(s.Key)
	switch {
	case s.State == Waiting:
		d.Summary = "nothing is in its way any more; Flux looks again within " + flux.DependencyRequeue.String()
	case s.State == Unknown:
		age := w.now.Sub(k.CreationTimestamp.Time)
		return w.silent(d, !k.CreationTimestamp.IsZero() && age > patience, "no controller has reported on the tier for "+roughly(age))
	}
	asked, token := lastRequest(k)
	return w.silent(d, token && w.now.Sub(asked) > patience, fmt.Sprintf("asked to reconcile %s ago, it has not answered", roughly(w.now.Sub(asked))))
}

// silent replaces d when the controller does not work: known from the evidence, or guessed from a
// silence that the evidence does not explain.
func (w *walk) silent(d Diagnosis, silence bool, why string) Diagnosis {
	const controller = kustomizeController
	fact, known := w.evidence.Controllers[controller]
	switch {
	case fact.State == ControllerStopped:
		return w.stopped(controller, fact, d)
	case silence && fact.State == ControllerAlive:
		d.Summary += "; " + why + ": all its workers may be busy"
	case silence && (!known || fact.State == ControllerUnknown):
		return w.stopped(controller, ControllerFact{Message: why, Since: d.Since}, d)
	}
	return d
}

// lastRequest is when the last request that is not answered yet was made, if its token tells.
func lastRequest(k *kustomizev1.Kustomization) (time.Time, bool) {
	if flux.Answered(k.Annotations[flux.RequestAnnotation], k.Status.LastHandledReconcileAt) {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, k.Annotations[flux.RequestAnnotation])
	return at, err == nil
}

// roughly rounds a duration to what a person would say.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// healthChecked lists the objects that a tier's health check looks at, as Kind/namespace/name in the
// order of the inventory or of spec.healthChecks; nil for a tier without one. The tier itself is not
// among them: checkHealth in kustomize-controller leaves it out.
func healthChecked(k *kustomizev1.Kustomization) []string {
	var ids []string
	switch {
	case k.Spec.Wait && k.Status.Inventory != nil:
		for _, entry := range k.Status.Inventory.Entries {
			if object, ok := parseInventoryID(entry.ID); ok {
				ids = append(ids, object.id())
			}
		}
	case !k.Spec.Wait:
		for _, check := range k.Spec.HealthChecks {
			namespace := check.Namespace
			ids = append(ids, objectID(check.Kind, namespace, check.Name))
		}
	}
	self := "Kustomization/" + k.Namespace + "/" + k.Name
	return slices.DeleteFunc(ids, func(id string) bool { return id == self })
}

// mayBeUnhealthy leaves out the kinds that kstatus calls current as soon as they exist.
func mayBeUnhealthy(id string) bool {
	kind, _, _ := strings.Cut(id, "/")
	switch kind {
	case "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Namespace",
		"NetworkPolicy", "PriorityClass", "StorageClass", "IngressClass", "LimitRange", "ResourceQuota",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return false
	}
	return true
}

func objectID(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// defaultCommand is what helps where the text itself names nothing better.
func (w *walk) defaultCommand(key tiers.Key, d Diagnosis) string {
	switch d.Cause {
	case KindMissing:
		if w.entry != "" {
			return "standup crds --path " + w.entry
		}
		return "standup crds"
	case BuildFailed, VariableMissing, SubstituteFailed, PathMissing, DecryptionNotSet, Invalid, AdmissionDenied, NamespaceUnset, Immutable:
		return "" // git has to change
	}
	return fmt.Sprintf("kubectl -n %s describe kustomization.kustomize.toolkit.fluxcd.io %s", key.Namespace, key.Name)
}
