package preflight

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/wait"
)

// Status grades one check.
type Status string

// The grades.
const (
	OK      Status = "ok"
	Warn    Status = "warn"    // the run can work, and may not
	Fail    Status = "fail"    // the run cannot work
	Unknown Status = "unknown" // could not be told: not a failure
)

// Check is one question and its answer.
type Check struct {
	// Name is a stable identifier: api, crds, kustomize-controller, source-controller, access,
	// entry, source, revision, webhooks.
	Name    string
	Status  Status
	Message string
	// Hint says what to do; may be empty.
	Hint string
}

// Report is every check in the order in which they were made.
type Report struct {
	Checks []Check
	// Workers is kustomize-controller's --concurrent; 0 where its command line does not say or cannot
	// be read.
	Workers int
	// Rules are Flux's rules under the feature gates on kustomize-controller's command line.
	Rules *flux.Rules
}

// Failed reports whether a check failed.
func (r Report) Failed() bool { return r.has(Fail) }

func (r Report) has(status Status) bool {
	for _, c := range r.Checks {
		if c.Status == status {
			return true
		}
	}
	return false
}

// Access is one thing that the run will do.
type Access struct {
	Verb, Group, Resource, Subresource string
	// Namespace is where; "" means all namespaces.
	Namespace string
	// Optional says that the run only loses comfort without it: a warning, not a failure.
	Optional bool
}

func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Namespace == "" {
		return fmt.Sprintf("%s %s in all namespaces", a.Verb, resource)
	}
	return fmt.Sprintf("%s %s in namespace %s", a.Verb, resource, a.Namespace)
}

func (a Access) review() *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource,
		},
	}}
}

// Clients are the clients that the checks use.
type Clients struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
}

// Options say what to check. The zero value checks the API, Flux and the webhooks.
type Options struct {
	// FluxNamespace is where Flux's controllers run; "" means flux-system.
	FluxNamespace string
	// SourceKinds are the kinds of sources that must be served beside Kustomizations, such as
	// "GitRepository".
	SourceKinds []string
	// Access is exactly what the run will do.
	Access []Access
	// Entry is the Kustomization that applies the entry path, Source the source it reads; both are
	// left out if nil.
	Entry  *flux.Key
	Source *flux.SourceRef
	// Revision names what was read from git, as a commit id; "" skips the comparison.
	Revision string
	// Now is the time to judge leases by; zero means the current time.
	Now time.Time
}

// Run makes all checks, in this order: the API server, Flux's CRDs, its controllers, permissions,
// the entry and its source, the revision, webhooks. Without an API server the others are left out;
// without Flux's CRDs those that need them. The error is ctx's: whatever a check meets is part of
// the report.
func Run(ctx context.Context, clients Clients, opts Options) (Report, error) {
	p := &preflight{clients: clients, opts: opts, report: Report{Rules: new(flux.Rules)}}
	if opts.FluxNamespace == "" {
		p.opts.FluxNamespace = wait.DefaultFluxNamespace
	}
	if opts.Now.IsZero() {
		p.opts.Now = time.Now()
	}
	if p.api(ctx) {
		served := p.crds()
		p.controllers(ctx)
		p.access(ctx)
		if served {
			p.entry(ctx)
			p.source(ctx)
		}
		p.webhooks(ctx)
	}
	if ctx.Err() != nil {
		return p.report, context.Cause(ctx)
	}
	return p.report, nil
}

type preflight struct {
	clients Clients
	opts    Options
	report  Report
}

func (p *preflight) say(name string, status Status, hint, format string, args ...any) {
	p.report.Checks = append(p.report.Checks, Check{Name: name, Status: status, Hint: hint, Message: fmt.Sprintf(format, args...)})
}
