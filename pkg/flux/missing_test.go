package flux

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMissingKinds(t *testing.T) {
	profile := schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}
	tests := map[string]struct {
		message string
		want    []MissingKind
	}{
		"the version is served, the kind is not": {
			`StorageProfile/longhorn-vm dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"` + "\n",
			[]MissingKind{{GVK: profile, Form: KindMissing, Object: "StorageProfile/longhorn-vm"}},
		},
		"an object with a namespace": {
			`Certificate/apps/tls dry-run failed: no matches for kind "Certificate" in version "cert-manager.io/v1"`,
			[]MissingKind{{GVK: schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, Form: KindMissing, Object: "Certificate/apps/tls"}},
		},
		"the version is not served": {
			"StorageProfile/longhorn-vm dry-run failed: unable to retrieve the complete list of server APIs: cdi.kubevirt.io/v1beta1: no matches for cdi.kubevirt.io/v1beta1, Resource=\n",
			[]MissingKind{{GVK: profile, Form: VersionMissing, Object: "StorageProfile/longhorn-vm"}},
		},
		"several versions are not served": {
			"Widget/a/b dry-run failed: unable to retrieve the complete list of server APIs: one.io/v1: the server could not find it, two.io/v1alpha1: stale GroupVersion discovery: two.io/v1alpha1",
			[]MissingKind{
				{GVK: schema.GroupVersionKind{Group: "one.io", Version: "v1", Kind: "Widget"}, Form: VersionMissing, Object: "Widget/a/b"},
				{GVK: schema.GroupVersionKind{Group: "two.io", Version: "v1alpha1", Kind: "Widget"}, Form: VersionMissing, Object: "Widget/a/b"},
			},
		},
		"the mapping outlived the CRD": {
			"Certificate/apps/tls not found: the server could not find the requested resource",
			[]MissingKind{{GVK: schema.GroupVersionKind{Kind: "Certificate"}, Form: Stale, Object: "Certificate/apps/tls"}},
		},
		"the mapping outlived the CRD of an object without namespace": {
			"ClusterIssuer/letsencrypt namespace not specified: the server could not find the requested resource",
			[]MissingKind{{GVK: schema.GroupVersionKind{Kind: "ClusterIssuer"}, Form: Stale, Object: "ClusterIssuer/letsencrypt"}},
		},
		"helm": {
			"Helm install failed for release apps/web with chart web@1.0.0: unable to build kubernetes objects from release manifest: resource mapping not found for name: \"web\" namespace: \"\" from \"\": no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"\nensure CRDs are installed first",
			[]MissingKind{{GVK: schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}, Form: KindMissing}},
		},
		"a kind in any of several versions": {
			`no matches for kind "A" in versions ["g.io/v1" "g.io/v2"]`,
			[]MissingKind{
				{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "A"}, Form: KindMissing},
				{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v2", Kind: "A"}, Form: KindMissing},
			},
		},
		"a kind of a group": {
			`no matches for kind "A" in group "g.io"`,
			[]MissingKind{{GVK: schema.GroupVersionKind{Group: "g.io", Kind: "A"}, Form: KindMissing}},
		},
		"said twice": {
			`A/x dry-run failed: no matches for kind "A" in version "g.io/v1"` + "\n" + `A/x dry-run failed: no matches for kind "A" in version "g.io/v1"`,
			[]MissingKind{{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "A"}, Form: KindMissing, Object: "A/x"}},
		},
		"a core kind in a version that is not":      {`no matches for kind "Pod" in version "v2"`, []MissingKind{{GVK: schema.GroupVersionKind{Version: "v2", Kind: "Pod"}, Form: KindMissing}}},
		"a missing namespace is not a missing kind": {`ConfigMap/apps/a not found: namespaces "apps" not found`, nil},
		"a webhook": {`ConfigMap/apps/a dry-run failed (InternalError): Internal error occurred: failed calling webhook "x"`, nil},
		"nothing":   {"", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MissingKinds(test.message)); diff != "" {
				t.Errorf("want(-) got(+):\n%s", diff)
			}
		})
	}
}
