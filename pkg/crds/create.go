package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	waiting []render.Object
}

func newCreator(clients Clients, opts Options, emit func(Event)) *creator {
	if emit == nil {
		emit = func(Event) {}
	}
	f := &freer{clients: clients, opts: opts.complete(), emit: emit, tier: &tiers.Tier{}}
	return &creator{f: f, outcome: &f.outcome}
}

// ApplyBundle creates the CRDs of a bundle that the cluster lacks. A CRD that exists is never
// touched, whatever its versions: neither updated nor downgraded. Those whose operator does not
// stand them (catalogue: refuses) are left out and named, with the reason. No field of what is
// created stays owned by standup. It returns when all are served. emit may be nil.
func ApplyBundle(ctx context.Context, clients Clients, bundle *Bundle, opts Options, emit func(Event)) (Outcome, error) {
	c := newCreator(clients, opts, emit)
	triggers := allObjects(opts.Graph)
	for _, o := range bundle.Definitions {
		if operator := opts.Catalogue.refuser(o, triggers); operator != nil {
			if exists, err := c.exists(ctx, o); exists || err != nil {
				if err != nil {
					return *c.outcome, err
				}
				c.record(o, Unchanged, "in the bundle")
				continue
			}
			c.f.exclude(wanted{Object: o}, fmt.Sprintf("%s does not deploy while it exists and it has not made it (%s)", operator.Name, operator.Evidence.Link))
			continue
		}
		if err := c.create(ctx, o, "in the bundle"); err != nil {
			return *c.outcome, err
		}
	}
	return *c.outcome, c.awaitAll(ctx)
}

// ApplyCold creates every CRD of git and of the given charts that the cluster lacks, so that no tier
// of a bare cluster waits for a retry. Those of git get the labels of their tier, and those of charts
// Helm's ownership metadata where Helm owns them, so that Flux and the later release adopt them.
// Nothing that exists is touched. emit may be nil.
func ApplyCold(ctx context.Context, clients Clients, charts []ChartDefinition, opts Options, emit func(Event)) (Outcome, error) {
	c := newCreator(clients, opts, emit)
	done := map[string]bool{}
	for _, t := range opts.Graph.Tiers {
		for _, o := range t.Objects {
			if !isCRD(o) || flux.Skipped(o.Unstructured, nil) || done[o.GetName()] {
				continue
			}
			done[o.GetName()] = true
			object, err := prepared(wanted{Object: o, tier: t})
			if err != nil {
				return *c.outcome, err
			}
			c.f.tier = t
			if err := c.create(ctx, render.Object{Unstructured: object, File: o.File, Line: o.Line}, "part of "+t.Key.String()); err != nil {
				return *c.outcome, err
			}
		}
	}
	for _, d := range charts {
		if done[d.GetName()] {
			continue
		}
		done[d.GetName()] = true
		c.f.tier = &tiers.Tier{Key: d.Tier}
		if err := c.create(ctx, d.adoptable(), fmt.Sprintf("part of the chart of release %s/%s", d.Namespace, d.Release)); err != nil {
			return *c.outcome, err
		}
	}
	return *c.outcome, c.awaitAll(ctx)
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

func (c *creator) exists(ctx context.Context, o render.Object) (bool, error) {
	_, err := c.f.clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: reading: %w", o.ID(), err)
	}
	return true, nil
}

// create makes one CRD if it is absent: a create, so that nothing that exists can be changed, and a
// patch that gives up the ownership of its fields, so that whoever applies it later owns them.
func (c *creator) create(ctx context.Context, o render.Object, why string) error {
	exists, err := c.exists(ctx, o)
	if err != nil {
		return err
	}
	if exists {
		c.record(o, Unchanged, why)
		return nil
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
		c.record(o, Created, why)
		return nil
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
	c.waiting = append(c.waiting, o)
	disown := []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
	if _, err := client.Patch(ctx, o.GetName(), types.JSONPatchType, disown, metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("%s: created, and giving up its fields: %w", o.ID(), err)
	}
	return nil
}

func (c *creator) record(o render.Object, action Action, why string) {
	w := Write{GroupVersionKind: o.GroupVersionKind(), Name: o.GetName(), Tier: c.f.tier.Key, File: o.File, Line: o.Line, Action: action, Why: why}
	c.outcome.Writes = append(c.outcome.Writes, w)
	c.f.emit(Event{Kind: EventWrite, Tier: c.f.tier.Key, Write: &w})
}

// awaitAll waits until everything that was created is served.
func (c *creator) awaitAll(ctx context.Context) error {
	deadline := c.f.opts.Now().Add(c.f.opts.Timeout)
	var errs []error
	for _, o := range c.waiting {
		if err := c.f.awaitDefinition(ctx, o, deadline); err != nil {
			errs = append(errs, err)
			continue
		}
		kind, versions := definition(o)
		for _, v := range versions {
			c.outcome.Served = append(c.outcome.Served, kind.WithVersion(v))
		}
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
