package wait

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/tiers"
)

// fakeClients serve the objects of a YAML stream and the kinds that Kubernetes has built in.
func fakeClients(t *testing.T, objects ...string) (*fake.FakeDynamicClient, Clients) {
	t.Helper()
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
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                         "DeploymentList",
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:               "LeaseList",
		{Version: "v1", Resource: "pods"}:                                               "PodList",
		{Version: "v1", Resource: "events"}:                                             "EventList",
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}:          "EndpointSliceList",
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}: "GitRepositoryList",
	}, list...)
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	discovery.Resources = []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/status", Kind: "Deployment", Namespaced: true}}},
		{GroupVersion: "cdi.kubevirt.io/v1beta1", APIResources: []metav1.APIResource{{Name: "cdis", Kind: "CDI"}}},
		{GroupVersion: "widgets.example/v1", APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}},
	}
	return client, Clients{Dynamic: client, Discovery: discovery}
}

const failingDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 1}
spec: {replicas: 1, selector: {matchLabels: {app: web}}}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: not yet}]}
`

const pullingPod = `
apiVersion: v1
kind: Pod
metadata: {name: web-abc-1, namespace: shop, labels: {app: web}}
status:
  phase: Pending
  containerStatuses:
  - {name: app, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "registry.example/web:1"'}}}
`

const strangerPod = `
apiVersion: v1
kind: Pod
metadata: {name: api-1, namespace: shop, labels: {app: api}}
status: {phase: Pending}
`

const pullEvent = `
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: shop}
type: Warning
reason: Failed
message: 'Failed to pull image "registry.example/web:1": not found'
lastTimestamp: "2026-11-30T11:59:00Z"
involvedObject: {kind: Pod, name: web-abc-1, namespace: shop}
`

const strangerEvent = `
apiVersion: v1
kind: Event
metadata: {name: e2, namespace: shop}
type: Warning
reason: FailedMount
message: not ours
involvedObject: {kind: Pod, name: api-1, namespace: shop}
`

func failingTier() *cluster {
	c := newCluster()
	c.tier("apps", "", gate, func(k *kustomizev1.Kustomization) {
		holding("shop_web_apps_Deployment", "shop_settings__ConfigMap")(k)
	}, failed(meta.HealthCheckFailedReason, "health check failed after 1m0.2s: timeout waiting for: [Deployment/shop/web status: 'InProgress']"))
	return c
}

func TestGatherHealth(t *testing.T) {
	client, clients := fakeClients(t, failingDeployment, pullingPod, strangerPod, pullEvent, strangerEvent)
	c := failingTier()
	evidence, err := Gather(t.Context(), clients, c.snapshot, c.diagnose(Evidence{}), now)
	if err != nil {
		t.Fatal(err)
	}
	got := c.diagnose(evidence)
	want := []WaitingObject{{
		ID: "Deployment/shop/web", Status: "InProgress", Message: "Available: 0/1",
		Pods:   []PodFact{{Name: "web-abc-1", Phase: "Pending", Waiting: []string{`app: ImagePullBackOff: Back-off pulling image "registry.example/web:1"`}}},
		Events: []string{`Failed: Failed to pull image "registry.example/web:1": not found`},
	}}
	compare(t, want, got[0].Waiting)
	var requests []string
	for _, a := range client.Actions() {
		requests = append(requests, a.GetVerb()+" "+a.GetResource().Resource)
	}
	compare(t, []string{"list deployments", "list leases", "get deployments", "list pods", "list events"}, requests)
}

func TestGatherReadsNothingWithoutCauses(t *testing.T) {
	client, clients := fakeClients(t)
	if _, err := Gather(t.Context(), clients, newSnapshot(), nil, now); err != nil {
		t.Fatal(err)
	}
	if n := len(client.Actions()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestGatherSaysWhatItMayNotRead(t *testing.T) {
	client, clients := fakeClients(t, failingDeployment)
	for _, resource := range []string{"pods", "events", "leases"} {
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
		})
	}
	c := failingTier()
	evidence, err := Gather(t.Context(), clients, c.snapshot, c.diagnose(Evidence{}), now)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, []string{
		"no permission to read the events of namespace shop", "no permission to read the leases of namespace flux-system",
		"no permission to read the pods of namespace shop",
	}, evidence.Unread)
}

func TestGatherKinds(t *testing.T) {
	_, clients := fakeClients(t)
	c := newCluster()
	for name, gvk := range map[string]string{
		"absent":  `no matches for kind "Gadget" in version "gadgets.example/v1"`,
		"beside":  `no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`,
		"version": `no matches for kind "Widget" in version "widgets.example/v2"`,
		"served":  `no matches for kind "Widget" in version "widgets.example/v1"`,
	} {
		c.tier(name, "", failed(meta.ReconciliationFailedReason, "X/y dry-run failed: "+gvk))
	}
	evidence, err := Gather(t.Context(), clients, c.snapshot, c.diagnose(Evidence{}), now)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, map[schema.GroupVersionKind]KindFact{
		{Group: "gadgets.example", Version: "v1", Kind: "Gadget"}:              {},
		{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}: {GroupServed: true},
		{Group: "widgets.example", Version: "v2", Kind: "Widget"}:              {GroupServed: true, Versions: []string{"v1"}},
		{Group: "widgets.example", Version: "v1", Kind: "Widget"}:              {GroupServed: true, Served: true, Namespaced: true},
	}, evidence.Kinds)
}

func TestGatherWebhookServices(t *testing.T) {
	_, clients := fakeClients(t, `
apiVersion: v1
kind: Service
metadata: {name: policy, namespace: policy}
`, `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: policy-1, namespace: policy, labels: {kubernetes.io/service-name: policy}}
endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}, {addresses: [10.0.0.2]}]
`)
	c := newCluster()
	message := `Pod/shop/web dry-run failed (InternalError): Internal error occurred: failed calling webhook "w": failed to call webhook: Post "https://SERVICE.policy.svc:443/v?timeout=10s": context deadline exceeded`
	for _, service := range []string{"policy", "gone"} {
		c.tier(service, "", failed(meta.ReconciliationFailedReason, strings.Replace(message, "SERVICE", service, 1)))
	}
	evidence, err := Gather(t.Context(), clients, c.snapshot, c.diagnose(Evidence{}), now)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, map[tiers.Key]ServiceFact{
		{Namespace: "policy", Name: "policy"}: {Exists: true, Ready: 1},
		{Namespace: "policy", Name: "gone"}:   {},
	}, evidence.Services)
}

func TestControllers(t *testing.T) {
	lease := func(name string, ago time.Duration, holder string) string {
		return `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: ` + name + `-leader-election, namespace: flux-system}
spec: {holderIdentity: "` + holder + `", leaseDurationSeconds: 35, renewTime: "` + now.Add(-ago).Format("2006-01-02T15:04:05.000000Z07:00") + `"}
`
	}
	deployment := func(name, replicas, available string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: flux-system}
spec: {replicas: ` + replicas + `}
status: {availableReplicas: ` + available + `}
`
	}
	for name, test := range map[string]struct {
		objects []string
		want    ControllerFact
	}{
		"nothing":                    {nil, ControllerFact{State: ControllerUnknown, Message: "there is no Deployment and no Lease of that name to tell"}},
		"a lease that is renewed":    {[]string{lease("kustomize-controller", 5*time.Second, "x")}, ControllerFact{State: ControllerAlive, Message: "its lease is renewed", Since: now.Add(-5 * time.Second)}},
		"a lease that nobody renews": {[]string{lease("kustomize-controller", 10*time.Minute, "x")}, ControllerFact{State: ControllerStopped, Message: "nobody has renewed its lease for 10 min", Since: now.Add(-10 * time.Minute)}},
		"a lease that was given up":  {[]string{lease("kustomize-controller", time.Second, "")}, ControllerFact{State: ControllerStopped, Message: "nobody has renewed its lease for 1s", Since: now.Add(-time.Second)}},
		"available":                  {[]string{deployment("kustomize-controller", "1", "1")}, ControllerFact{State: ControllerAlive, Message: "its Deployment is available"}},
		"not available":              {[]string{deployment("kustomize-controller", "1", "0")}, ControllerFact{State: ControllerStopped, Message: "its Deployment has no available replica"}},
		"scaled to nothing":          {[]string{deployment("kustomize-controller", "0", "0")}, ControllerFact{State: ControllerStopped, Message: "its Deployment is scaled to 0"}},
		"a stale lease, available":   {[]string{lease("kustomize-controller", time.Hour, "x"), deployment("kustomize-controller", "1", "1")}, ControllerFact{State: ControllerAlive, Message: "its Deployment is available"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := fakeClients(t, test.objects...)
			facts, unread := Controllers(t.Context(), client, "flux-system", now)
			compare(t, test.want, facts["kustomize-controller"])
			compare(t, nil, unread)
		})
	}
}

func TestGatherLastFailure(t *testing.T) {
	event := func(name, at, message string) string {
		return `
apiVersion: v1
kind: Event
metadata: {name: ` + name + `, namespace: flux-system, annotations: {kustomize.toolkit.fluxcd.io/revision: "` + current + `"}}
type: Warning
reason: ReconciliationFailed
message: '` + message + `'
lastTimestamp: "` + at + `"
involvedObject: {kind: Kustomization, name: a, namespace: flux-system}
`
	}
	_, clients := fakeClients(t, event("e1", "2026-11-30T11:58:00Z", "older"), event("e2", "2026-11-30T11:59:00Z", "newer"))
	c := newCluster()
	c.tier("a", "", running("Building manifests for revision x with a timeout of 5m0s", 5*time.Second))
	evidence, err := Gather(t.Context(), clients, c.snapshot, c.diagnose(Evidence{}), now)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, map[tiers.Key]LastFailure{
		key("a"): {Reason: "ReconciliationFailed", Message: "newer", Revision: current, At: now.Add(-time.Minute)},
	}, evidence.LastFailures)
}
