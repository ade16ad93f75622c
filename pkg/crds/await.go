package crds

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// await waits until discovery lists the kinds and their CRDs are Established, and says meanwhile
// what is in the way.
func (f *freer) await(ctx context.Context, kinds []schema.GroupVersionKind, round []Planned) error {
	for len(kinds) > 0 {
		still, err := f.awaitNext(ctx, kinds, round)
		if err != nil {
			return err
		}
		kinds = still
	}
	return nil
}

// awaitNext waits for the first of the kinds, and returns those that are still to come.
func (f *freer) awaitNext(ctx context.Context, kinds []schema.GroupVersionKind, round []Planned) ([]schema.GroupVersionKind, error) {
	deadline, said := f.opts.Now().Add(f.opts.Timeout), "\x00"
	for {
		still, err := f.pending(ctx, kinds)
		if err != nil {
			return kinds, err
		}
		if len(still) < len(kinds) {
			f.reportServed(kinds, still)
			return still, f.discover(ctx)
		}
		cause := f.diagnose(ctx, kinds, round)
		var final *OrphanError
		if errors.As(cause, &final) || f.opts.Now().After(deadline) {
			return kinds, &NotServedError{Tier: f.tier.Key, Kinds: kinds, Cause: cause}
		}
		if text := causeText(cause); text != said {
			said = text
			f.emit(Event{Kind: EventWaiting, Tier: f.tier.Key, Kinds: kinds, Message: text})
		}
		if err := pause(ctx, f.opts.Poll); err != nil {
			return kinds, err
		}
	}
}

func causeText(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}

func (f *freer) reportServed(before, after []schema.GroupVersionKind) {
	for _, gvk := range before {
		if !slices.Contains(after, gvk) {
			f.outcome.Served = append(f.outcome.Served, gvk)
			f.emit(Event{Kind: EventServed, Tier: f.tier.Key, Kinds: []schema.GroupVersionKind{gvk}})
		}
	}
}

// pending returns those kinds that are not served yet. It asks for single group versions, which is
// cheap and what kustomize-controller's own client asks.
func (f *freer) pending(ctx context.Context, kinds []schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	var pending []schema.GroupVersionKind
	for _, gvk := range kinds {
		gv := gvk.GroupVersion()
		if _, asked := lists[gv]; !asked {
			list, err := f.clients.Discovery.ServerResourcesForGroupVersion(gv.String())
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsServiceUnavailable(err) {
				return nil, fmt.Errorf("reading which kinds the API server serves in %s: %w", gv, err)
			}
			lists[gv] = list
		}
		plural := pluralIn(lists[gv], gvk.Kind)
		if plural == "" {
			pending = append(pending, gvk)
			continue
		}
		established, err := f.established(ctx, plural+"."+gvk.Group)
		if err != nil {
			return nil, err
		}
		if !established {
			pending = append(pending, gvk)
		}
	}
	return pending, nil
}

func pluralIn(list *metav1.APIResourceList, kind string) string {
	if list == nil {
		return ""
	}
	for _, r := range list.APIResources {
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			return r.Name
		}
	}
	return ""
}

// established reports whether a CRD is Established. A kind that is served without a CRD (an
// aggregated API), or whose CRD may not be read, needs no more than discovery.
func (f *freer) established(ctx context.Context, name string) (bool, error) {
	crd, err := f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("CustomResourceDefinition/%s: reading: %w", name, err)
	}
	return isEstablished(crd), nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// awaitDefinition waits until a CRD that was just applied is served, in all its versions.
func (f *freer) awaitDefinition(ctx context.Context, o render.Object, deadline time.Time) error {
	kinds := definedKinds(o)
	for {
		pending, err := f.pending(ctx, kinds)
		if err != nil {
			return err
		}
		if len(pending) == 0 {
			return f.discover(ctx)
		}
		if f.opts.Now().After(deadline) {
			return &NotServedError{Tier: f.tier.Key, Kinds: pending, Cause: f.definitionTrouble(ctx, o.GetName())}
		}
		if err := pause(ctx, f.opts.Poll); err != nil {
			return err
		}
	}
}

// definitionTrouble says why a CRD that exists is not served: names that are taken, a schema that is
// not structural, a deletion that does not end.
func (f *freer) definitionTrouble(ctx context.Context, name string) error {
	crd, err := f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	if crd.DeletionTimestamp != nil {
		return fmt.Errorf("CustomResourceDefinition/%s: it is being deleted", name)
	}
	for _, c := range crd.Status.Conditions {
		bad := c.Status == apiextensionsv1.ConditionFalse && (c.Type == apiextensionsv1.NamesAccepted || c.Type == apiextensionsv1.Established)
		bad = bad || (c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue)
		if bad {
			return fmt.Errorf("CustomResourceDefinition/%s: %s: %s", name, c.Reason, c.Message)
		}
	}
	return nil
}

// diagnose says what keeps kinds from appearing: the most certain cause first.
func (f *freer) diagnose(ctx context.Context, pending []schema.GroupVersionKind, round []Planned) error {
	for _, planned := range round {
		if !slices.ContainsFunc(planned.Brings, func(gvk schema.GroupVersionKind) bool { return slices.Contains(pending, gvk) }) {
			continue
		}
		live := f.liveTrigger(ctx, planned.Origin.Object)
		for _, find := range []func(context.Context, Planned, *unstructured.Unstructured) error{f.orphans, f.failing, f.notRunning} {
			if cause := find(ctx, planned, live); cause != nil {
				return cause
			}
		}
	}
	for _, gvk := range pending {
		if plural := f.pluralOf(gvk, round); plural != "" {
			if trouble := f.definitionTrouble(ctx, plural+"."+gvk.Group); trouble != nil {
				return trouble
			}
		}
	}
	return nil
}

func (f *freer) pluralOf(gvk schema.GroupVersionKind, round []Planned) string {
	for _, planned := range round {
		if slices.Contains(planned.Brings, gvk) && planned.Origin.Operator != nil {
			for _, creation := range planned.Origin.Operator.Creates {
				for _, kind := range creation.created(planned.Origin.Object) {
					if kind.GroupKind == gvk.GroupKind() {
						return kind.plural
					}
				}
			}
		}
	}
	return ""
}

func (f *freer) liveTrigger(ctx context.Context, o render.Object) *unstructured.Unstructured {
	object := o.DeepCopy()
	client, ok := f.resource(object)
	if !ok {
		return nil
	}
	live, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return live
}

// failing reads the trigger's conditions, as far as their meaning is common to all controllers.
func (f *freer) failing(_ context.Context, planned Planned, live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, entry := range conditions {
		c, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { s, _ := c[name].(string); return s }
		if badCondition(field("type"), field("status"), field("reason")) {
			return &TriggerFailedError{Object: planned.Origin.Object.ID(), Condition: field("type") + "=" + field("status"), Reason: field("reason"), Message: f.said(field("message"))}
		}
	}
	return nil
}

// badCondition knows the condition types that say that something is wrong, and those whose False
// says so unless the reason is that work goes on.
func badCondition(kind, status, reason string) bool {
	switch kind {
	case "Stalled", "Degraded", "Failed", "Failure", "ReconcileError":
		return status == "True"
	case "Ready", "Available", "Established", "Synced", "Healthy", "Installed", "Released", "GraphVerified", "GraphAccepted", "ResourceGraphAccepted":
		return status == "False" && !slices.Contains([]string{"", "Progressing", "Reconciling", "Creating", "Deploying", "DeployStarted", "Pending", "DependencyNotReady", "SourceNotReady"}, reason)
	}
	return false
}

// firstLine is the first line of somebody's message. What Flux says about a Secret that the API
// server refuses may quote its values, and is cut off.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if at := regexp.MustCompile(`Secret/\S+ (?:dry-run failed|apply failed|\S+ failed|invalid)`).FindStringIndex(line); at != nil {
		return line[:at[1]] + ": the rest may quote the Secret and is not shown"
	}
	return line
}
