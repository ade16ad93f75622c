package crds

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KubernetesRelease is the release whose own kinds [Builtin] lists.
const KubernetesRelease = "v1.36.3"

//go:generate go run ./internal/genbuiltin -version v1.36.3 -out builtin.tsv

//go:embed builtin.tsv
var builtinTable string

// Builtin returns the kinds that Kubernetes serves by itself, as [KubernetesRelease] has them.
// Alpha and beta versions are listed too, although an API server serves them only when told to:
// [Resource.Default] tells.
func Builtin() *Served {
	served := NewServed()
	for line := range strings.Lines(builtinTable) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 || strings.HasPrefix(line, "#") {
			continue
		}
		served.Add(schema.GroupVersionKind{Group: fields[0], Version: fields[1], Kind: fields[2]},
			Resource{Plural: fields[3], Namespaced: fields[4] == "Namespaced", Default: stable(fields[1])})
	}
	return served
}

// stable tells v1 and v2 from v1beta1. Kubernetes serves only stable versions of its own groups
// unless it is told otherwise (DefaultAPIResourceConfigSource in pkg/controlplane/instance.go).
func stable(version string) bool {
	return !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
}
