package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
	"github.com/standup-sh/standup/test/cluster"
)

// waitAgent is the user agent of everything that the tests of pkg/wait send, by which its requests
// are found in the audit log.
const waitAgent = "standup-e2e-wait"

// diagnosisEnv is a cluster that is watched the way the commands watch it.
type diagnosisEnv struct {
	*cluster.Cluster
	t       *testing.T
	clients wait.Clients

	mu       sync.Mutex
	snapshot flux.Snapshot
	seen     bool
}

func newDiagnosisEnv(t *testing.T, o cluster.Options) *diagnosisEnv {
	t.Helper()
	e := &diagnosisEnv{Cluster: cluster.New(t, o), t: t}
	config := rest.CopyConfig(e.RESTConfig())
	config.UserAgent, config.QPS = waitAgent, -1
	var err error
	if e.clients.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if e.clients.Discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
	return e
}

// watch keeps the snapshot up to date until the test ends.
func (e *diagnosisEnv) watch() {
	ctx, cancel := context.WithCancel(e.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- wait.Watch(ctx, e.clients.Dynamic, wait.WatchOptions{Sources: []string{"GitRepository"}, HelmReleases: true}, func(s flux.Snapshot) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.snapshot, e.seen = s, true
		})
	}()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			e.t.Error(err)
		}
	})
}

func (e *diagnosisEnv) last() (flux.Snapshot, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snapshot, e.seen
}

func fluxKey(name string) tiers.Key { return tiers.Key{Namespace: "flux-system", Name: name} }

// push makes files a repository's content.
func (e *diagnosisEnv) push(repo string, files map[string]string) {
	e.t.Helper()
	if _, err := e.Git.Push(e.t.Context(), repo, treeOf(files), "test"); err != nil {
		e.t.Fatal(err)
	}
}

func treeOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	return tree
}

func (e *diagnosisEnv) apply(manifests string) {
	e.t.Helper()
	if err := e.Apply(e.t.Context(), manifests); err != nil {
		e.t.Fatal(err)
	}
}

// liveGraph is the graph of what is on the cluster: the tests look at causes, not at git.
func liveGraph(s flux.Snapshot) *tiers.Graph {
	g := &tiers.Graph{Entry: "clusters/test"}
	keys := slices.SortedFunc(maps.Keys(s.Kustomizations), func(a, b flux.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		k := s.Kustomizations[key]
		t := &tiers.Tier{Key: key, Kustomization: k, Source: flux.SourceOf(k).String()}
		parent := tiers.Key{Namespace: k.Labels["kustomize.toolkit.fluxcd.io/namespace"], Name: k.Labels["kustomize.toolkit.fluxcd.io/name"]}
		if parent.Name != "" && parent != key {
			t.Parent = &parent
		}
		for _, dep := range k.Spec.DependsOn {
			t.DependsOn = append(t.DependsOn, tiers.Key{Namespace: key.Namespace, Name: dep.Name})
		}
		g.Tiers = append(g.Tiers, t)
	}
	return g
}

// diagnose does what status does: look, read more about what is found, look again.
func (e *diagnosisEnv) diagnose() []wait.Diagnosis {
	e.t.Helper()
	snapshot, ok := e.last()
	if !ok {
		return nil
	}
	graph := liveGraph(snapshot)
	causes := wait.Diagnose(e.t.Context(), graph, snapshot, wait.Evidence{}, time.Now())
	evidence, err := wait.Gather(e.t.Context(), e.clients, snapshot, causes, time.Now())
	if err != nil {
		e.t.Fatal(err)
	}
	return wait.Diagnose(e.t.Context(), graph, snapshot, evidence, time.Now())
}

// causeLine is a cause as the tests write it: "cause tier: summary | what it holds up | command".
func causeLine(d wait.Diagnosis) string {
	var blocks []string
	for _, b := range d.Blocks {
		blocks = append(blocks, b.Name)
	}
	return fmt.Sprintf("%s %s: %s | %s | %s", d.Cause, d.Tier.Name, d.Summary, strings.Join(blocks, " "), d.Command)
}

// expect waits until the diagnosis has exactly one line for each wanted one. A want ending in a
// part of "…" matches whatever follows up to the next "|".
func (e *diagnosisEnv) expect(limit time.Duration, want ...string) {
	e.t.Helper()
	var got []string
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Second) {
		got = nil
		for _, d := range e.diagnose() {
			got = append(got, causeLine(d))
		}
		if linesMissing(want, got) == nil {
			e.t.Logf("the diagnosis:\n  %s", strings.Join(got, "\n  "))
			return
		}
	}
	e.t.Errorf("these lines did not come:\n  %s\namong\n  %s", strings.Join(linesMissing(want, got), "\n  "), strings.Join(got, "\n  "))
}

func linesMissing(want, got []string) []string {
	var absent []string
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return lineMatches(w, g) }) {
			absent = append(absent, w)
		}
	}
	return absent
}

// lineMatches compares lines; "…" stands for any text.
func lineMatches(want, got string) bool {
	parts := strings.Split(want, "…")
	rest, ok := strings.CutPrefix(got, parts[0])
	for _, part := range parts[1:] {
		if !ok {
			return false
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && (rest == "" || strings.HasSuffix(want, "…"))
}

// scenario is the files of one trouble: a tier manifest and the folder it applies.
type scenario map[string]string

// troubledTier writes a tier's manifest into the entry and its objects into a folder of its name. spec is
// added to the Kustomization's.
func troubledTier(name, spec, objects string) scenario {
	const form = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 10s
  path: ./%[1]s
  prune: true
`
	manifest := fmt.Sprintf(form, name)
	if !strings.Contains(spec, "sourceRef:") {
		manifest += "  sourceRef: {kind: GitRepository, name: flux-system}\n"
	}
	if !strings.Contains(spec, "timeout:") {
		manifest += "  timeout: 5s\n"
	}
	for l := range strings.Lines(spec) {
		manifest += "  " + strings.TrimSuffix(l, "\n") + "\n"
	}
	return scenario{"clusters/test/" + name + ".yaml": manifest, name + "/objects.yaml": objects}
}

func configMap(name string) string { return configMapIn(name, "default") }

func configMapIn(name, namespace string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {a: b}\n"
}

func together(scenarios ...scenario) map[string]string {
	all := map[string]string{}
	for _, s := range scenarios {
		maps.Copy(all, s)
	}
	return all
}
