package wait

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/standup-sh/standup/pkg/flux"
)

func kustomizationObject(name, rv string, ready string) map[string]any {
	return map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": "flux-system", "name": name, "resourceVersion": rv},
		"spec":     map[string]any{"interval": "10m", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": ready, "reason": "Any", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		}},
	}
}

func gitRepositoryObject(name, rv, revision string) map[string]any {
	return map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"namespace": "flux-system", "name": name, "resourceVersion": rv, "generation": 3},
		"spec":     map[string]any{"url": "https://git.example/fleet", "suspend": true},
		"status": map[string]any{
			"observedGeneration": 2, "lastHandledReconcileAt": "token",
			"artifact": map[string]any{"revision": revision, "path": "p", "url": "u", "lastUpdateTime": "2026-01-01T00:00:00Z"},
		},
	}
}

// watching runs Watch in the background and hands out its snapshots.
func watching(t *testing.T, start func(ctx context.Context, onChange func(flux.Snapshot)) error) (<-chan flux.Snapshot, func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	snapshots := make(chan flux.Snapshot, 100)
	done := make(chan error, 1)
	go func() { done <- start(ctx, func(s flux.Snapshot) { snapshots <- s }) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return snapshots, func() error {
		err := <-done
		done <- err
		return err
	}
}

func names(s flux.Snapshot) []string {
	var names []string
	for key, k := range s.Kustomizations {
		names = append(names, key.Name+"="+string(k.Status.Conditions[0].Status))
	}
	slices.Sort(names)
	return names
}

// until reads snapshots until one has the wanted names; later ones may hold several changes.
func until(t *testing.T, snapshots <-chan flux.Snapshot, want ...string) flux.Snapshot {
	t.Helper()
	var last []string
	for {
		select {
		case s := <-snapshots:
			if last = names(s); slices.Equal(last, want) {
				return s
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no snapshot with %v; the last had %v", want, last)
		}
	}
}

func TestWatchMakesOneListAndOneWatchAKind(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"), kustomizationObject("infra", "8", "True"))
	server.list("gitrepositories", "10", gitRepositoryObject("flux-system", "7", "main@sha1:aaa"))
	server.list("helmreleases", "10")
	snapshots, _ := watching(t, func(ctx context.Context, onChange func(flux.Snapshot)) error {
		return Watch(ctx, client, WatchOptions{Sources: []string{"GitRepository", "GitRepository"}, HelmReleases: true}, onChange)
	})
	first := until(t, snapshots, "apps=False", "infra=True")
	for range 3 {
		<-server.opened
	}
	server.send(t, "kustomizations", "MODIFIED", kustomizationObject("apps", "11", "True"))
	until(t, snapshots, "apps=True", "infra=True")
	server.send(t, "kustomizations", "DELETED", kustomizationObject("infra", "12", "True"))
	server.send(t, "kustomizations", "ADDED", kustomizationObject("leaf", "13", "Unknown"))
	until(t, snapshots, "apps=True", "leaf=Unknown")

	want := []string{
		"LIST gitrepositories rv=", "LIST helmreleases rv=", "LIST kustomizations rv=",
		"WATCH gitrepositories rv=10", "WATCH helmreleases rv=10", "WATCH kustomizations rv=10",
	}
	got := server.seen()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	ref := flux.SourceRef{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}
	wantSource := &flux.Source{
		SourceRef: ref, Generation: 3, ObservedGeneration: 2, Revision: "main@sha1:aaa", Suspended: true,
		URL: "https://git.example/fleet", LastHandledReconcile: "token",
	}
	if diff := cmp.Diff(wantSource, first.Sources[ref]); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}

func TestWatchResumesAtTheLastBookmark(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"))
	snapshots, _ := watching(t, func(ctx context.Context, onChange func(flux.Snapshot)) error {
		return Watch(ctx, client, WatchOptions{}, onChange)
	})
	until(t, snapshots, "apps=False")
	<-server.opened
	server.send(t, "kustomizations", "BOOKMARK", map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"resourceVersion": "42"},
	})
	server.drop("kustomizations")
	<-server.opened
	server.send(t, "kustomizations", "MODIFIED", kustomizationObject("apps", "43", "True"))
	until(t, snapshots, "apps=True")
	want := []string{"LIST kustomizations rv=", "WATCH kustomizations rv=10", "WATCH kustomizations rv=42"}
	// A watch that ends within a second counts as broken for the reflector unless it brought an event.
	if diff := cmp.Diff(want, server.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWatchListsAgainWhenTheVersionIsGone(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"))
	snapshots, _ := watching(t, func(ctx context.Context, onChange func(flux.Snapshot)) error {
		return Watch(ctx, client, WatchOptions{}, onChange)
	})
	until(t, snapshots, "apps=False")
	<-server.opened
	server.list("kustomizations", "99", kustomizationObject("apps", "98", "True"), kustomizationObject("late", "97", "True"))
	server.send(t, "kustomizations", "ERROR", map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old resource version: 10 (90)",
	})
	until(t, snapshots, "apps=True", "late=True")
	<-server.opened
	want := []string{"LIST kustomizations rv=", "WATCH kustomizations rv=10", "LIST kustomizations rv=10", "WATCH kustomizations rv=99"}
	if diff := cmp.Diff(want, server.seen()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWatchOutlivesAServerThatIsAway(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"))
	dropped := make(chan error, 100)
	snapshots, _ := watching(t, func(ctx context.Context, onChange func(flux.Snapshot)) error {
		return Watch(ctx, client, WatchOptions{OnDrop: func(_ string, err error) { dropped <- err }}, onChange)
	})
	until(t, snapshots, "apps=False")
	<-server.opened
	server.refuse("kustomizations", 503)
	server.drop("kustomizations")
	if err := <-dropped; !strings.Contains(err.Error(), "etcd is down") {
		t.Errorf("OnDrop got %q", err)
	}
	server.list("kustomizations", "20", kustomizationObject("apps", "19", "True"))
	server.refuse("kustomizations", 0)
	until(t, snapshots, "apps=True")
}

func TestWatchKindThatIsNotServed(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"))
	server.refuse("ocirepositories", 404)
	server.refuse("helmreleases", 404)
	snapshots, _ := watching(t, func(ctx context.Context, onChange func(flux.Snapshot)) error {
		return Watch(ctx, client, WatchOptions{Sources: []string{"OCIRepository"}, HelmReleases: true}, onChange)
	})
	until(t, snapshots, "apps=False")
}

func TestWatchErrors(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		opts   WatchOptions
		want   string
	}{
		"no permission": {403, WatchOptions{}, `watching Kustomization in all namespaces: permission denied: kustomizations is forbidden: User "jo" cannot list resource "kustomizations" at the cluster scope`},
		"no Flux":       {404, WatchOptions{}, `watching Kustomization: the cluster does not serve kustomize.toolkit.fluxcd.io/v1; is Flux installed?`},
		"credentials":   {401, WatchOptions{}, `watching Kustomization: the cluster does not accept the credentials: Unauthorized`},
		"unknown kind":  {0, WatchOptions{Sources: []string{"Teapot"}}, `watching Teapot: not a kind of source that Flux knows`},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newAPIServer(t)
			server.refuse("kustomizations", test.status)
			err := Watch(t.Context(), client, test.opts, func(flux.Snapshot) { t.Error("a snapshot was delivered") })
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestWatchReturnsTheCauseOfItsContext(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	err := Watch(ctx, client, WatchOptions{}, func(flux.Snapshot) { cancel(cause) })
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestLookMakesOneListAKind(t *testing.T) {
	server, client := newAPIServer(t)
	server.list("kustomizations", "10", kustomizationObject("apps", "9", "False"))
	server.list("gitrepositories", "10", gitRepositoryObject("flux-system", "7", "main@sha1:aaa"))
	server.refuse("ocirepositories", 404)
	s, err := Look(t.Context(), client, WatchOptions{Sources: []string{"GitRepository", "OCIRepository"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(s); !slices.Equal(got, []string{"apps=False"}) || len(s.Sources) != 1 {
		t.Errorf("got %v and %d sources", got, len(s.Sources))
	}
	got := server.seen()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"LIST gitrepositories rv=", "LIST kustomizations rv=", "LIST ocirepositories rv="}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	server.refuse("kustomizations", 403)
	var watchError *WatchError
	if _, err := Look(t.Context(), client, WatchOptions{}); !errors.As(err, &watchError) || watchError.Kind != "Kustomization" {
		t.Errorf("got %v, want a WatchError", err)
	}
}
