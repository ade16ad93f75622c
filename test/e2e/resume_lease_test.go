package e2e

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/test/cluster"
)

// TestE2EResumeLease takes the lease from several runs at once, against a real API server: only that
// lets one of two writers win.
func TestE2EResumeLease(t *testing.T) {
	c := cluster.New(t, cluster.Options{Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
	if err := c.Apply(t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"); err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	lease := func(holder string) *resume.ClusterLease {
		return &resume.ClusterLease{Client: c.Dynamic(), Namespace: "flux-system", Holder: holder, Now: func() time.Time { return clock }}
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	heldBy := func(what string, err error, holder string) {
		t.Helper()
		var held *resume.HeldError
		if !errors.As(err, &held) || held.Holder != holder {
			t.Fatalf("%s: got %v, want it held by %s", what, err, holder)
		}
	}
	ada, bob := lease("ada@box/1"), lease("bob@box/2")
	must("ada takes it", ada.Acquire(t.Context()))
	clock = clock.Add(10 * time.Second)
	err := bob.Acquire(t.Context())
	heldBy("bob tries", err, "ada@box/1")
	if want := "another run is at work: ada@box/1, since 2026-11-30T12:00:00Z"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	must("bob gives up what he has not", bob.Release(t.Context()))
	must("ada renews", ada.Renew(t.Context()))
	clock = clock.Add(25 * time.Second) // 35 s after it was taken, 25 s after it was renewed
	heldBy("bob tries again", bob.Acquire(t.Context()), "ada@box/1")
	clock = clock.Add(10 * time.Second) // ada was killed
	must("bob takes what has expired", bob.Acquire(t.Context()))
	heldBy("ada wakes up", ada.Renew(t.Context()), "bob@box/2")
	must("ada gives up what she has not", ada.Release(t.Context()))

	eve := lease("eve@box/3")
	eve.TakeOver = true
	must("eve takes it over", eve.Acquire(t.Context()))
	heldBy("bob finds out", bob.Renew(t.Context()), "eve@box/3")
	must("eve gives it up", eve.Release(t.Context()))
	leases := c.Dynamic().Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace("flux-system")
	if _, err := leases.Get(t.Context(), resume.LeaseName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("something is left of it: %v", err)
	}

	errs := make(chan error)
	for _, holder := range []string{"a", "b", "c", "d", "e", "f"} {
		go func() { errs <- lease(holder).Acquire(t.Context()) }()
	}
	winners := 0
	for range 6 {
		var held *resume.HeldError
		switch err := <-errs; {
		case err == nil:
			winners++
		case !errors.As(err, &held):
			t.Errorf("at once: %v", err)
		}
	}
	if winners != 1 {
		t.Errorf("%d runs took the lease at once", winners)
	}
}
