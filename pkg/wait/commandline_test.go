package wait

import (
	"testing"

	"github.com/standup-sh/standup/pkg/flux"
)

func TestCommandLine(t *testing.T) {
	const gate = flux.GateAdditiveCELDependencyCheck
	for name, test := range map[string]struct {
		containers string
		concurrent int
		gate       bool
	}{
		"the default":             {`[{name: manager, args: [--log-level=info]}]`, 0, false},
		"no arguments":            {`[{name: manager}]`, 0, false},
		"patched in":              {`[{name: manager, args: [--concurrent=4, --log-level=info, --concurrent=20]}]`, 20, false},
		"two words":               {`[{name: manager, args: [--concurrent, "8", --watch-all-namespaces]}]`, 8, false},
		"a sidecar first":         {`[{name: proxy, args: [--concurrent=1]}, {name: manager, args: [--concurrent=6]}]`, 6, false},
		"not a number":            {`[{name: manager, args: [--concurrent=$(WORKERS)]}]`, 0, false},
		"a gate":                  {`[{name: manager, args: ["--feature-gates=` + gate + `=true"]}]`, 0, true},
		"a gate among others":     {`[{name: manager, args: ["--feature-gates=A=true,` + gate + `=true"]}]`, 0, true},
		"gates in two flags":      {`[{name: manager, args: ["--feature-gates=` + gate + `=true", --feature-gates=A=false]}]`, 0, true},
		"a gate that is off":      {`[{name: manager, args: ["--feature-gates=` + gate + `=false"]}]`, 0, false},
		"a gate that is set last": {`[{name: manager, args: ["--feature-gates=` + gate + `=true", "--feature-gates=` + gate + `=false"]}]`, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := fakeClients(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {template: {spec: {containers: `+test.containers+`}}}
status: {availableReplicas: 1}
`)
			facts, _ := Controllers(t.Context(), client, "flux-system", now)
			flags := facts["kustomize-controller"].Flags
			compare(t, test.concurrent, flags.Concurrent())
			compare(t, test.gate, flags.Gate(gate))
		})
	}
}
