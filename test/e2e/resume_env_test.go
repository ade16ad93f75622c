package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/model"
)

// resumeAgent is the user agent of everything that the tests of pkg/resume send.
const resumeAgent = "standup-e2e-resume"

// resumeEnv is a cluster whose Flux is set up as it is shipped.
type resumeEnv struct {
	*cluster.Cluster
	client dynamic.Interface
}

func newResumeEnv(t *testing.T) *resumeEnv {
	t.Helper()
	c := cluster.New(t, cluster.Options{Flags: map[cluster.Component][]string{
		cluster.SourceController:    {"--enable-leader-election=false"},
		cluster.KustomizeController: {"--enable-leader-election=false"},
	}})
	config := rest.CopyConfig(c.RESTConfig())
	config.UserAgent, config.QPS = resumeAgent, -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &resumeEnv{Cluster: c, client: client}
}

// stage is one scenario in a namespace of its own.
type stage struct {
	*resumeEnv
	t         *testing.T
	scenario  model.Scenario
	namespace string
	graph     *tiers.Graph
}

func (e *resumeEnv) stage(t *testing.T, s model.Scenario, namespace string) *stage {
	t.Helper()
	st := &stage{resumeEnv: e, t: t, scenario: s, namespace: namespace, graph: model.Graph(s.All(), namespace)}
	if err := e.Apply(t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n"); err != nil {
		t.Fatal(err)
	}
	st.push(1)
	if err := e.Sync(t.Context(), cluster.Sync{Repo: namespace, Path: model.Namespace, Namespace: namespace}); err != nil {
		t.Fatal(err)
	}
	return st
}

// push makes a revision of the scenario's repository; the number is in every ConfigMap.
func (s *stage) push(revision int) {
	s.t.Helper()
	if _, err := cold.Push(s.t.Context(), s.Cluster, s.namespace, s.tree(revision), fmt.Sprint("revision ", revision)); err != nil {
		s.t.Fatal(err)
	}
}

// fetch asks source-controller for the newest revision.
func (s *stage) fetch() {
	s.t.Helper()
	sources, err := s.Resource(cluster.GitRepositoryGVK(), s.namespace)
	if err == nil {
		_, err = sources.Patch(s.t.Context(), model.Namespace, flux.PatchType, flux.NudgePatch(flux.Token(time.Now())), metav1.PatchOptions{FieldManager: "e2e"})
	}
	if err != nil {
		s.t.Error(err)
	}
}

// tree writes the tiers' manifests: what the model only names, the real controllers must find.
func (s *stage) tree(revision int) fstest.MapFS {
	tree := fstest.MapFS{}
	resources := map[string][]string{}
	write := func(folder, name, text string) {
		tree[folder+"/"+name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		resources[folder] = append(resources[folder], name)
	}
	for _, t := range s.scenario.All() {
		if t.Name != model.Namespace {
			write(t.Parent, t.Name+".yaml", s.kustomization(t))
		}
		write(t.Name, "configmap.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {revision: %q}\n", t.Name, s.namespace, fmt.Sprint(revision)))
		if t.Health > 0 {
			write(t.Name, "deployment.yaml", fmt.Sprintf(deploymentManifest, t.Name, s.namespace, t.Name, t.Name))
		}
		for _, kind := range t.Provides {
			write(t.Name, "crd.yaml", fmt.Sprintf(crdManifest, strings.ToLower(kind)+"s", s.group(), s.group(), kind, strings.ToLower(kind)+"s", strings.ToLower(kind)))
		}
		for _, kind := range t.Needs {
			write(t.Name, "object.yaml", fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: a, namespace: %s}\n", s.group(), kind, s.namespace))
		}
		switch {
		case t.Broken == nil:
		case t.Broken.Reason == "BuildFailed":
			resources[t.Name] = append(resources[t.Name], "missing.yaml")
		default:
			write(t.Name, "absent.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: absent}\n")
		}
	}
	for folder, names := range resources {
		text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " + strings.Join(names, "\n- ") + "\n"
		tree[folder+"/kustomization.yaml"] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return tree
}

func (s *stage) group() string { return s.namespace + ".example.com" }

func (s *stage) kustomization(t model.Tier) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: %s}\nspec:\n", t.Name, s.namespace)
	fmt.Fprintf(&b, "  interval: %s\n  path: ./%s\n  prune: true\n  wait: %v\n", t.Interval, t.Name, t.Wait)
	fmt.Fprintf(&b, "  sourceRef: {kind: GitRepository, name: %s}\n", model.Namespace)
	if t.Timeout > 0 {
		fmt.Fprintf(&b, "  timeout: %s\n", t.Timeout)
	}
	if t.InGit && t.Suspended {
		b.WriteString("  suspend: true\n")
	}
	if t.Sick != nil {
		b.WriteString("  postBuild: {substituteFrom: [{kind: ConfigMap, name: late}]}\n")
	}
	if len(t.DependsOn) > 0 {
		b.WriteString("  dependsOn:\n")
		for _, dep := range t.DependsOn {
			fmt.Fprintf(&b, "  - name: %s\n", dep)
		}
	}
	return b.String()
}

const deploymentManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {containers: [{name: a, image: example.com/a:1}]}
`

const crdManifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s, singular: %s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// attempt is what a run of standup did.
type attempt struct {
	err    error
	took   time.Duration
	writes map[string]int
	log    []string
}

// run runs standup on the scenario until it ends or ctx does.
func (s *stage) run(ctx context.Context) attempt {
	s.t.Helper()
	opts := resume.Options{Graph: s.graph, TierTimeout: s.scenario.TierTimeout}
	for _, name := range s.scenario.Except {
		opts.Selection.Except = append(opts.Selection.Except, tiers.Key{Namespace: s.namespace, Name: name})
	}
	a := attempt{writes: map[string]int{}}
	begin := time.Now()
	live := resume.NewCluster(s.client, s.watched())
	a.err = resume.Run(ctx, live, opts, func(e resume.Event) {
		line := fmt.Sprintf("%7.2fs %s", e.Time.Sub(begin).Seconds(), e.Kind)
		switch {
		case e.Action != nil:
			if e.Action.Object.Kind != sourcev1.GitRepositoryKind { // it has the name of the entry's tier
				a.writes[e.Action.Object.Name]++
			}
			line += fmt.Sprintf(" %s %s (%s)", e.Action.Verb, e.Action.Object, e.Action.Why)
		case e.Standing != nil:
			line += fmt.Sprintf(" %s %s %s %s", e.Standing.Object.Name, e.Standing.Phase, e.Standing.Cause, e.Standing.Status.Reason)
		default:
			line += " " + e.Message
		}
		a.log = append(a.log, line)
	})
	a.took = time.Since(begin)
	return a
}

// watched leaves out what only the scenario with HelmReleases has.
func (s *stage) watched() wait.WatchOptions {
	if s.namespace == "helm" {
		return resume.Watched(s.graph)
	}
	return wait.WatchOptions{Sources: wait.SourceKinds(s.graph)}
}

// ended reads what an error says is pending, and why.
func (a attempt) ended(t *testing.T) (pending []string, causes map[string]string) {
	t.Helper()
	if a.err == nil {
		return nil, nil
	}
	var notReady *resume.NotReadyError
	if !errors.As(a.err, &notReady) {
		t.Fatalf("%v\n%s", a.err, strings.Join(a.log, "\n"))
	}
	causes = map[string]string{}
	for _, p := range notReady.Pending {
		pending = append(pending, p.Object.Name)
	}
	for _, root := range notReady.Roots() {
		causes[root.Object.Name] = string(root.Cause)
	}
	return pending, causes
}

// requestsOf runs something and returns what standup asked the API server for meanwhile.
func (e *resumeEnv) requestsOf(t *testing.T, do func()) []cluster.Entry {
	t.Helper()
	mark, err := e.Audit.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do()
	entries, err := e.Audit.Since(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Select(entries, cluster.ByUserAgent(resumeAgent))
}

// readyTiers waits until all tiers of the graph are ready at the source's revision.
func (s *stage) readyTiers() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	err := resume.NewCluster(s.client, wait.WatchOptions{Sources: []string{"GitRepository"}}).Watch(ctx, func(snapshot flux.Snapshot) {
		if !slices.ContainsFunc(s.graph.Tiers, func(t *tiers.Tier) bool {
			k := snapshot.Kustomizations[t.Key]
			return k == nil || !flux.Settled(k, snapshot)
		}) {
			cancel()
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatal("the tiers do not come up by themselves")
	}
}

// later does something after a while, unless the test ends first.
func (s *stage) later(after time.Duration, do func()) {
	if after == 0 {
		return
	}
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			do()
		case <-stop:
		}
	})
	s.t.Cleanup(func() { close(stop); done.Wait() })
}

// lateConfigMap creates what a tier's substituteFrom waits for.
func (s *stage) lateConfigMap() {
	if err := s.ApplyObject(context.WithoutCancel(s.t.Context()), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": s.namespace, "name": "late"},
		"data":     map[string]any{"a": "b"},
	}}); err != nil {
		s.t.Error(err)
	}
}
