package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/wait"
)

// webhooks warns of admission webhooks that refuse whatever they cannot check, and whose service has
// nobody behind it: on a cold cluster they hold up every tier whose objects they match, their own
// included.
func (p *preflight) webhooks(ctx context.Context) {
	services, err := p.failClosed(ctx)
	if err != nil {
		p.say("webhooks", Unknown, "", "reading webhook configurations: %v", err)
		return
	}
	var dead []string
	for _, key := range sortedKeys(services) {
		ready, err := wait.ReadyEndpoints(ctx, p.clients.Dynamic, key.Namespace, key.Name)
		if err != nil {
			p.say("webhooks", Unknown, "", "reading the endpoints of Service/%s: %v", key, err)
			return
		}
		if ready == 0 {
			names := services[key]
			slices.Sort(names)
			dead = append(dead, fmt.Sprintf("Service/%s (%s)", key, strings.Join(slices.Compact(names), ", ")))
		}
	}
	if len(dead) > 0 {
		p.say("webhooks", Warn, "start what is behind them, or delete the webhook configuration: it comes back with its controller",
			"webhooks with failurePolicy Fail and no ready endpoints: %s", strings.Join(dead, "; "))
		return
	}
	if len(services) == 0 {
		p.say("webhooks", OK, "", "no webhook with failurePolicy Fail is served from this cluster")
		return
	}
	p.say("webhooks", OK, "", "%d services behind fail-closed webhooks, all with ready endpoints", len(services))
}

// failClosed lists the services of the webhooks with failurePolicy Fail, each with the names of the
// configurations: "ValidatingWebhookConfiguration/name".
func (p *preflight) failClosed(ctx context.Context) (map[flux.Key][]string, error) {
	services := map[flux.Key][]string{}
	note := func(id string, policy *admissionv1.FailurePolicyType, client admissionv1.WebhookClientConfig) {
		if client.Service == nil || policy != nil && *policy != admissionv1.Fail { // Fail is the default
			return
		}
		key := flux.Key{Namespace: client.Service.Namespace, Name: client.Service.Name}
		services[key] = append(services[key], id)
	}
	validating, err := p.clients.Kubernetes.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			note("ValidatingWebhookConfiguration/"+c.Name, w.FailurePolicy, w.ClientConfig)
		}
	}
	mutating, err := p.clients.Kubernetes.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			note("MutatingWebhookConfiguration/"+c.Name, w.FailurePolicy, w.ClientConfig)
		}
	}
	return services, nil
}

func sortedKeys(services map[flux.Key][]string) []flux.Key {
	keys := make([]flux.Key, 0, len(services))
	for key := range services {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b flux.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
