package wait

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Clients are the clients that reading a cluster takes.
type Clients struct {
	Dynamic   dynamic.Interface
	Discovery discovery.DiscoveryInterface
	// FluxNamespace is where Flux's controllers run; "" means [DefaultFluxNamespace].
	FluxNamespace string
}

// The bounds of what is read for one diagnosis: a tier with hundreds of objects must not turn into
// hundreds of requests.
const (
	maxObjects = 24
	maxPods    = 5
	maxEvents  = 3
)

// Gather reads what [Diagnose] needs to say more about causes: discovery for kinds that Flux did not
// know, the services behind webhooks, the objects that keep tiers from being healthy with their pods
// and warnings, the phase of namespaces, and whether Flux's controllers work. It reads nothing for
// tiers that are ready, and only once what several causes share. Nothing is written.
//
// What cannot be read, for want of permission say, is named in Evidence.Unread and is no error. The
// error is ctx's.
func Gather(ctx context.Context, clients Clients, snapshot flux.Snapshot, causes []Diagnosis, now time.Time) (Evidence, error) {
	g := &gatherer{
		clients: clients, snapshot: snapshot,
		resources: map[schema.GroupVersion][]metav1.APIResource{}, unread: map[string]bool{},
		events: map[string][]unstructured.Unstructured{},
		evidence: Evidence{
			FluxNamespace: clients.FluxNamespace,
			Kinds:         map[schema.GroupVersionKind]KindFact{}, Objects: map[string]ObjectFact{},
			Services: map[tiers.Key]ServiceFact{}, Namespaces: map[string]string{}, Controllers: map[string]ControllerFact{},
			LastFailures: map[tiers.Key]LastFailure{},
		},
	}
	if len(causes) > 0 {
		controllers, unread := Controllers(ctx, clients.Dynamic, g.evidence.fluxNamespace(), now)
		g.evidence.Controllers = controllers
		for _, text := range unread {
			g.unread[text] = true
		}
	}
	for _, d := range causes {
		if ctx.Err() != nil {
			return g.evidence, context.Cause(ctx)
		}
		g.gather(ctx, d)
	}
	g.evidence.Unread = slices.Sorted(maps.Keys(g.unread))
	return g.evidence, nil
}

type gatherer struct {
	clients   Clients
	snapshot  flux.Snapshot
	evidence  Evidence
	resources map[schema.GroupVersion][]metav1.APIResource // discovery, once a group version
	groups    *metav1.APIGroupList
	events    map[string][]unstructured.Unstructured // namespace → warnings
	unread    map[string]bool
}

func (g *gatherer) gather(ctx context.Context, d Diagnosis) {
	for _, kind := range d.MissingKinds {
		if _, done := g.evidence.Kinds[kind.GVK]; !done && kind.GVK.Version != "" {
			g.evidence.Kinds[kind.GVK] = g.kind(kind.GVK)
		}
	}
	switch d.Cause {
	case WebhookDown:
		g.service(ctx, strings.TrimPrefix(d.Object, "Service/"))
	case NamespaceMissing:
		g.namespace(ctx, strings.TrimPrefix(d.Object, "Namespace/"))
	case InProgress:
		g.lastFailure(ctx, d.Tier)
	}
	k := g.snapshot.Kustomizations[d.Tier]
	if k == nil {
		return
	}
	kinds := kindsByID(k)
	ids := slices.Clone(d.candidates)
	for _, object := range d.Waiting {
		ids = append(ids, object.ID)
	}
	for i, id := range ids {
		if i == maxObjects {
			g.cannot(fmt.Sprintf("%d further objects of %s", len(ids)-i, d.Tier), nil)
			break
		}
		if _, done := g.evidence.Objects[id]; done {
			continue
		}
		if gvk, ok := kinds(id); ok {
			g.object(ctx, id, gvk)
		}
	}
}

// cannot notes that something could not be read.
func (g *gatherer) cannot(what string, err error) {
	switch {
	case err == nil:
		g.unread[what+" were not looked at"] = true
	case apierrors.IsForbidden(err):
		g.unread["no permission to read "+what] = true
	default:
		g.unread[fmt.Sprintf("reading %s: %v", what, err)] = true
	}
}

// kind asks discovery about one kind; a group version is asked about once.
func (g *gatherer) kind(gvk schema.GroupVersionKind) KindFact {
	var fact KindFact
	for _, resource := range g.discover(gvk.GroupVersion()) {
		if resource.Kind == gvk.Kind || gvk.Kind == "" {
			fact.Served, fact.Namespaced, fact.GroupServed = true, resource.Namespaced, true
			return fact
		}
	}
	if g.groups == nil {
		groups, err := g.clients.Discovery.ServerGroups()
		if err != nil {
			g.cannot("the groups that the API server serves", err)
			return fact
		}
		g.groups = groups
	}
	for _, group := range g.groups.Groups {
		if group.Name != gvk.Group {
			continue
		}
		fact.GroupServed = true
		for _, version := range group.Versions {
			if slices.ContainsFunc(g.discover(schema.GroupVersion{Group: gvk.Group, Version: version.Version}), func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }) {
				fact.Versions = append(fact.Versions, version.Version)
			}
		}
	}
	return fact
}

// discover lists the resources of a group version; none if it is not served.
func (g *gatherer) discover(gv schema.GroupVersion) []metav1.APIResource {
	if known, ok := g.resources[gv]; ok {
		return known
	}
	list, err := g.clients.Discovery.ServerResourcesForGroupVersion(gv.String())
	if err != nil && !apierrors.IsNotFound(err) {
		g.cannot("the resources of "+gv.String(), err)
	}
	if err != nil || list == nil {
		g.resources[gv] = nil
		return nil
	}
	g.resources[gv] = list.APIResources
	return list.APIResources
}

// resource finds where objects of a kind are served.
func (g *gatherer) resource(gvk schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, bool) {
	for _, r := range g.discover(gvk.GroupVersion()) {
		if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
			return g.clients.Dynamic.Resource(gvk.GroupVersion().WithResource(r.Name)), true
		}
	}
	return nil, false
}

// object reads one object, and for one that is not current its pods and warnings.
func (g *gatherer) object(ctx context.Context, id string, gvk schema.GroupVersionKind) {
	resource, ok := g.resource(gvk)
	if !ok {
		g.evidence.Objects[id] = ObjectFact{Status: "NotFound", Message: fmt.Sprintf("kind %s of %s is not served", gvk.Kind, gvk.GroupVersion())}
		return
	}
	_, rest, _ := strings.Cut(id, "/")
	namespace, name, namespaced := strings.Cut(rest, "/")
	var target dynamic.ResourceInterface = resource
	if namespaced {
		target = resource.Namespace(namespace)
	} else {
		namespace, name = "", rest
	}
	u, err := target.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		g.evidence.Objects[id] = ObjectFact{Status: "NotFound", Message: "does not exist"}
		return
	case err != nil:
		g.cannot(id, err)
		return
	}
	fact := readObject(u)
	if fact.Status != "Current" {
		names := []string{gvk.Kind + "/" + name}
		fact.Pods = g.pods(ctx, u)
		for _, pod := range fact.Pods {
			names = append(names, "Pod/"+pod.Name)
		}
		if namespace != "" {
			fact.Events = g.warnings(ctx, namespace, names)
		}
	}
	g.evidence.Objects[id] = fact
}

// readObject is kstatus's view of an object, with the Ready condition's own words where it has one.
func readObject(u *unstructured.Unstructured) ObjectFact {
	fact := ObjectFact{Status: "Unknown"}
	fact.Suspended, _, _ = unstructured.NestedBool(u.Object, "spec", "suspend")
	result, err := status.Compute(u)
	if err != nil {
		fact.Message = err.Error()
		return fact
	}
	fact.Status, fact.Message = result.Status.String(), Mask(firstLine(result.Message))
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Ready" && condition["status"] != "True" {
			if message, _ := condition["message"].(string); message != "" {
				fact.Message = Mask(firstLine(message))
			}
		}
	}
	return fact
}

// service reads a Service and counts its ready endpoints; id is namespace/name.
func (g *gatherer) service(ctx context.Context, id string) {
	namespace, name, ok := strings.Cut(id, "/")
	key := tiers.Key{Namespace: namespace, Name: name}
	if _, done := g.evidence.Services[key]; done || !ok {
		return
	}
	_, err := g.clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		g.evidence.Services[key] = ServiceFact{}
		return
	case err != nil:
		g.cannot("Service/"+id, err)
		return
	}
	ready, err := ReadyEndpoints(ctx, g.clients.Dynamic, namespace, name)
	if err != nil {
		g.cannot("the endpoints of Service/"+id, err)
		return
	}
	g.evidence.Services[key] = ServiceFact{Exists: true, Ready: ready}
}

// ReadyEndpoints counts the addresses of a service's EndpointSlices that are ready to serve.
func ReadyEndpoints(ctx context.Context, client dynamic.Interface, namespace, service string) (int, error) {
	list, err := client.Resource(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}).
		Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		return 0, err
	}
	ready := 0
	for _, slice := range list.Items {
		endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
		for _, e := range endpoints {
			endpoint, _ := e.(map[string]any)
			// A condition that is not set counts as true (discovery.k8s.io/v1 EndpointConditions).
			if is, set, _ := unstructured.NestedBool(endpoint, "conditions", "ready"); is || !set {
				addresses, _, _ := unstructured.NestedSlice(endpoint, "addresses")
				ready += len(addresses)
			}
		}
	}
	return ready, nil
}

func (g *gatherer) namespace(ctx context.Context, name string) {
	if _, done := g.evidence.Namespaces[name]; done {
		return
	}
	u, err := g.clients.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		g.evidence.Namespaces[name] = ""
	case err != nil:
		g.cannot("Namespace/"+name, err)
	default:
		g.evidence.Namespaces[name], _, _ = unstructured.NestedString(u.Object, "status", "phase")
	}
}
