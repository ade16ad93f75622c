package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
)

// scriptPoll is how often flux and kubectl wait look at an object.
const scriptPoll = 2 * time.Second

// script is the old standup.sh: suspend every tier, then for each in its list resume it, wait until
// it is Ready and go on with the next. The list is the order that git gives, which such scripts
// keep by hand.
func script(ctx context.Context, c *cluster.Cluster, s scenario) error {
	kustomizations, err := c.Resource(cluster.KustomizationGVK(), "flux-system")
	if err != nil {
		return err
	}
	if err := present(ctx, c, s.tiers); err != nil {
		return err
	}
	list, err := kustomizations.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	graph := newGraph(list.Items)
	order := graph.order()
	for _, name := range order {
		if err := patch(ctx, kustomizations, name, `{"spec":{"suspend":true}}`); err != nil {
			return err
		}
	}
	for _, name := range order {
		token := time.Now().Format(time.RFC3339Nano)
		body := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}},"spec":{"suspend":false}}`, token)
		if err := patch(ctx, kustomizations, name, body); err != nil {
			return err
		}
		if err := waitReady(ctx, kustomizations, name); err != nil {
			return err
		}
	}
	return nil
}

// present waits until n Kustomizations exist.
func present(ctx context.Context, c *cluster.Cluster, n int) error {
	seen := map[string]bool{}
	return cold.Watch(ctx, c, func(s cold.TierState) bool {
		seen[s.String()] = true
		return len(seen) == n
	})
}

func patch(ctx context.Context, client dynamic.ResourceInterface, name, body string) error {
	_, err := client.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "standup.sh"})
	return err
}

func waitReady(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	tick := time.NewTicker(scriptPoll)
	defer tick.Stop()
	for {
		o, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cluster.ConditionTrue(o, "Ready") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}
