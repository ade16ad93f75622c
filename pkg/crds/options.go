package crds

import (
	"context"
	"slices"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Clients reach one API server.
type Clients struct {
	Dynamic       dynamic.Interface
	Discovery     discovery.DiscoveryInterface
	APIExtensions apiextensions.Interface
}

// Options say what is in git and how patient to be. Graph and Catalogue are required.
type Options struct {
	// Graph is what git holds at the revision that the cluster has, built with objects.
	Graph     *tiers.Graph
	Catalogue *Catalogue
	// Rendered are charts that were rendered; may be nil.
	Rendered *Rendered
	// Rules are Flux's rules; nil is Flux as it is shipped.
	Rules *flux.Rules
	// Timeout is how long a kind may take to appear, and a pass to end; 5 minutes when zero.
	Timeout time.Duration
	// Poll is how often the cluster is asked; half a second when zero.
	Poll time.Duration
	// DryRun finds out what would be written, with server-side dry runs, and writes nothing.
	DryRun bool
	// Bundle are CRDs that the user keeps; [Run] creates those that are missing before all else. May
	// be nil.
	Bundle *Bundle
	// Cold makes [Run] create the CRDs of git and of Charts before all else.
	Cold bool
	// Charts are the CRDs of rendered charts, for Cold.
	Charts []ChartDefinition
	// Begin is called once, before the first write that is not a dry run: whoever must be the only
	// one to write makes sure of it there. Its error ends the call before anything is written, as a
	// [BeginError]. A call that writes nothing never calls it. May be nil.
	Begin func(ctx context.Context) error
	// Now is the clock; time.Now when nil.
	Now func() time.Time

	begun *beginning
	// assumed are CRDs that a dry run would have created by now.
	assumed []render.Object
}

func (o Options) complete() Options {
	if o.Rules == nil {
		o.Rules = new(flux.Rules)
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Poll == 0 {
		o.Poll = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.begun == nil {
		o.begun = &beginning{call: o.Begin}
	}
	return o
}

// beginning is the one call of Options.Begin that a run makes, shared by all that writes in it.
type beginning struct {
	call func(ctx context.Context) error
	done bool
	err  error
}

// once is called before every write.
func (b *beginning) once(ctx context.Context) error {
	if b.call == nil || b.done {
		return b.err
	}
	b.done = true
	if err := b.call(ctx); err != nil {
		b.err = &BeginError{Err: err}
	}
	return b.err
}

// assumes reports whether a dry run would have created a CRD by now.
func (o Options) assumes(crd render.Object) bool {
	return slices.ContainsFunc(o.assumed, func(a render.Object) bool { return a.GetName() == crd.GetName() })
}

// assumedKinds are the kinds of the CRDs that a dry run would have created by now.
func (o Options) assumedKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, crd := range o.assumed {
		kinds = append(kinds, definedKinds(crd)...)
	}
	return kinds
}
