package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// ChartDefinition is a CRD of the chart of a release.
type ChartDefinition struct {
	render.Object
	Tier tiers.Key
	// Release and Namespace are Helm's names of the release.
	Release, Namespace string
	// Templated says that Helm owns the CRD as a part of the release; those of the crds folder it
	// only creates.
	Templated bool
}

// creator creates CRDs that are absent, and leaves alone those that are there.
type creator struct {
	f       *freer
	outcome *Outcome
	// created are the CRDs that were absent; in a dry run those that would be created.
	created []render.Object
}

func newCreator(clients Clients, opts Options, emit func(Event)) *creator {
	f := &freer{clients: clients, opts: opts, emit: emit, tier: &tiers.Tier{}}
	return &creator{f: f, outcome: &f.outcome}
}

// bundle creates the CRDs of a bundle that the cluster lacks. A CRD that exists is never touched,
// whatever its versions: neither updated nor downgraded. Those whose operator does not stand them
// (catalogue: refuses) are left out and named, with the reason. No field of what is created stays
// owned by standup. It returns when all are served.
func (c *creator) bundle(ctx context.Context, bundle *Bundle) error {
	triggers := allObjects(c.f.opts.Graph)
	for _, o := range bundle.Definitions {
		if operator := c.f.opts.Catalogue.refuser(o, triggers); operator != nil {
			if live, err := c.live(ctx, o); live != nil || err != nil {
				if err != nil {
					return err
				}
				c.record(o, Unchanged, whyBundle)
				continue
			}
			c.f.exclude(wanted{Object: o}, fmt.Sprintf("%s does not deploy while it exists and it has not made it (%s)", operator.Name, operator.Evidence.Link))
			continue
		}
		if err := c.create(ctx, o, whyBundle); err != nil {
			return err
		}
	}
	return c.awaitAll(ctx)
}

const whyBundle = "in the bundle"

// cold creates every CRD of git and of the given charts that the cluster lacks, so that no tier of a
// bare cluster waits for a retry. Those of git get the labels of their tier, and those of charts
// Helm's ownership metadata where Helm owns them, so that Flux and the later release adopt them.
// Nothing that exists is touched. Tiers that git suspends and those of other clusters are left out.
func (c *creator) cold(ctx context.Context, charts []ChartDefinition) error {
	done, here := map[string]bool{}, map[tiers.Key]bool{}
	for _, t := range c.f.opts.Graph.Tiers {
		if t.Kustomization.Spec.KubeConfig != nil {
			continue // its objects go to another cluster
		}
		here[t.Key] = true
		c.f.tier = t
		if err := c.coldTier(ctx, t, done); err != nil {
			return err
		}
	}
	for _, d := range charts {
		if done[d.GetName()] || !here[d.Tier] {
			continue
		}
		done[d.GetName()] = true
		c.f.tier = c.f.tierOf(d.Tier)
		if c.suspended(c.f.tier, d.Object) {
			continue
		}
		if err := c.create(ctx, d.adoptable(), fmt.Sprintf("part of the chart of release %s/%s", d.Namespace, d.Release)); err != nil {
			return err
		}
	}
	return c.awaitAll(ctx)
}

// coldTier creates the CRDs among the objects of one tier.
func (c *creator) coldTier(ctx context.Context, t *tiers.Tier, done map[string]bool) error {
	for _, o := range t.Objects {
		if !isCRD(o) || flux.Skipped(o.Unstructured, nil) || done[o.GetName()] || c.suspended(t, o) {
			continue
		}
		done[o.GetName()] = true
		object, err := prepared(wanted{Object: o, tier: t})
		if err != nil {
			return err
		}
		if err := c.create(ctx, render.Object{Unstructured: object, File: o.File, Line: o.Line}, "part of "+t.Key.String()); err != nil {
			return err
		}
	}
	return nil
}

// suspended names a CRD that is left out because git suspends its tier, which is intent.
func (c *creator) suspended(t *tiers.Tier, o render.Object) bool {
	if t.Kustomization.Spec.Suspend {
		c.f.exclude(wanted{Object: o}, "git suspends its tier")
	}
	return t.Kustomization.Spec.Suspend
}

// adoptable adds what Helm asks of an object before it takes it into a release (checkOwnership in
// Helm's pkg/action/validate.go).
func (d ChartDefinition) adoptable() render.Object {
	o := render.Object{Unstructured: d.DeepCopy(), File: d.File, Line: d.Line}
	if !d.Templated {
		return o
	}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"] = d.Release
	annotations["meta.helm.sh/release-namespace"] = d.Namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

func allObjects(graph *tiers.Graph) []render.Object {
	if graph == nil {
		return nil
	}
	var all []render.Object
	for _, t := range graph.Tiers {
		all = append(all, t.Objects...)
	}
	return all
}

// live reads a CRD; nil when it is absent. In a dry run one that would exist by now is not absent.
func (c *creator) live(ctx context.Context, o render.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	live, err := c.f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && c.f.opts.assumes(o):
		return &apiextensionsv1.CustomResourceDefinition{}, nil
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // not there is an answer
	case err != nil:
		return nil, fmt.Errorf("%s: reading: %w", o.ID(), err)
	}
	return live, nil
}

// create makes one CRD if it is absent: a create, so that nothing that exists can be changed, and a
// patch that gives up the ownership of its fields, so that whoever applies it later owns them.
func (c *creator) create(ctx context.Context, o render.Object, why string) error {
	live, err := c.live(ctx, o)
	if err != nil {
		return err
	}
	if live != nil {
		return c.keep(ctx, live, o, why)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
		return fmt.Errorf("%s: reading: %w", o.ID(), err)
	}
	client := c.f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions()
	options := metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}}
	if _, err := client.Create(ctx, &crd, options); err != nil {
		return &RefusedError{Object: o.ID(), DryRun: true, Err: err}
	}
	if c.f.opts.DryRun {
		c.created = append(c.created, o)
		c.record(o, Created, why)
		return nil
	}
	if err := c.f.opts.begun.once(ctx); err != nil {
		return err
	}
	options.DryRun = nil
	_, err = client.Create(ctx, &crd, options)
	if apierrors.IsAlreadyExists(err) {
		c.record(o, Unchanged, why)
		return nil
	}
	if err != nil {
		return &RefusedError{Object: o.ID(), Err: err}
	}
	c.record(o, Created, why)
	c.created = append(c.created, o)
	return c.disown(ctx, o)
}

// keep leaves a CRD alone that exists, except that fields are given up which a run that was killed
// after its create still owns.
func (c *creator) keep(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, o render.Object, why string) error {
	if !slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate
	}) {
		c.record(o, Unchanged, why)
		return nil
	}
	if c.f.opts.DryRun {
		c.record(o, Configured, whyDisown)
		return nil
	}
	if err := c.f.opts.begun.once(ctx); err != nil {
		return err
	}
	c.record(o, Configured, whyDisown)
	return c.disown(ctx, o)
}

const whyDisown = "an earlier run created it and still owns its fields"

// disown gives up all fields of a CRD. It is done also when ctx has just ended.
func (c *creator) disown(ctx context.Context, o render.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disownTimeout)
	defer cancel()
	patch := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	_, err := c.f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().
		Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("%s: created, and giving up its fields: %w", o.ID(), err)
	}
	return nil
}

const disownTimeout = 5 * time.Second

func (c *creator) record(o render.Object, action Action, why string) {
	w := Write{GroupVersionKind: o.GroupVersionKind(), Name: o.GetName(), Tier: c.f.tier.Key, File: o.File, Line: o.Line, Action: action, Why: why}
	c.outcome.Writes = append(c.outcome.Writes, w)
	c.f.emit(Event{Kind: EventWrite, Tier: c.f.tier.Key, Write: &w})
}

// awaitAll waits until everything that was created is served.
func (c *creator) awaitAll(ctx context.Context) error {
	if c.f.opts.DryRun {
		return nil
	}
	deadline := c.f.opts.Now().Add(c.f.opts.Timeout)
	var errs []error
	for _, o := range c.created {
		if err := c.f.awaitDefinition(ctx, o, deadline); err != nil {
			errs = append(errs, err)
			continue
		}
		c.outcome.Served = append(c.outcome.Served, definedKinds(o)...)
	}
	return errors.Join(errs...)
}

// stillRefused is the error for CRDs that were left out of a bundle and whose kinds nothing else has
// brought.
func stillRefused(bundle *Bundle, opts Options, served *Served) error {
	names := map[*Operator][]string{}
	var order []*Operator
	needed := map[schema.GroupKind]bool{}
	for _, o := range allObjects(opts.Graph) {
		needed[o.GroupVersionKind().GroupKind()] = true
	}
	for _, o := range bundle.Definitions {
		kind, _ := definition(o)
		operator := opts.Catalogue.refuser(o, allObjects(opts.Graph))
		if operator == nil || !needed[kind.GroupKind] || len(served.Versions(kind.GroupKind)) > 0 {
			continue
		}
		if !slices.Contains(order, operator) {
			order = append(order, operator)
		}
		names[operator] = append(names[operator], o.GetName())
	}
	var errs []error
	for _, operator := range order {
		errs = append(errs, &RefusedBundleError{Operator: operator.Name, CRDs: names[operator], Link: operator.Evidence.Link})
	}
	return errors.Join(errs...)
}

func decodeObject(data []byte, u *unstructured.Unstructured) error {
	return yaml.Unmarshal(data, &u.Object)
}
