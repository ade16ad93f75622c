package crds

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa/normalize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// fluxManager is the field manager of kustomize-controller.
const fluxManager = "kustomize-controller"

// prepared is the object as kustomize-controller would send it: normalised, with the labels that
// say whose it is.
//
// It mirrors apply in kustomize-controller's internal/controller/kustomization_controller.go.
func prepared(w wanted) (*unstructured.Unstructured, error) {
	object := w.DeepCopy()
	if err := normalize.Unstructured(object); err != nil {
		return nil, refusal(w, true, err)
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kustomizev1.GroupVersion.Group+"/name"] = w.tier.Name
	labels[kustomizev1.GroupVersion.Group+"/namespace"] = w.tier.Namespace
	object.SetLabels(labels)
	return object, nil
}

// managerFor is the field manager to apply an object with. Flux does not take over the fields of an
// object that says ssa: Merge, and does not touch again one that says ssa: IfNotPresent: those are
// applied under the name that Flux itself would have used, so that no other is left on them.
func managerFor(object *unstructured.Unstructured) string {
	keep := map[string]string{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.MergeValue}
	once := map[string]string{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.IfNotPresentValue}
	if ssautil.AnyInMetadata(object, keep) || ssautil.AnyInMetadata(object, once) {
		return fluxManager
	}
	return FieldManager
}

// decision is what applying one object would do, found out by a server-side dry run.
type decision struct {
	wanted
	object *unstructured.Unstructured
	action Action
	force  bool
	// later says that the dry run cannot be made before something else of the round exists.
	later bool
	// skip says that Flux leaves the object alone, and so do we.
	skip bool
}

// decide asks the API server what applying an object would do. It writes nothing.
func (f *freer) decide(ctx context.Context, w wanted, created []wanted) (decision, error) {
	object, err := prepared(w)
	if err != nil {
		return decision{}, err
	}
	d := decision{wanted: w, object: object}
	client, ok := f.resource(object)
	if !ok {
		d.later, d.action = true, Created
		return d, nil
	}
	live, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return d, refusal(w, true, err)
	}
	if err != nil {
		live = nil
	}
	d.skip = flux.Skipped(object, live)
	if d.skip || (live != nil && w.absentOnly) {
		d.action = Unchanged
		return d, nil
	}
	return f.dryRun(ctx, client, d, live, created)
}

func (f *freer) dryRun(ctx context.Context, client dynamic.ResourceInterface, d decision, live *unstructured.Unstructured, created []wanted) (decision, error) {
	result, err := client.Apply(ctx, d.object.GetName(), d.object, metav1.ApplyOptions{FieldManager: managerFor(d.object), DryRun: []string{metav1.DryRunAll}})
	if managers := conflicting(err); len(managers) > 0 && ownedByTier(live, d.tier.Key) && !slices.ContainsFunc(managers, func(m string) bool { return m != fluxManager }) {
		// Flux itself applied the older value of this very tier and is about to overwrite it.
		d.force = true
		result, err = client.Apply(ctx, d.object.GetName(), d.object, metav1.ApplyOptions{FieldManager: managerFor(d.object), DryRun: []string{metav1.DryRunAll}, Force: true})
	}
	switch {
	case namespaceMissing(err) && slices.ContainsFunc(created, func(w wanted) bool { return w.GetKind() == "Namespace" && w.GetName() == d.object.GetNamespace() }):
		d.later, d.action = true, Created
		return d, nil
	case err != nil:
		return d, refusal(d.wanted, true, err)
	case live == nil:
		d.action = Created
	case sameContent(live, result):
		d.action = Unchanged
	default:
		d.action = Configured
	}
	return d, nil
}

// write applies an object for good. Its dry run has succeeded, or could not be made before.
func (f *freer) write(ctx context.Context, d decision) error {
	client, ok := f.resource(d.object)
	if !ok {
		return &RefusedError{Object: d.ID(), Err: &meta.NoKindMatchError{GroupKind: d.object.GroupVersionKind().GroupKind(), SearchedVersions: []string{d.object.GroupVersionKind().Version}}}
	}
	if err := f.opts.begun.once(ctx); err != nil {
		return err
	}
	_, err := client.Apply(ctx, d.object.GetName(), d.object, metav1.ApplyOptions{FieldManager: managerFor(d.object), Force: d.force})
	if err != nil {
		return refusal(d.wanted, false, err)
	}
	return nil
}

// resource finds where an object is written, as far as its kind is served.
func (f *freer) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, bool) {
	gvk := object.GroupVersionKind()
	r, ok := f.served.Resource(gvk)
	if !ok || r.Plural == "" {
		return nil, false
	}
	client := f.clients.Dynamic.Resource(gvk.GroupVersion().WithResource(r.Plural))
	if !r.Namespaced {
		object.SetNamespace("") // a namespace transformer may have set one
		return client, true
	}
	return client.Namespace(object.GetNamespace()), true
}

func ownedByTier(live *unstructured.Unstructured, tier tiers.Key) bool {
	if live == nil {
		return false
	}
	labels := live.GetLabels()
	return labels[kustomizev1.GroupVersion.Group+"/name"] == tier.Name && labels[kustomizev1.GroupVersion.Group+"/namespace"] == tier.Namespace
}

// sameContent compares two objects without what the API server keeps about them.
func sameContent(a, b *unstructured.Unstructured) bool {
	strip := func(u *unstructured.Unstructured) map[string]any {
		c := u.DeepCopy()
		c.SetManagedFields(nil)
		c.SetResourceVersion("")
		c.SetGeneration(0)
		return c.Object
	}
	return equality.Semantic.DeepEqual(strip(a), strip(b))
}

func namespaceMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// conflicting lists the managers that a server-side apply conflicts with.
func conflicting(err error) []string {
	var managers []string
	for _, cause := range conflictCauses(err) {
		if m := regexp.MustCompile(`conflict with "([^"]+)"`).FindStringSubmatch(cause.Message); m != nil {
			managers = append(managers, m[1])
		}
	}
	return managers
}

func conflictCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict
	})
}

// refusal turns the API server's answer into the typed error. What it says about a Secret is cut
// down to its reason: the message may quote values. In an object that was built with variables from
// Secrets only the values are left out that it quotes.
func refusal(w wanted, dryRun bool, err error) error {
	object := w.ID()
	switch {
	case w.GetKind() == "Secret":
		err = unquoted(err)
	case substitutesSecrets(w.tier):
		err = masked(err)
	}
	if causes := conflictCauses(err); len(causes) > 0 {
		var fields []string
		for _, c := range causes {
			fields = append(fields, c.Field+" ("+strings.TrimPrefix(c.Message, "conflict with ")+")")
		}
		slices.Sort(fields)
		return &ConflictError{Object: object, Fields: fields}
	}
	return &RefusedError{Object: object, DryRun: dryRun, Err: err}
}

// unquoted replaces an answer about a Secret by one without its text. Whether it may pass, and
// whether it was the caller who gave up, can still be told.
func unquoted(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason := apierrors.ReasonForError(err)
	message := "the API server refuses it; the message may quote the Secret and is not shown"
	if reason != metav1.StatusReasonUnknown {
		message = fmt.Sprintf("the API server refuses it (%s); the message may quote the Secret and is not shown", reason)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: reason, Message: message}}
}

// transient reports whether an answer may be different in a moment: a webhook whose pods are not up,
// a server that is busy.
func transient(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err)
}
