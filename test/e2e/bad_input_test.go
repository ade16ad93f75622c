package e2e

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/cold"
	"github.com/standup-sh/standup/test/homenetwork"
)

// TestE2EBadClusters: what the cluster lacks or refuses is one clear line, exit 2, and not a single
// write. The cases go from a cluster that Flux has not been pointed at to one without Flux.
func TestE2EBadClusters(t *testing.T) {
	c := cluster.New(t, cluster.Options{Components: cluster.Flux()})
	r, err := cold.PushHomeNetwork(t.Context(), c, homenetwork.Wedged)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(t *testing.T, kubeconfig, want string) {
		t.Helper()
		for _, command := range []string{"up", "resume", "crds"} {
			writes := writesOf(t, c, func() {
				o := standupWith(t, kubeconfig, r.Dir, command, "--path", prod, "--timeout", "20s")
				if o.code != 2 || !strings.Contains(o.stderr, want) || o.stdout != "" {
					t.Errorf("%s: exit %d, want 2, nothing on stdout, and %q on stderr", command, o.code, want)
				}
			})
			if len(writes) > 0 {
				t.Errorf("%s wrote: %v", command, writes)
			}
		}
	}

	t.Run("not pointed at the repository", func(t *testing.T) {
		refused(t, c.Kubeconfig(), "GitRepository/flux-system/flux-system is not on the cluster")
	})

	t.Run("no such tier", func(t *testing.T) {
		o := standupWith(t, c.Kubeconfig(), r.Dir, "up", "--path", prod, "--until", "nope")
		if o.code != 2 || !strings.Contains(o.stderr, "nope") || strings.Contains(o.stderr, "is not on the cluster") {
			t.Errorf("exit %d, want 2 and the tier named before anything about the cluster", o.code)
		}
	})

	t.Run("may only read", func(t *testing.T) {
		if err := c.Sync(t.Context(), cluster.Sync{Repo: r.Name, Path: prod}); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"up", "resume", "crds"} {
			o := standupWith(t, c.Kubeconfig(), r.Dir, command, "--path", "platform-config", "--timeout", "20s")
			if o.code != 2 || !strings.Contains(o.stderr, "this cluster syncs ./"+prod+", and platform-config was read") || !strings.Contains(o.stderr, "pass --path "+prod) {
				t.Errorf("%s of another path: exit %d, want 2 and both paths", command, o.code)
			}
		}
		reader, err := c.AddUser(t.Context(), "reader", rbacv1.PolicyRule{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
		})
		if err != nil {
			t.Fatal(err)
		}
		writes := writesOf(t, c, func() {
			o := standupWith(t, reader, r.Dir, "up", "--path", prod, "--timeout", "20s")
			if o.code != 2 || !strings.Contains(o.stderr, "patch kustomizations.kustomize.toolkit.fluxcd.io") {
				t.Errorf("up: exit %d, want 2 and the missing permission named", o.code)
			}
		})
		if len(writes) > 0 {
			t.Errorf("up wrote: %v", writes)
		}
	})

	t.Run("without Flux", func(t *testing.T) {
		must(t, c.Stop(cluster.KustomizeController)) // it would clear up for minutes
		must(t, c.Stop(cluster.SourceController))
		for _, gvr := range []schema.GroupVersionResource{kustomizev1.GroupVersion.WithResource("kustomizations"), sourcev1.GroupVersion.WithResource("gitrepositories")} {
			objects, err := c.Dynamic().Resource(gvr).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for _, o := range objects.Items {
				_, err := c.Dynamic().Resource(gvr).Namespace(o.GetNamespace()).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				must(t, err)
			}
		}
		crds := c.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		discovery := clientsOf(t, c.RESTConfig()).Discovery
		list, err := crds.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range list.Items {
			if strings.HasSuffix(crd.GetName(), kustomizev1.GroupVersion.Group) || strings.HasSuffix(crd.GetName(), sourcev1.GroupVersion.Group) {
				if err := crds.Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for gone := false; !gone; time.Sleep(100 * time.Millisecond) {
			_, source := discovery.ServerResourcesForGroupVersion(sourcev1.GroupVersion.String())
			_, kustomize := discovery.ServerResourcesForGroupVersion(kustomizev1.GroupVersion.String())
			gone = apierrors.IsNotFound(source) && apierrors.IsNotFound(kustomize)
		}
		refused(t, c.Kubeconfig(), "Flux is not installed on this cluster")
	})
}
