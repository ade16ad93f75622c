package cluster

import (
	"fmt"
	"slices"

	"github.com/standup-sh/standup/test/cluster/build"
)

// Component is one process of the control plane.
type Component = build.Component

// The components, under the names of their binaries.
const (
	Etcd                = build.Etcd
	APIServer           = build.APIServer
	ControllerManager   = build.ControllerManager
	Scheduler           = build.Scheduler
	Kwok                = build.Kwok
	SourceController    = build.SourceController
	KustomizeController = build.KustomizeController
)

// Options of Start. The zero value starts everything.
type Options struct {
	// Components to start, all where empty. See Flux and API for the usual
	// smaller sets.
	Components []Component
	// Flags are added to a component's command line; where a flag is given twice
	// the component takes the last.
	Flags map[Component][]string
	// Dir is where the state directory is made; the system's temporary directory
	// where empty.
	Dir string
	// Keep leaves the state directory behind.
	Keep bool
	// Cache overrides the directory that the binaries are built into.
	Cache string
	// Progress is called while binaries are built.
	Progress func(build.Event)
}

// Flux is the smallest set in which Flux applies objects: no pods, no garbage
// collection, no deletion of namespaces.
func Flux() []Component {
	return []Component{Etcd, APIServer, SourceController, KustomizeController}
}

// API is an API server with helm-controller's CRD and nothing that acts on it: Flux's other CRDs
// come with the controllers, see Flux.
func API() []Component { return []Component{Etcd, APIServer} }

func (o Options) complete() (Options, error) {
	if len(o.Components) == 0 {
		o.Components = build.All()
	}
	for _, c := range []Component{Etcd, APIServer} {
		if !slices.Contains(o.Components, c) {
			return o, fmt.Errorf("starting a cluster without %s: every cluster needs it", c)
		}
	}
	for c := range o.Flags {
		if !slices.Contains(o.Components, c) {
			return o, fmt.Errorf("setting flags of %s: not among the components", c)
		}
	}
	return o, nil
}
