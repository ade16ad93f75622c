package flux

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCheckHealthExpressions(t *testing.T) {
	configMap, cluster := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Group: "example.org", Kind: "Cluster"}
	for name, test := range map[string]struct {
		kind  schema.GroupKind
		check kustomize.CustomHealthCheck
		want  string
	}{
		"of another kind":    {cluster, of("v1", "ConfigMap", "1"), ""},
		"of another group":   {cluster, of("example.com/v1", "Cluster", "1"), ""},
		"a boolean":          {cluster, of("example.org/v1", "Cluster", "status.phase == 'Ready' && has(spec.size)"), ""},
		"not known":          {cluster, of("example.org/v1", "Cluster", "status.ready"), ""},
		"types do not match": {cluster, of("example.org/v1", "Cluster", "1 == 'a'"), ""},
		"a list":             {cluster, of("example.org/v1", "Cluster", "status.conditions.filter(c, c.type == 'Ready')"), "healthCheckExprs of Cluster: current: \"status.conditions.filter(c, c.type == 'Ready')\" gives list(dyn), not true or false"},
		"a number of all":    {cluster, of("example.org/v1", "", "size(status.nodes)"), "healthCheckExprs of Cluster: current: \"size(status.nodes)\" gives int, not true or false"},
		"a field":            {configMap, of("v1", "ConfigMap", "data.all(k, data[k] != '')"), ""},
		"no such field":      {configMap, of("v1", "ConfigMap", "has(status.ready)"), "healthCheckExprs of ConfigMap: current: \"has(status.ready)\": a ConfigMap has no field status"},
	} {
		got := ""
		if err := CheckHealthExpressions([]kustomize.CustomHealthCheck{test.check}, test.kind); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	failing := of("v1", "ConfigMap", "true")
	failing.Failed = "'no'"
	if err := CheckHealthExpressions([]kustomize.CustomHealthCheck{failing}, configMap); err == nil || !strings.Contains(err.Error(), "failed: ") {
		t.Errorf("an expression of failed: got %v", err)
	}
}

func of(apiVersion, kind, current string) kustomize.CustomHealthCheck {
	return kustomize.CustomHealthCheck{APIVersion: apiVersion, Kind: kind, HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: current}}
}
