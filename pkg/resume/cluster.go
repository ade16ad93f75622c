package resume

import (
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// Cluster is what a run needs of a cluster.
type Cluster interface {
	// Watch hands every new snapshot of the Flux objects to onChange, from one goroutine, until ctx
	// ends or watching cannot succeed. It must not return nil before ctx ends.
	Watch(ctx context.Context, onChange func(flux.Snapshot)) error
	// Patch sends a merge patch with the field manager [flux.FieldManager]. Its errors are those of
	// the API. It is called from several goroutines at once.
	Patch(ctx context.Context, o Object, patch []byte) error
}

// NewCluster returns a cluster behind a client. opts say what to watch beside Kustomizations.
func NewCluster(client dynamic.Interface, opts wait.WatchOptions) Cluster {
	return &liveCluster{client: client, opts: opts}
}

// Watched says what a run on a graph has to watch: the sources of its tiers and, where it holds
// HelmReleases or was read without its objects, those and the HelmRepositories.
func Watched(g *tiers.Graph) wait.WatchOptions {
	opts := wait.WatchOptions{Sources: wait.SourceKinds(g)}
	rendered := false
	for _, t := range g.Tiers {
		rendered = rendered || t.Objects != nil
		opts.HelmReleases = opts.HelmReleases || slices.ContainsFunc(t.Objects, func(o render.Object) bool {
			return o.GetKind() == helmv2.HelmReleaseKind && o.GroupVersionKind().Group == helmv2.GroupVersion.Group
		})
	}
	if !rendered {
		opts.HelmReleases = true
	}
	if opts.HelmReleases {
		opts.Sources = append(opts.Sources, sourcev1.HelmRepositoryKind)
	}
	return opts
}

type liveCluster struct {
	client dynamic.Interface
	opts   wait.WatchOptions
}

func (c *liveCluster) Watch(ctx context.Context, onChange func(flux.Snapshot)) error {
	return wait.Watch(ctx, c.client, c.opts, onChange)
}

func (c *liveCluster) Patch(ctx context.Context, o Object, patch []byte) error {
	resource, ok := resourceOf(o.Kind)
	if !ok {
		return fmt.Errorf("patching %s: not a kind that Flux can be asked about", o)
	}
	_, err := c.client.Resource(resource).Namespace(o.Namespace).Patch(ctx, o.Name, flux.PatchType, patch,
		metav1.PatchOptions{FieldManager: flux.FieldManager})
	return err
}

func resourceOf(kind string) (schema.GroupVersionResource, bool) {
	switch kind {
	case kustomizev1.KustomizationKind:
		return kustomizev1.GroupVersion.WithResource("kustomizations"), true
	case helmv2.HelmReleaseKind:
		return helmv2.GroupVersion.WithResource("helmreleases"), true
	case sourcev1.GitRepositoryKind:
		return sourcev1.GroupVersion.WithResource("gitrepositories"), true
	case sourcev1.OCIRepositoryKind:
		return sourcev1.GroupVersion.WithResource("ocirepositories"), true
	case sourcev1.BucketKind:
		return sourcev1.GroupVersion.WithResource("buckets"), true
	case sourcev1.HelmRepositoryKind:
		return sourcev1.GroupVersion.WithResource("helmrepositories"), true
	}
	return schema.GroupVersionResource{}, false
}
