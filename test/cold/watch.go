package cold

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/standup-sh/standup/test/cluster"
)

// poll is how often Watch looks. It is a bystander: it reads from the API server's cache.
const poll = 500 * time.Millisecond

// TierState is what a Kustomization's Ready condition says.
type TierState struct {
	types.NamespacedName
	Ready   string // True, False, Unknown; empty before there is a condition
	Reason  string
	Message string
}

// Watch calls changed for every Kustomization whose Ready condition has changed, until that
// returns true or ctx ends.
func Watch(ctx context.Context, c *cluster.Cluster, changed func(TierState) (stop bool)) error {
	kustomizations := c.Dynamic().Resource(kustomizev1.GroupVersion.WithResource("kustomizations"))
	seen := map[types.NamespacedName]TierState{}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		list, err := kustomizations.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			s := stateOf(&list.Items[i])
			if seen[s.NamespacedName] == s {
				continue
			}
			seen[s.NamespacedName] = s
			if changed(s) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func stateOf(o *unstructured.Unstructured) TierState {
	s := TierState{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != "Ready" {
			continue
		}
		s.Ready, _ = m["status"].(string)
		s.Reason, _ = m["reason"].(string)
		s.Message, _ = m["message"].(string)
	}
	return s
}
