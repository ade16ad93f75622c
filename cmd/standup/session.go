package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// pingTimeout bounds the first request: a cluster that does not answer it is not there.
const pingTimeout = 15 * time.Second

// session is one repository and one cluster, read and ready to be worked on.
type session struct {
	*cluster
	namespace string
	tree      *repo.Tree
	graph     *tiers.Graph
	refused   refusals
}

// UnreachableError says that the API server did not answer the first request.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("reaching the cluster at %s: %v", e.Host, e.Err)
}

// Unwrap returns the transport's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// open connects to the cluster and loads the graph from git, with the cluster's own ConfigMaps and
// Secrets for what git's substitutions do not say.
func (a *app) open(c *cli.Context, objects bool) (*session, error) {
	k, err := a.connect(c)
	if err != nil {
		return nil, err
	}
	a.progress(c, "cluster %s (context %s)", k.Host, k.Context)
	if err := k.ping(c.Context); err != nil {
		return nil, err
	}
	s := &session{cluster: k, namespace: c.String(flagNamespace)}
	if s.tree, err = openRepo(c); err != nil {
		return nil, err
	}
	options, err := loadOptions(c, s.tree)
	if err != nil {
		return nil, err
	}
	options.Objects = objects
	options.Lookup = k.lookup(c.Context)
	if s.graph, err = tiers.Load(c.Context, s.tree, options); err != nil {
		return nil, err
	}
	if _, err := selection(c).Of(s.graph); err != nil {
		return nil, err // before the cluster is looked at any further
	}
	if tiers := len(s.graph.Tiers); tiers == 1 {
		a.progress(c, "1 tier below %s: no Kustomization is applied from there; is it the folder that Flux syncs?", s.graph.Entry)
	} else {
		a.progress(c, "%d tiers below %s", tiers, s.graph.Entry)
	}
	return s, nil
}

// openToSee is open for what changes nothing that another entry path would not: there, reading the wrong
// one is worth a warning.
func (a *app) openToSee(c *cli.Context) (*session, error) {
	s, err := a.open(c, false)
	if err != nil {
		return nil, err
	}
	if err := s.checkPath(c.Context); err != nil {
		a.progress(c, "warning: %v: is this the right --path, and the right --context?", err)
	}
	return s, nil
}

// PathError says that the cluster syncs another entry path than the one that was read.
type PathError struct{ Cluster, Read string }

func (e *PathError) Error() string {
	return fmt.Sprintf("this cluster syncs %s, and %s was read", e.Cluster, e.Read)
}

// checkPath returns a *PathError where the entry's Kustomization has another path on the cluster than in
// what was read.
func (s *session) checkPath(ctx context.Context) error {
	if live := s.syncedPath(ctx); live != "" {
		return &PathError{Cluster: live, Read: s.graph.Entry}
	}
	return nil
}

// syncedPath is the path that the entry's Kustomization has on the cluster, if that is not the one
// that was read; empty where it is, and where nobody can tell.
func (s *session) syncedPath(ctx context.Context) string {
	entry := entryOf(s.graph)
	if entry == nil || entry.Kustomization.Spec.SourceRef.Kind != "GitRepository" {
		return ""
	}
	ks, err := s.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).Namespace(entry.Key.Namespace).Get(ctx, entry.Key.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	live, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	return otherPath(live, entry.Kustomization.Spec.Path)
}

// otherPath is the first of two paths below one root, if the second is another.
func otherPath(live, read string) string {
	clean := func(p string) string { return path.Clean("/" + p) }
	if clean(live) == clean(read) {
		return ""
	}
	return "." + clean(live)
}

func (s *session) clients() wait.Clients {
	return wait.Clients{Dynamic: s.Dynamic, Discovery: s.Discovery, FluxNamespace: s.namespace}
}

// ping makes the first request.
func (k *cluster) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := k.Discovery.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return &UnreachableError{Host: k.Host, Err: err}
	}
	return nil
}

// lookup answers substituteFrom with what the cluster has. What cannot be read is not known: the
// renderer reports it.
func (k *cluster) lookup(ctx context.Context) render.Lookup {
	return func(kind, namespace, name string) (map[string]string, bool) {
		resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		if kind == "Secret" {
			resource.Resource = "secrets"
		}
		o, err := k.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, false
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		if kind != "Secret" {
			return data, true
		}
		for key, value := range data {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return nil, false
			}
			data[key] = string(decoded)
		}
		return data, true
	}
}
