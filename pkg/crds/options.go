package crds

import (
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
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
	// Now is the clock; time.Now when nil.
	Now func() time.Time
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
	return o
}
