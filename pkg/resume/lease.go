package resume

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
)

// LeaseName is the name of the Lease that keeps two runs from working on one cluster.
const LeaseName = "standup"

// leaseTime is how long a lease outlives a run that was killed.
const leaseTime = 30 * time.Second

// RenewEvery is how often whoever holds a lease renews it.
const RenewEvery = leaseTime / 3

// Lease keeps others out while a run writes.
type Lease interface {
	// Acquire takes the lease. A lease that someone else holds is a *HeldError.
	Acquire(ctx context.Context) error
	// Renew keeps it. A lease that someone else has taken over is a *HeldError; any other error may
	// be tried again.
	Renew(ctx context.Context) error
	// Release gives it up; a lease that is not held is left alone.
	Release(ctx context.Context) error
}

// HeldError says who holds the lease.
type HeldError struct {
	Holder string
	// Since is when it was taken; Expires is when it ends if its holder has been killed.
	Since, Expires time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("another run is at work: %s, since %s", e.Holder, e.Since.UTC().Format(time.RFC3339))
}

// ClusterLease is a coordination.k8s.io Lease named [LeaseName]. It exists only while a run writes.
// It is not safe for concurrent use.
type ClusterLease struct {
	// Client writes it, in Namespace: the one that Flux runs in.
	Client    dynamic.Interface
	Namespace string
	// Holder names this run: user@host/pid.
	Holder string
	// TakeOver takes the lease from whoever holds it.
	TakeOver bool
	// Now is the clock; nil is time.Now. Expiry compares it with another machine's.
	Now func() time.Time

	held *unstructured.Unstructured
}

func (l *ClusterLease) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

func (l *ClusterLease) resource() dynamic.ResourceInterface {
	return l.Client.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(l.Namespace)
}

// Acquire implements [Lease]: it creates the object, or takes over one that has expired. Whoever
// loses a race is told who won it.
func (l *ClusterLease) Acquire(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := l.take(ctx)
		if attempt == 3 || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
}

// take tries to take the lease once.
func (l *ClusterLease) take(ctx context.Context) error {
	live, err := l.resource().Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if live, err = l.create(ctx); err == nil {
			l.held = live
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("taking Lease/%s/%s: %w", l.Namespace, LeaseName, err)
	}
	if held := l.heldBy(live); held != nil && !l.TakeOver {
		return held
	}
	return l.update(ctx, live, true)
}

// Renew implements [Lease].
func (l *ClusterLease) Renew(ctx context.Context) error {
	if l.held == nil {
		return nil
	}
	err := l.update(ctx, l.held, false)
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	live, getErr := l.resource().Get(ctx, LeaseName, metav1.GetOptions{})
	if getErr != nil {
		return errors.Join(err, getErr)
	}
	if held := l.heldBy(live); held != nil {
		l.held = nil
		return held
	}
	return l.update(ctx, live, false)
}

// Release implements [Lease]: it deletes the object, unless it has become someone else's.
func (l *ClusterLease) Release(ctx context.Context) error {
	if l.held == nil {
		return nil
	}
	uid, version := l.held.GetUID(), l.held.GetResourceVersion()
	l.held = nil
	err := l.resource().Delete(ctx, LeaseName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("releasing Lease/%s/%s: %w", l.Namespace, LeaseName, err)
	}
	return nil
}

// heldBy returns who holds a live lease, or nil: nobody, this run, or one that has expired.
func (l *ClusterLease) heldBy(live *unstructured.Unstructured) *HeldError {
	var lease coordinationv1.Lease
	if runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &lease) != nil {
		return nil
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || *spec.HolderIdentity == l.Holder {
		return nil
	}
	held := &HeldError{Holder: *spec.HolderIdentity}
	if spec.AcquireTime != nil {
		held.Since = spec.AcquireTime.Time
	}
	if spec.RenewTime != nil && spec.LeaseDurationSeconds != nil {
		held.Expires = spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	}
	if l.now().After(held.Expires) {
		return nil
	}
	return held
}

func (l *ClusterLease) spec(acquired time.Time) map[string]any {
	return map[string]any{
		"holderIdentity":       l.Holder,
		"leaseDurationSeconds": int64(leaseTime / time.Second),
		"acquireTime":          acquired.UTC().Format(metav1.RFC3339Micro),
		"renewTime":            l.now().UTC().Format(metav1.RFC3339Micro),
	}
}

func (l *ClusterLease) create(ctx context.Context) (*unstructured.Unstructured, error) {
	return l.resource().Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": coordinationv1.SchemeGroupVersion.String(),
		"kind":       "Lease",
		"metadata":   map[string]any{"name": LeaseName, "namespace": l.Namespace},
		"spec":       l.spec(l.now()),
	}}, metav1.CreateOptions{FieldManager: flux.FieldManager})
}

// update writes the lease at the version last read, so that of two runs only one can.
func (l *ClusterLease) update(ctx context.Context, live *unstructured.Unstructured, acquire bool) error {
	next := live.DeepCopy()
	acquired := l.now()
	if text, _, _ := unstructured.NestedString(live.Object, "spec", "acquireTime"); !acquire {
		if t, err := time.Parse(metav1.RFC3339Micro, text); err == nil {
			acquired = t
		}
	}
	next.Object["spec"] = l.spec(acquired)
	updated, err := l.resource().Update(ctx, next, metav1.UpdateOptions{FieldManager: flux.FieldManager})
	if err != nil {
		return fmt.Errorf("taking Lease/%s/%s: %w", l.Namespace, LeaseName, err)
	}
	l.held = updated
	return nil
}
