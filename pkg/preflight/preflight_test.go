package preflight

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/flux"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const head = "4444444444444444444444444444444444444444"

// clients serve Flux's kinds, the given objects, and everything that denied does not name.
func clients(t *testing.T, denied []string, typed []runtime.Object, objects ...string) Clients {
	t.Helper()
	k := fake.NewClientset(typed...)
	discovery, ok := k.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		t.Fatal("no fake discovery")
	}
	discovery.FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
	discovery.Resources = []*metav1.APIResourceList{
		{GroupVersion: "kustomize.toolkit.fluxcd.io/v1", APIResources: []metav1.APIResource{{Name: "kustomizations", Kind: "Kustomization"}}},
		{GroupVersion: "source.toolkit.fluxcd.io/v1", APIResources: []metav1.APIResource{{Name: "gitrepositories", Kind: "GitRepository"}}},
	}
	k.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		at := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(denied, at.Verb+" "+at.Resource)
		return true, review, nil
	})
	var list []runtime.Object
	for _, text := range objects {
		u := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = u.UnmarshalJSON(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	return Clients{Kubernetes: k, Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                "DeploymentList",
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:      "LeaseList",
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}: "EndpointSliceList",
	}, list...)}
}

const alive = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {replicas: 1, template: {spec: {containers: [{name: manager, args: [--concurrent=12, --feature-gates=AdditiveCELDependencyCheck=true]}]}}}
status: {availableReplicas: 1}
`

const entry = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec: {path: ./clusters/prod}
`

func repository(revision string) string {
	return `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {url: https://git.example/fleet}
status: {artifact: {revision: "` + revision + `"}}
`
}

func options() Options {
	return Options{
		SourceKinds: []string{"GitRepository"}, Now: now, Revision: head,
		Entry:  &flux.Key{Namespace: "flux-system", Name: "flux-system"},
		Source: &flux.SourceRef{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"},
		Access: []Access{
			{Verb: "patch", Group: "kustomize.toolkit.fluxcd.io", Resource: "kustomizations", Namespace: "flux-system"},
			{Verb: "list", Group: "", Resource: "events", Optional: true},
		},
	}
}

// lines writes a report as "name status: message".
func lines(r Report) []string {
	var lines []string
	for _, c := range r.Checks {
		lines = append(lines, c.Name+" "+string(c.Status)+": "+c.Message)
	}
	return lines
}

func TestPreflight(t *testing.T) {
	r, err := Run(t.Context(), clients(t, nil, nil, alive, entry, repository("main@sha1:"+head)), options())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"api ok: Kubernetes v1.36.3",
		"crds ok: Flux's kinds are served",
		"source-controller unknown: cannot be told: there is no Deployment and no Lease of that name to tell",
		"kustomize-controller ok: running: its Deployment is available",
		"access ok: allowed: 2 of 2",
		"entry ok: Kustomization/flux-system/flux-system exists",
		"source ok: GitRepository/flux-system/flux-system has main@sha1:" + head,
		"revision ok: the cluster is at main@sha1:" + head + ", as read",
		"webhooks ok: no webhook with failurePolicy Fail is served from this cluster",
	}
	if diff := cmp.Diff(want, lines(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.Failed() {
		t.Error("the report failed")
	}
	if r.Workers != 12 || !r.Rules.AdditiveCELDependencyCheck {
		t.Errorf("%d workers, additive %v: want what the Deployment's arguments say", r.Workers, r.Rules.AdditiveCELDependencyCheck)
	}
}

func TestPreflightFindings(t *testing.T) {
	failClosed := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:         "check.policy.example",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "policy", Name: "policy"}},
		}},
	}
	ignored := admissionv1.Ignore
	failOpen := failClosed.DeepCopy()
	failOpen.Name, failOpen.Webhooks[0].FailurePolicy = "open", &ignored
	tests := map[string]struct {
		clients func(t *testing.T) Clients
		change  func(*Options)
		check   string
		want    string
		failed  bool
	}{
		"not reachable": {
			clients: func(t *testing.T) Clients {
				c := clients(t, nil, nil)
				c.Kubernetes.(*fake.Clientset).PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")
				})
				return c
			},
			check: "api", want: "api fail: the cluster cannot be reached: dial tcp 127.0.0.1:6443: connect: connection refused", failed: true,
		},
		"no Flux": {
			clients: func(t *testing.T) Clients {
				c := clients(t, nil, nil)
				c.Kubernetes.Discovery().(*fakediscovery.FakeDiscovery).Resources = nil
				return c
			},
			check: "crds", want: "crds fail: Flux is not installed: the cluster does not serve Kustomization (kustomize.toolkit.fluxcd.io/v1), GitRepository (source.toolkit.fluxcd.io/v1)", failed: true,
		},
		"a source kind is missing": {
			change: func(o *Options) { o.SourceKinds = []string{"GitRepository", "OCIRepository"} },
			check:  "crds", want: "crds fail: the cluster does not serve OCIRepository (source.toolkit.fluxcd.io/v1)", failed: true,
		},
		"no permission": {
			clients: func(t *testing.T) Clients { return clients(t, []string{"patch kustomizations"}, nil) },
			check:   "access", want: "access fail: not allowed: patch kustomizations.kustomize.toolkit.fluxcd.io in namespace flux-system", failed: true,
		},
		"no permission for what is optional": {
			clients: func(t *testing.T) Clients {
				return clients(t, []string{"list events"}, nil, entry, repository("main@sha1:"+head))
			},
			check: "access", want: "access warn: not allowed: list events in all namespaces",
		},
		"no entry": {
			clients: func(t *testing.T) Clients { return clients(t, nil, nil, repository("main@sha1:"+head)) },
			check:   "entry", want: "entry fail: Kustomization/flux-system/flux-system does not exist", failed: true,
		},
		"no source": {
			clients: func(t *testing.T) Clients { return clients(t, nil, nil, entry) },
			check:   "source", want: "source fail: GitRepository/flux-system/flux-system does not exist", failed: true,
		},
		"no artifact": {
			clients: func(t *testing.T) Clients { return clients(t, nil, nil, entry, repository("")) },
			check:   "source", want: "source warn: GitRepository/flux-system/flux-system has no artifact yet",
		},
		"another revision": {
			clients: func(t *testing.T) Clients {
				return clients(t, nil, nil, entry, repository("main@sha1:5555555555555555555555555555555555555555"))
			},
			check: "revision", want: "revision fail: the cluster is at main@sha1:5555555555555555555555555555555555555555, read was 444444444444", failed: true,
		},
		"an OCI digest": {
			clients: func(t *testing.T) Clients { return clients(t, nil, nil, entry, repository("latest@sha256:abcdef")) },
			check:   "revision", want: "revision unknown: the cluster's revision latest@sha256:abcdef does not name a commit to compare with 444444444444",
		},
		"a webhook without endpoints": {
			clients: func(t *testing.T) Clients {
				return clients(t, nil, []runtime.Object{failClosed, failOpen}, entry, repository("main@sha1:"+head))
			},
			check: "webhooks", want: "webhooks warn: webhooks with failurePolicy Fail and no ready endpoints: Service/policy/policy (ValidatingWebhookConfiguration/policy)",
		},
		"a webhook with endpoints": {
			clients: func(t *testing.T) Clients {
				return clients(t, nil, []runtime.Object{failClosed}, entry, repository("main@sha1:"+head), `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: policy-1, namespace: policy, labels: {kubernetes.io/service-name: policy}}
endpoints: [{addresses: [10.0.0.2], conditions: {ready: true}}]
`)
			},
			check: "webhooks", want: "webhooks ok: 1 services behind fail-closed webhooks, all with ready endpoints",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts := options()
			if test.change != nil {
				test.change(&opts)
			}
			c := clients(t, nil, nil, entry, repository("main@sha1:"+head))
			if test.clients != nil {
				c = test.clients(t)
			}
			r, err := Run(t.Context(), c, opts)
			if err != nil {
				t.Fatal(err)
			}
			got := lines(r)
			i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == test.check })
			if i < 0 {
				t.Fatalf("no check %s among %q", test.check, got)
			}
			if got[i] != test.want {
				t.Errorf("got  %s\nwant %s", got[i], test.want)
			}
			if r.Failed() != test.failed {
				t.Errorf("failed is %t, want %t:\n%q", r.Failed(), test.failed, got)
			}
		})
	}
}

func TestCommit(t *testing.T) {
	for revision, want := range map[string]string{
		"main@sha1:" + head:            head,
		"sha1:" + head:                 head,
		"refs/heads/x@sha1:" + head:    head,
		"v1.2.3@sha1:" + head:          head,
		"main/" + head:                 head,
		"latest@sha256:" + head + head: "",
		"sha256:abc":                   "",
		"main@sha1:123":                "",
		"main":                         "",
		"":                             "",
	} {
		if got, ok := Commit(revision); ok != (want != "") || ok && got != want {
			t.Errorf("Commit(%q) = %q, %t, want %q", revision, got, ok, want)
		}
	}
}
