// Package cdi stands in for KubeVirt's cdi-operator, and for as much of
// cdi-controller as other objects wait for, where no image can run. It does to the
// API what the real ones do and nothing else:
//
//   - it works only while its Deployment is Available;
//   - while its ConfigMap does not exist, any object that it would manage and that
//     exists already, one of its CRDs say, is an orphan: it looks again a second
//     later and deploys nothing, for ever, without a word in the CDI's status
//     (controller-lifecycle-operator-sdk, pkg/sdk/reconciler/reconciler.go,
//     Reconcile and CheckForOrphans);
//   - otherwise it makes the ConfigMap (containerized-data-importer,
//     pkg/operator/controller/reconciler-hooks.go, preCreate), registers its CRDs
//     (pkg/operator/resources/cluster/factory.go, createCRDResources) and reports
//     Deployed and Available;
//   - then every StorageClass has a StorageProfile: an empty one is made where
//     there is none, also after a deletion, and its status says what the spec asks
//     for (pkg/controller/storageprofile-controller.go).
//
// Limits. It makes none of CDI's Deployments, roles and webhooks, imports no data,
// and knows no provisioner: what a profile does not say is guessed as
// ReadWriteOnce. It polls where the real one watches.
package cdi

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

//go:embed crds.yaml
var crdStream []byte

const (
	// UserAgent is how the stand-in appears in the API server's audit log.
	UserAgent = "cdi-operator (stand-in)"
	// ConfigMap is the object whose absence means that nothing has been deployed.
	ConfigMap = "cdi-config"

	manager        = "cdi-operator"
	profileManager = "cdi-controller"
	finalizer      = "operator.cdi.kubevirt.io"
	orphanRetry    = time.Second
)

// Options of Run. The zero value is an operator as its manifests install it.
type Options struct {
	// Namespace of the operator; cdi where empty.
	Namespace string
	// Deployment that must be Available; cdi-operator where empty.
	Deployment string
	// Ungated runs the operator without its Deployment.
	Ungated bool
	// Poll is the time between two looks at the API; 250 ms where zero.
	Poll time.Duration
}

// Event says what the stand-in has just done or found.
type Event struct {
	Object  string // Kind/name
	Message string
}

// Run works until ctx ends and then returns nil. Errors of single requests are
// reported to emit, which may be nil and is called from one goroutine, and the
// work is tried again, as a controller would.
func Run(ctx context.Context, config *rest.Config, o Options, emit func(Event)) error {
	config = rest.CopyConfig(config)
	config.UserAgent = UserAgent
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	crds, err := runtimeCRDs()
	if err != nil {
		return err
	}
	op := &operator{Options: o.complete(), client: client, crds: crds, emit: emit}
	return op.loop(ctx)
}

func (o Options) complete() Options {
	if o.Namespace == "" {
		o.Namespace = "cdi"
	}
	if o.Deployment == "" {
		o.Deployment = "cdi-operator"
	}
	if o.Poll == 0 {
		o.Poll = 250 * time.Millisecond
	}
	return o
}

type operator struct {
	Options
	client dynamic.Interface
	crds   []*unstructured.Unstructured
	emit   func(Event)
	said   Event
}

func (op *operator) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		next, err := op.pass(ctx)
		if err != nil && ctx.Err() == nil {
			op.say("", err.Error())
		}
		timer.Reset(next)
	}
}

// say emits an event unless it repeats the last.
func (op *operator) say(object, message string) {
	e := Event{Object: object, Message: message}
	if op.emit != nil && e != op.said {
		op.emit(e)
	}
	op.said = e
}

// pass looks at everything once and returns when to look again.
func (op *operator) pass(ctx context.Context) (time.Duration, error) {
	runs, err := op.deploymentAvailable(ctx)
	if err != nil || !runs {
		return op.Poll, err
	}
	cdis, err := op.client.Resource(cdiResource()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || err == nil && len(cdis.Items) == 0 {
		return op.Poll, nil
	}
	if err != nil {
		return op.Poll, fmt.Errorf("listing CDIs: %w", err)
	}
	for i := range cdis.Items {
		if next, err := op.reconcile(ctx, &cdis.Items[i]); err != nil || next > 0 {
			return max(next, op.Poll), err
		}
	}
	return op.Poll, nil
}

func (op *operator) deploymentAvailable(ctx context.Context) (bool, error) {
	if op.Ungated {
		return true, nil
	}
	d, err := op.client.Resource(deployments()).Namespace(op.Namespace).Get(ctx, op.Deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the operator's Deployment: %w", err)
	}
	return conditionStatus(d, "Available") == "True", nil
}

// reconcile does for one CDI what is next to do. A positive duration ends the
// pass.
func (op *operator) reconcile(ctx context.Context, cdi *unstructured.Unstructured) (time.Duration, error) {
	if cdi.GetDeletionTimestamp() != nil {
		return op.Poll, op.remove(ctx, cdi)
	}
	config, err := op.client.Resource(configMaps()).Namespace(op.Namespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return op.create(ctx, cdi)
	case err != nil:
		return 0, fmt.Errorf("reading ConfigMap/%s/%s: %w", op.Namespace, ConfigMap, err)
	case !metav1.IsControlledBy(config, cdi):
		return 0, op.setStatus(ctx, cdi, failed("Reconciling to error state, unwanted CDI object"))
	}
	return 0, op.deploy(ctx, cdi)
}

// create begins a deployment, unless something of it is already there.
func (op *operator) create(ctx context.Context, cdi *unstructured.Unstructured) (time.Duration, error) {
	if phase, _, _ := unstructured.NestedString(cdi.Object, "status", "phase"); phase != "" {
		return orphanRetry, op.setStatus(ctx, cdi, failed("Reconciling to error state, illegal phase"))
	}
	orphan, err := op.orphan(ctx)
	if err != nil {
		return 0, err
	}
	if orphan != "" {
		op.say(orphan, "Orphan object exists")
		return orphanRetry, nil
	}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	config.SetName(ConfigMap)
	config.SetNamespace(op.Namespace)
	own(config, cdi)
	_, err = op.client.Resource(configMaps()).Namespace(op.Namespace).Create(ctx, config, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return 0, fmt.Errorf("making ConfigMap/%s/%s: %w", op.Namespace, ConfigMap, err)
	}
	op.say("CDI/"+cdi.GetName(), "Started Deployment")
	return op.Poll, op.setStatus(ctx, cdi, deploying())
}

// orphan names the first managed object that exists.
func (op *operator) orphan(ctx context.Context) (string, error) {
	for _, crd := range op.crds {
		_, err := op.client.Resource(customResourceDefinitions()).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err == nil {
			return "CustomResourceDefinition/" + crd.GetName(), nil
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("looking for orphans: %w", err)
		}
	}
	return "", nil
}

// deploy makes what is missing, reports once all of it works, and keeps the
// profiles.
func (op *operator) deploy(ctx context.Context, cdi *unstructured.Unstructured) error {
	established := true
	for _, crd := range op.crds {
		ok, err := op.ensureCRD(ctx, cdi, crd)
		if err != nil {
			return err
		}
		established = established && ok
	}
	if !established {
		return nil
	}
	if phase, _, _ := unstructured.NestedString(cdi.Object, "status", "phase"); phase != phaseDeployed {
		if err := op.setStatus(ctx, cdi, deployed()); err != nil {
			return err
		}
		op.say("CDI/"+cdi.GetName(), "Deployment Completed")
	}
	return op.keepProfiles(ctx)
}

func (op *operator) ensureCRD(ctx context.Context, cdi, crd *unstructured.Unstructured) (established bool, err error) {
	client := op.client.Resource(customResourceDefinitions())
	live, err := client.Get(ctx, crd.GetName(), metav1.GetOptions{})
	if err == nil {
		return conditionStatus(live, "Established") == "True", nil
	}
	if apierrors.IsNotFound(err) {
		missing := crd.DeepCopy()
		own(missing, cdi)
		_, err = client.Create(ctx, missing, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		return false, fmt.Errorf("CustomResourceDefinition/%s: making: %w", crd.GetName(), err)
	}
	return false, nil
}

// remove takes everything away again when the CDI is deleted, and then lets it
// go.
func (op *operator) remove(ctx context.Context, cdi *unstructured.Unstructured) error {
	for _, crd := range op.crds {
		err := op.client.Resource(customResourceDefinitions()).Delete(ctx, crd.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("CustomResourceDefinition/%s: deleting: %w", crd.GetName(), err)
		}
	}
	err := op.client.Resource(configMaps()).Namespace(op.Namespace).Delete(ctx, ConfigMap, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ConfigMap/%s/%s: deleting: %w", op.Namespace, ConfigMap, err)
	}
	op.say("CDI/"+cdi.GetName(), "Deleted")
	return op.letGo(ctx, cdi)
}
