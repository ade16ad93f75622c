package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/standup-sh/standup/pkg/tiers"
)

// served puts a chain of two tiers, a and b on a, into a server: both not ready.
func served(t *testing.T) (*apiServer, Clients, *tiers.Graph) {
	t.Helper()
	server, client := newAPIServer(t)
	graph := newCluster()
	graph.tier("a", "")
	graph.tier("b", "a")
	server.list("gitrepositories", "10", gitRepositoryObject("flux-system", "7", current))
	server.list("kustomizations", "10", liveTier("a", "8", "False", "BuildFailed", "kustomize build failed: broken"), liveTier("b", "9", "False", "DependencyNotReady", "dependency 'flux-system/a' is not ready"))
	// Deployments and leases, which a diagnosis asks for; everything else is not found.
	server.list("deployments", "10")
	server.list("leases", "10")
	return server, Clients{Dynamic: client, Discovery: discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.url})}, graph.graph
}

func liveTier(name, rv, ready, reason, message string) map[string]any {
	object := kustomizationObject(name, rv, ready)
	spec := object["spec"].(map[string]any)
	if name == "b" {
		spec["dependsOn"] = []any{map[string]any{"name": "a"}}
	}
	object["metadata"].(map[string]any)["generation"] = 1
	status := object["status"].(map[string]any)
	status["observedGeneration"] = 1
	condition := status["conditions"].([]any)[0].(map[string]any)
	condition["reason"], condition["message"] = reason, message
	if ready == "True" {
		status["lastAppliedRevision"] = current
	}
	return object
}

// log writes events as short lines.
func log(events *[]string) func(Event) {
	return func(e Event) {
		switch e := e.(type) {
		case TierChanged:
			*events = append(*events, fmt.Sprintf("%s: %s -> %s", e.Status.Name, e.From, e.To))
		case Summary:
			*events = append(*events, fmt.Sprintf("summary: %d of %d ready, %d causes", e.Ready(), len(e.Statuses), len(e.Causes)))
		}
	}
}

func TestRunUntilReady(t *testing.T) {
	server, clients, graph := served(t)
	var events []string
	note := log(&events)
	next := map[string]map[string]any{
		"b:  -> waiting":            liveTier("a", "11", "True", "ReconciliationSucceeded", "Applied revision"),
		"a: failed -> ready":        liveTier("b", "12", "Unknown", "Progressing", "Reconciliation in progress"),
		"b: waiting -> reconciling": liveTier("b", "13", "True", "ReconciliationSucceeded", "Applied revision"),
	}
	err := Run(t.Context(), clients, Options{Graph: graph}, func(e Event) {
		note(e)
		if object := next[events[len(events)-1]]; object != nil {
			server.send(t, "kustomizations", "MODIFIED", object)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a:  -> failed", "b:  -> waiting", "a: failed -> ready", "b: waiting -> reconciling", "b: reconciling -> ready",
		"summary: 2 of 2 ready, 0 causes",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRunTimesOutAndSaysWhy(t *testing.T) {
	_, clients, graph := served(t)
	var events []string
	err := Run(t.Context(), clients, Options{Graph: graph, Timeout: 300 * time.Millisecond}, log(&events))
	var notReady *NotReadyError
	if !errors.As(err, &notReady) || !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v, want a NotReadyError", err)
	}
	got := strings.Replace(err.Error(), roughly(notReady.Elapsed), "T", 1)
	want := "waiting for 2 tiers: timed out after T, 2 not ready: Kustomization/flux-system/a: kustomize cannot build .: broken"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var cause *CauseError
	if !errors.As(err, &cause) || cause.Cause != BuildFailed {
		t.Errorf("unwrapped to %v, want the cause %s", cause, BuildFailed)
	}
	if want := "summary: 0 of 2 ready, 1 causes"; events[len(events)-1] != want {
		t.Errorf("the last event is %q, want %q", events[len(events)-1], want)
	}
}

func TestRunFailFast(t *testing.T) {
	_, clients, graph := served(t)
	err := Run(t.Context(), clients, Options{Graph: graph, FailFast: true, Timeout: time.Minute}, func(Event) {})
	if !errors.Is(err, ErrFailFast) {
		t.Fatalf("got %v, want %v", err, ErrFailFast)
	}
}

func TestRunForSomeTiers(t *testing.T) {
	server, clients, graph := served(t)
	server.list("kustomizations", "10", liveTier("a", "8", "True", "ReconciliationSucceeded", "Applied revision"), liveTier("b", "9", "False", "BuildFailed", "broken"))
	var events []string
	err := Run(t.Context(), clients, Options{Graph: graph, Tiers: keys("a")}, log(&events))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a:  -> ready", "summary: 1 of 1 ready, 0 causes"}, events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	err = Run(t.Context(), clients, Options{Graph: graph, Tiers: keys("a", "nowhere")}, func(Event) {})
	if want := "selecting Kustomization/flux-system/nowhere: no such tier in the graph"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestRunInterrupted(t *testing.T) {
	_, clients, graph := served(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	var events []string
	note := log(&events)
	err := Run(ctx, clients, Options{Graph: graph, Timeout: time.Minute}, func(e Event) {
		note(e)
		if c, ok := e.(TierChanged); ok && c.Status.Name == "b" {
			cancel(interrupted)
		}
	})
	if !errors.Is(err, interrupted) {
		t.Fatalf("got %v, want %v", err, interrupted)
	}
	if !slices.Contains(events, "summary: 0 of 2 ready, 1 causes") {
		t.Errorf("no summary among %q", events)
	}
}

func TestRunProgress(t *testing.T) {
	_, clients, graph := served(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, clients, Options{Graph: graph, ProgressEvery: 20 * time.Millisecond, Timeout: -1}, func(e Event) {
		if p, ok := e.(Progress); ok {
			if p.Total != 2 || p.Ready != 0 || len(p.Causes) != 1 || p.Causes[0].Cause != BuildFailed {
				t.Errorf("got %+v", p)
			}
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultTimeout(t *testing.T) {
	c := newCluster()
	c.tier("gate", "", gate)     // 9m30s + 30s
	c.tier("plain", "gate")      // 2m + 30s
	c.tier("leaf", "gate plain") // 2m + 30s
	c.tier("beside", "", gate)   // not on the longest way
	if got, want := DefaultTimeout(c.graph), 15*time.Minute; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := DefaultTimeout(&tiers.Graph{}), 2*time.Minute; got != want {
		t.Errorf("an empty graph: got %s, want %s", got, want)
	}
}
