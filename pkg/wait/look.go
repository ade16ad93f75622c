package wait

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Look reads the snapshot that [Watch] would begin with: one list a kind, and no watch. It fails for
// the same reasons, with a *[WatchError], and at the first of them.
func Look(ctx context.Context, client dynamic.Interface, opts WatchOptions) (flux.Snapshot, error) {
	kinds, err := watchedKinds(opts)
	if err != nil {
		return flux.Snapshot{}, err
	}
	s := newStore(kinds)
	lists := make(chan error, len(kinds))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, kind := range kinds {
		k := &kindStore{store: s, kind: kind, fail: cancel}
		go func() { lists <- k.look(ctx, client) }()
	}
	var errs []error
	for range kinds {
		if err := <-lists; err != nil {
			errs = append(errs, err)
			cancel(err)
		}
	}
	if len(errs) > 0 {
		return flux.Snapshot{}, errs[0]
	}
	snapshot, _ := s.snapshot()
	return snapshot, nil
}

func (k *kindStore) look(ctx context.Context, client dynamic.Interface) error {
	list, err := client.Resource(k.kind.gvr).List(ctx, metav1.ListOptions{})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case k.kind.absent(err):
		k.replace(k.kind.kind, nil)
		return nil
	case err != nil:
		return &WatchError{Kind: k.kind.kind, Err: err}
	}
	objects := make([]any, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return k.Replace(objects, "")
}

// Explain diagnoses, reads what [Gather] reads for the causes found, and diagnoses again: the whole
// answer to why tiers are not ready. Without causes it makes no request. The error is ctx's.
func Explain(ctx context.Context, clients Clients, graph *tiers.Graph, snapshot flux.Snapshot, now time.Time) ([]Diagnosis, error) {
	causes := Diagnose(ctx, graph, snapshot, Evidence{FluxNamespace: clients.FluxNamespace}, now)
	if len(causes) == 0 {
		return nil, nil
	}
	evidence, err := Gather(ctx, clients, snapshot, causes, now)
	if err != nil {
		return causes, err
	}
	return Diagnose(ctx, graph, snapshot, evidence, now), nil
}
