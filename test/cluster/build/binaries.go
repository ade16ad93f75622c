// Package build builds the real control plane from the pinned Go modules under
// test/cluster/modules, into a cache that every clone on the machine shares.
//
// Each module has a directory of its own in the cache, named for a hash of all
// that its binaries depend on, so a change to one module rebuilds that module
// only. A binary is built under a temporary name and renamed: what has its final
// name is whole. One builder works on a module at a time, the others wait for it.
package build

import (
	"fmt"
	"os"
	"path/filepath"
)

// Component is a binary of the control plane, by its usual name.
type Component string

// The components that the modules under test/cluster/modules build.
const (
	Etcd                Component = "etcd"
	APIServer           Component = "kube-apiserver"
	ControllerManager   Component = "kube-controller-manager"
	Scheduler           Component = "kube-scheduler"
	Kwok                Component = "kwok"
	SourceController    Component = "source-controller"
	KustomizeController Component = "kustomize-controller"
	kubernetesVersion             = "v1.36.3"
	fluxSourceModule              = "github.com/fluxcd/source-controller"
	fluxKustomizeModule           = "github.com/fluxcd/kustomize-controller"
	kwokModule                    = "sigs.k8s.io/kwok"
	modulesDir                    = "test/cluster/modules"
	productModule                 = "github.com/standup-sh/standup"
)

// module is one nested Go module and what is built from it.
type module struct {
	name     string
	ldflags  string
	packages map[Component]string
	assets   []asset
}

// asset is a directory of YAML files in a dependency's module, kept beside the
// binaries so that starting a cluster needs no go command.
type asset struct {
	module string
	dir    string
}

// modules in the order in which they are built.
func modules() []module {
	const strip = "-s -w"
	const kubernetes = "k8s.io/component-base/version"
	return []module{
		{name: "etcd", ldflags: strip, packages: map[Component]string{Etcd: "go.etcd.io/etcd/server/v3"}},
		{
			name: "kubernetes",
			// Without these the version reads v0.0.0-master+$Format…, which clients
			// cannot parse.
			ldflags: fmt.Sprintf("%s -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=36 -X %s.gitTreeState=clean",
				strip, kubernetes, kubernetesVersion, kubernetes, kubernetes, kubernetes),
			packages: map[Component]string{
				APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
				ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
				Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
			},
		},
		{
			name: "flux", ldflags: strip,
			packages: map[Component]string{
				SourceController:    fluxSourceModule,
				KustomizeController: fluxKustomizeModule,
			},
			assets: []asset{
				{module: fluxSourceModule, dir: "config/crd/bases"},
				{module: fluxKustomizeModule, dir: "config/crd/bases"},
			},
		},
		{
			name: "kwok", ldflags: strip,
			packages: map[Component]string{Kwok: "sigs.k8s.io/kwok/cmd/kwok"},
			assets: []asset{
				{module: kwokModule, dir: "kustomize/stage/node/fast"},
				{module: kwokModule, dir: "kustomize/stage/node/heartbeat-with-lease"},
				{module: kwokModule, dir: "kustomize/stage/pod/fast"},
			},
		},
	}
}

// All lists every component in the order in which it is built.
func All() []Component {
	return []Component{
		Etcd, APIServer, ControllerManager, Scheduler, SourceController, KustomizeController, Kwok,
	}
}

// Binaries is a built control plane: where each component's binary is, and the
// YAML files that belong to it.
type Binaries struct {
	paths  map[Component]string
	assets map[string]string
}

// Path is the absolute path of a component's binary, empty if it was not asked
// for.
func (b *Binaries) Path(c Component) string { return b.paths[c] }

// CRDDirs are the directories with Flux's own CustomResourceDefinitions.
func (b *Binaries) CRDDirs() []string {
	return b.existing(fluxSourceModule+"/config/crd/bases", fluxKustomizeModule+"/config/crd/bases")
}

// StageDirs are the directories with kwok's stages, which make nodes and pods
// Ready.
func (b *Binaries) StageDirs() []string {
	return b.existing(kwokModule+"/kustomize/stage/node/fast",
		kwokModule+"/kustomize/stage/node/heartbeat-with-lease",
		kwokModule+"/kustomize/stage/pod/fast")
}

func (b *Binaries) existing(names ...string) []string {
	var dirs []string
	for _, name := range names {
		if dir, ok := b.assets[name]; ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ModulesDir finds test/cluster/modules from dir, which must lie anywhere in a
// clone of this repository.
func ModulesDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for at := abs; ; at = filepath.Dir(at) {
		found := filepath.Join(at, filepath.FromSlash(modulesDir))
		if info, err := os.Stat(found); err == nil && info.IsDir() {
			return found, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("finding %s above %s: not inside a clone of %s", modulesDir, abs, productModule)
		}
	}
}
