package e2e

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
)

// crdsAgent is the user agent of everything that the tests of pkg/crds send, by which its writes
// are found in the audit log.
const crdsAgent = "standup-e2e-crds"

// crdsEnv is a cluster with a repository, as `standup crds` finds them.
type crdsEnv struct {
	*cluster.Cluster
	t       *testing.T
	clients crds.Clients
	repo    cold.Repository
	path    string
	events  []crds.Event
}

// newCrdsEnv starts a cluster on which Flux looks again at dependencies every second, so that tests
// wait for what they are about.
func newCrdsEnv(t *testing.T) *crdsEnv {
	t.Helper()
	c := cluster.New(t, cluster.Options{Flags: map[cluster.Component][]string{
		cluster.SourceController:    {"--enable-leader-election=false"},
		cluster.KustomizeController: {"--enable-leader-election=false", "--requeue-dependency=1s"},
	}})
	env := &crdsEnv{Cluster: c, t: t, path: "clusters/test"}
	env.clients = clientsOf(t, c.RESTConfig())
	return env
}

func clientsOf(t *testing.T, config *rest.Config) crds.Clients {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = crdsAgent, -1
	var clients crds.Clients
	var err, all error
	clients.Dynamic, err = dynamic.NewForConfig(config)
	all = errors.Join(all, err)
	clients.Discovery, err = discovery.NewDiscoveryClientForConfig(config)
	all = errors.Join(all, err)
	clients.APIExtensions, err = apiextensions.NewForConfig(config)
	if all = errors.Join(all, err); all != nil {
		t.Fatal(all)
	}
	return clients
}

// as returns the clients of a user with exactly these rights.
func (e *crdsEnv) as(kubeconfig string) crds.Clients {
	e.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		e.t.Fatal(err)
	}
	return clientsOf(e.t, config)
}

// push makes files the repository's content and, the first time, points Flux at it.
func (e *crdsEnv) push(files map[string]string) {
	e.t.Helper()
	e.pushTree(crdsTree(files))
}

func (e *crdsEnv) pushTree(tree fs.FS) {
	e.t.Helper()
	first := e.repo.Name == ""
	e.cloneTree(tree)
	if first {
		if err := e.Sync(e.t.Context(), cluster.Sync{Repo: e.repo.Name, Path: e.path}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// clone makes files the repository's content, and leaves Flux alone.
func (e *crdsEnv) clone(files map[string]string) {
	e.t.Helper()
	e.cloneTree(crdsTree(files))
}

func (e *crdsEnv) cloneTree(tree fs.FS) {
	e.t.Helper()
	r, err := cold.Push(e.t.Context(), e.Cluster, "repo", tree, "test")
	if err != nil {
		e.t.Fatal(err)
	}
	e.repo = r
}

func crdsTree(files map[string]string) fs.FS {
	tree := fstest.MapFS{}
	for name, data := range files {
		tree[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
	}
	return tree
}

// tierFile is the manifest of a tier with the files of a folder of its name.
func tierFile(name string, extra string, dependsOn ...string) string {
	var deps strings.Builder
	if len(dependsOn) > 0 {
		deps.WriteString("  dependsOn:\n")
		for _, d := range dependsOn {
			deps.WriteString("  - name: " + d + "\n")
		}
	}
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\nspec:\n" +
		"  interval: 1h\n  retryInterval: 1h\n  timeout: 1m\n  path: ./" + name + "\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + deps.String() + extra
}

// options reads the graph from the clone, as the commands do.
func (e *crdsEnv) options() crds.Options {
	e.t.Helper()
	tree, err := repo.Open(e.repo.Dir, "HEAD")
	if err != nil {
		e.t.Fatal(err)
	}
	graph, err := tiers.Load(e.t.Context(), tree, tiers.Options{Path: e.path, Objects: true})
	if err != nil {
		e.t.Fatal(err)
	}
	catalogue, err := crds.DefaultCatalogue()
	if err != nil {
		e.t.Fatal(err)
	}
	return crds.Options{Graph: graph, Catalogue: catalogue, Timeout: time.Minute, Poll: 200 * time.Millisecond}
}

func (e *crdsEnv) run(opts crds.Options) (crds.Result, error) {
	e.t.Helper()
	e.events = nil
	return crds.Run(e.t.Context(), e.clients, opts, func(event crds.Event) { e.events = append(e.events, event) })
}

// mustRun runs and expects success.
func (e *crdsEnv) mustRun(opts crds.Options) crds.Result {
	e.t.Helper()
	result, err := e.run(opts)
	if err != nil {
		e.t.Fatalf("run: %v\nevents: %+v\nplan: %+v", err, e.events, result.Plan)
	}
	return result
}

// writesOf runs something and returns what standup wrote meanwhile, from the API server's audit log.
func (e *crdsEnv) writesOf(do func()) []cluster.Entry {
	e.t.Helper()
	return cluster.Writes(e.requestsOf(do))
}

// requestsOf are the requests of pkg/crds while do ran, reads among them.
func (e *crdsEnv) requestsOf(do func()) []cluster.Entry {
	e.t.Helper()
	mark, err := e.Audit.Mark(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	do()
	entries, err := e.Audit.Since(e.t.Context(), mark)
	if err != nil {
		e.t.Fatal(err)
	}
	return cluster.Select(entries, cluster.ByUserAgent(crdsAgent))
}

// waitTier waits until a tier's Ready condition satisfies ok.
func (e *crdsEnv) waitTier(name string, ok func(status, reason, message string) bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 3*time.Minute)
	defer cancel()
	var last string
	err := e.WaitFor(ctx, cluster.KustomizationGVK(), "flux-system", name, func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, entry := range list {
			c, _ := entry.(map[string]any)
			if c["type"] != "Ready" {
				continue
			}
			status, _ := c["status"].(string)
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			last = status + " " + reason + " " + message
			return ok(status, reason, message)
		}
		return false
	})
	if err != nil {
		e.t.Fatalf("tier %s: %v; it says: %s", name, err, last)
	}
}

// waitStuck waits until Flux itself reports that a tier fails for want of a kind.
func (e *crdsEnv) waitStuck(name, kind string) {
	e.t.Helper()
	e.waitTier(name, func(status, _, message string) bool {
		return status == "False" && strings.Contains(message, `no matches for kind "`+kind+`"`)
	})
}

func (e *crdsEnv) waitReady(names ...string) {
	e.t.Helper()
	for _, name := range names {
		e.waitTier(name, func(status, _, _ string) bool { return status == "True" })
	}
}

// object reads a live object.
func (e *crdsEnv) object(group, version, kind, namespace, name string) *unstructured.Unstructured {
	e.t.Helper()
	o, err := e.Get(e.t.Context(), schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, namespace, name)
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

// nothingOfOurs fails if any field of the objects is owned by standup.
func (e *crdsEnv) nothingOfOurs(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, o := range objects {
		for _, entry := range o.GetManagedFields() {
			if strings.Contains(entry.Manager, "standup") && entry.Manager != "standup" {
				e.t.Errorf("%s/%s: fields are still owned by %s", o.GetKind(), o.GetName(), entry.Manager)
			}
		}
	}
}

// background runs a stand-in until the test ends.
func (e *crdsEnv) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(e.t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			e.t.Error(err)
		}
	})
}

// files joins maps of files under folders.
func files(parts ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, p := range parts {
		for name, data := range p {
			all[path.Clean(name)] = data
		}
	}
	return all
}
