package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/standup-sh/standup/pkg/flux"
)

// WatchOptions says what [Watch] watches beside Kustomizations. The zero value watches nothing else.
type WatchOptions struct {
	// Sources are the kinds of sources to watch, such as "GitRepository"; [SourceKinds] lists those
	// that a graph's tiers use. A kind that the API server does not serve has no objects.
	Sources []string
	// HelmReleases says whether to watch HelmReleases too.
	HelmReleases bool
	// OnDrop, if set, is told why a list or a watch failed that is now tried again. It may be called
	// from several goroutines at once and must return quickly.
	OnDrop func(kind string, err error)
}

// Watch keeps a snapshot of the Flux objects of all namespaces up to date and hands it to onChange:
// once as soon as every kind has been listed, and again after each change. It makes one list and one
// watch request a kind, and no more unless one of them breaks: a watch that ends is taken up at the
// last resource version seen, bookmarks included; only a version that the server has forgotten (410
// Gone) leads to a new list. Repeats back off from 0.2 s to 5 s.
//
// onChange is called from one goroutine, the caller's own. Changes that arrive while it runs are
// handed over together in the next call. The snapshot's maps belong to the callee; the objects in them
// are shared and must not be changed.
//
// Watch returns when ctx ends, with ctx's cause, or when watching cannot succeed: before the first
// snapshot any failure of the server but a transient one, later only the loss of permission. A
// *[WatchError] says which kind is concerned.
func Watch(ctx context.Context, client dynamic.Interface, opts WatchOptions, onChange func(flux.Snapshot)) error {
	kinds, err := watchedKinds(opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	st := newStore(kinds)
	var reflectors sync.WaitGroup
	defer reflectors.Wait()
	defer cancel(nil)
	for i := range kinds {
		k := &kindStore{store: st, kind: kinds[i], fail: cancel}
		reflectors.Go(func() { k.run(ctx, client, opts.OnDrop) })
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-st.changed:
			if snapshot, complete := st.snapshot(); complete {
				onChange(snapshot)
			}
		}
	}
}

// WatchError says that a kind can be watched no longer, or not at all. Err is the API's error.
type WatchError struct {
	Kind string
	Err  error
}

func (e *WatchError) Error() string {
	switch {
	case apierrors.IsForbidden(e.Err):
		return fmt.Sprintf("watching %s in all namespaces: permission denied: %v", e.Kind, e.Err)
	case apierrors.IsUnauthorized(e.Err):
		return fmt.Sprintf("watching %s: the cluster does not accept the credentials: %v", e.Kind, e.Err)
	case apierrors.IsNotFound(e.Err):
		return fmt.Sprintf("watching %s: the cluster does not serve %s; is Flux installed?", e.Kind, kindNamed(e.Kind).gvr.GroupVersion())
	default:
		return fmt.Sprintf("watching %s: %v", e.Kind, e.Err)
	}
}

func (e *WatchError) Unwrap() error { return e.Err }

// kindStore feeds one kind's objects into the store. It is the cache.ReflectorStore of one reflector.
type kindStore struct {
	*store
	kind watchedKind
	fail context.CancelCauseFunc
}

// run lists and watches until ctx ends.
func (k *kindStore) run(ctx context.Context, client dynamic.Interface, onDrop func(string, error)) {
	discard := logr.Discard()
	lw := listWatch(client.Resource(k.kind.gvr), func(err error) { k.failed(ctx, err, onDrop) })
	r := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, k, cache.ReflectorOptions{
		Logger: &discard,
		Name:   k.kind.kind,
		Backoff: &utilwait.Backoff{
			Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 1 << 16, Cap: 5 * time.Second,
		},
	})
	r.RunWithContext(klog.NewContext(ctx, discard)) // errors have been shown to failed, and are not logged
}

// failed decides whether an error ends the watch or is tried again.
func (k *kindStore) failed(ctx context.Context, err error, onDrop func(string, error)) {
	if ctx.Err() != nil {
		return
	}
	synced := k.isSynced(k.kind.kind)
	switch {
	case k.kind.absent(err):
		// Not served. The reflector asks again from time to time: the CRD may still come.
		k.replace(k.kind.kind, nil)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		k.fail(&WatchError{Kind: k.kind.kind, Err: err})
	case synced || transient(err):
		if onDrop != nil {
			onDrop(k.kind.kind, err)
		}
	default:
		k.fail(&WatchError{Kind: k.kind.kind, Err: err})
	}
}

// transient reports whether the server itself says that the request may work in a moment.
func transient(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

func (k *kindStore) Add(obj any) error    { return k.update(obj) }
func (k *kindStore) Update(obj any) error { return k.update(obj) }

func (k *kindStore) update(obj any) error {
	key, value, err := k.convert(obj)
	if err == nil {
		k.set(k.kind.kind, key, value)
	}
	return err
}

func (k *kindStore) Delete(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("deleting %s: unexpected %T", k.kind.kind, obj)
	}
	k.remove(k.kind.kind, flux.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
	return nil
}

func (k *kindStore) Replace(list []any, _ string) error {
	objects := make(map[flux.Key]any, len(list))
	for _, obj := range list {
		key, value, err := k.convert(obj)
		if err != nil {
			return err
		}
		objects[key] = value
	}
	k.replace(k.kind.kind, objects)
	return nil
}

func (k *kindStore) Resync() error { return nil }

// convert turns a watched object into the type the snapshot holds. An object that does not convert
// ends the watch: the reflector would drop it and the snapshot would be wrong in silence.
func (k *kindStore) convert(obj any) (flux.Key, any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		err := fmt.Errorf("unexpected %T", obj)
		k.fail(&WatchError{Kind: k.kind.kind, Err: err})
		return flux.Key{}, nil, err
	}
	key := flux.Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	value, err := k.kind.convert(u)
	if err != nil {
		err = fmt.Errorf("reading %s/%s/%s: %w", k.kind.kind, key.Namespace, key.Name, err)
		k.fail(&WatchError{Kind: k.kind.kind, Err: err})
	}
	return key, value, err
}

// listWatch lists and watches one resource in all namespaces and shows every error to onError.
//
// The list is one consistent read of everything: resource version 0, the reflector's first choice,
// may come from an API server that lags behind, and pages would be further requests.
func listWatch(resource dynamic.ResourceInterface, onError func(error)) cache.ListerWatcher {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			if opts.ResourceVersion == "0" {
				opts.ResourceVersion = ""
			}
			opts.Limit = 0
			list, err := resource.List(ctx, opts)
			if err != nil {
				onError(err)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, opts)
			if err != nil {
				onError(err)
			}
			return w, err
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, listThenWatch{})
}

// listThenWatch keeps a reflector to a list followed by a watch. A streamed list that fails is tried
// again as a plain list, so that every failure would cost two requests.
type listThenWatch struct{}

func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// store holds what the reflectors have seen, by kind.
type store struct {
	mu      sync.Mutex
	objects map[string]map[flux.Key]any // a kind is absent until it has been listed
	kinds   []watchedKind
	changed chan struct{} // holds one token while there is something new
}

func newStore(kinds []watchedKind) *store {
	return &store{objects: make(map[string]map[flux.Key]any), kinds: kinds, changed: make(chan struct{}, 1)}
}

func (s *store) signal() {
	select {
	case s.changed <- struct{}{}:
	default: // one is waiting already
	}
}

func (s *store) isSynced(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.objects[kind]
	return ok
}

func (s *store) set(kind string, key flux.Key, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[kind][key] = value
	s.signal()
}

func (s *store) remove(kind string, key flux.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects[kind], key)
	s.signal()
}

func (s *store) replace(kind string, objects map[flux.Key]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.objects[kind]; ok && len(old) == 0 && len(objects) == 0 {
		return // still nothing: no change
	}
	if objects == nil {
		objects = make(map[flux.Key]any)
	}
	s.objects[kind] = objects
	s.signal()
}

// snapshot copies the store's maps; complete is false until every kind has been listed.
func (s *store) snapshot() (snapshot flux.Snapshot, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.objects) < len(s.kinds) {
		return flux.Snapshot{}, false
	}
	snapshot = newSnapshot()
	for _, kind := range s.kinds {
		for key, value := range s.objects[kind.kind] {
			kind.put(&snapshot, key, value)
		}
	}
	return snapshot, true
}

// watchedKinds are the kinds that opts asks for, Kustomization first.
func watchedKinds(opts WatchOptions) ([]watchedKind, error) {
	kinds := []watchedKind{kustomizations()}
	var unknown []error
	for _, name := range slices.Compact(slices.Sorted(slices.Values(opts.Sources))) {
		k := kindNamed(name)
		if k.put == nil || k.kind == kinds[0].kind {
			unknown = append(unknown, fmt.Errorf("watching %s: not a kind of source that Flux knows", name))
			continue
		}
		kinds = append(kinds, k)
	}
	if opts.HelmReleases {
		kinds = append(kinds, helmReleases())
	}
	return kinds, errors.Join(unknown...)
}
