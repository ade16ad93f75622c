package audit_test

import (
	"strings"
	"testing"

	"github.com/standup-sh/standup/pkg/tiers"
)

// TestUses looks at one way of naming an object each: without a path between the two tiers it is told, and
// with one it is not.
func TestUses(t *testing.T) {
	pod := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: user, namespace: default}\nspec:\n  template:\n    spec: {" + spec + "}\n"
	}
	object := func(version, kind, rest string) string {
		return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: user, namespace: default}\n" + rest
	}
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: used, namespace: default}\n"
	store := "apiVersion: external-secrets.io/v1\nkind: ClusterSecretStore\nmetadata: {name: used}\n"
	for _, test := range []struct {
		name, used, user string
		severity         tiers.Severity
	}{
		{"a pull secret", secret, pod("imagePullSecrets: [{name: used}]"), tiers.Warning},
		{"a service account by its old field", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: used, namespace: default}\n", pod("serviceAccount: used"), tiers.Warning},
		{"an ingress class by annotation", "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: used}\n",
			"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: user\n  namespace: default\n  annotations: {kubernetes.io/ingress.class: used}\n", tiers.Info},
		{"an ingress's certificate", secret, object("networking.k8s.io/v1", "Ingress", "spec: {tls: [{secretName: used}]}\n"), tiers.Info},
		{"a gateway's certificate", secret, object("gateway.networking.k8s.io/v1", "Gateway", "spec: {listeners: [{tls: {certificateRefs: [{name: used}]}}]}\n"), tiers.Info},
		{"a store of one value", store, object("external-secrets.io/v1", "ExternalSecret", "spec: {data: [{sourceRef: {storeRef: {kind: ClusterSecretStore, name: used}}}]}\n"), tiers.Warning},
		{"a store of many values", store, object("external-secrets.io/v1", "ExternalSecret", "spec: {dataFrom: [{sourceRef: {storeRef: {kind: ClusterSecretStore, name: used}}}]}\n"), tiers.Warning},
		{"a store to push to", store, object("external-secrets.io/v1", "PushSecret", "spec: {secretStoreRefs: [{kind: ClusterSecretStore, name: used}]}\n"), tiers.Warning},
		{"a release's values", secret, charts + release("user", "  valuesFrom: [{kind: Secret, name: used}]\n"), tiers.Warning},
		{"a release's optional values", secret, charts + release("user", "  valuesFrom: [{kind: Secret, name: used, optional: true}]\n"), ""},
		{"a release's cluster", secret, charts + release("user", "  kubeConfig: {secretRef: {name: used}}\n"), tiers.Warning},
		{"a release's account", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: used, namespace: default}\n", charts + release("user", "  serviceAccountName: used\n"), tiers.Warning},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, edge := range []string{"", "  dependsOn: [{name: a}]\n"} {
				result, _ := repository(t, map[string]string{
					"cluster/tiers.yaml": tier("a", "") + tier("b", "  wait: true\n"+edge), "a/used.yaml": test.used, "b/user.yaml": test.user,
					".standup.yaml": "beforeFlux: {groups: [external-secrets.io, gateway.networking.k8s.io]}\n",
				}).audit(t)
				found := tiers.Severity("")
				for _, f := range result.Findings {
					if f.Rule == "unordered-use" && strings.Contains(f.Message, "used") {
						found = f.Severity
					}
				}
				want := test.severity
				if edge != "" {
					want = ""
				}
				if found != want {
					t.Errorf("with %q: %q, want %q\n%s", edge, found, want, lines(result.Findings))
				}
			}
		})
	}
}
