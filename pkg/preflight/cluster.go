package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/wait"
)

// api asks the API server for its version, and reports whether it answered.
func (p *preflight) api(ctx context.Context) bool {
	body, err := p.version(ctx)
	switch {
	case apierrors.IsUnauthorized(err):
		p.say("api", Fail, "log in again, or choose another --context", "the cluster does not accept the credentials")
		return false
	case apierrors.IsForbidden(err):
		p.say("api", OK, "", "the API server answers; it does not tell its version")
		return true
	case err != nil:
		p.say("api", Fail, "check --kubeconfig and --context", "the cluster cannot be reached: %v", err)
		return false
	}
	p.say("api", OK, "", "Kubernetes %s", body.GitVersion)
	return true
}

// version is the API server's version; ctx bounds the request, which discovery's own method lacks.
func (p *preflight) version(ctx context.Context) (*version.Info, error) {
	type answer struct {
		info *version.Info
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		info, err := p.clients.Kubernetes.Discovery().ServerVersion()
		answered <- answer{info, err}
	}()
	select {
	case a := <-answered:
		return a.info, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// crds checks that the API server serves Flux's kinds in the versions that standup reads, and
// reports whether Kustomizations can be read.
func (p *preflight) crds() bool {
	missing, kustomizations := p.unserved()
	switch {
	case len(missing) == 0:
		p.say("crds", OK, "", "Flux's kinds are served")
	case kustomizations:
		p.say("crds", Fail, "install Flux, or upgrade it", "the cluster does not serve %s", strings.Join(missing, ", "))
	default:
		p.say("crds", Fail, "install Flux first: flux bootstrap, or flux install", "Flux is not installed: the cluster does not serve %s", strings.Join(missing, ", "))
	}
	return kustomizations
}

// unserved lists the kinds that are needed and not served, with their versions.
func (p *preflight) unserved() (missing []string, kustomizations bool) {
	check := func(groupVersion string, kinds ...string) {
		list, err := p.clients.Kubernetes.Discovery().ServerResourcesForGroupVersion(groupVersion)
		for _, kind := range kinds {
			served := err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
			if !served {
				missing = append(missing, fmt.Sprintf("%s (%s)", kind, groupVersion))
			}
			kustomizations = kustomizations || served && kind == kustomizev1.KustomizationKind
		}
	}
	check(kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind)
	if len(p.opts.SourceKinds) > 0 {
		check(sourcev1.GroupVersion.String(), p.opts.SourceKinds...)
	}
	return missing, kustomizations
}

// controllers tells whether Flux's controllers work, from Deployments and Leases.
func (p *preflight) controllers(ctx context.Context) {
	facts, unread := wait.Controllers(ctx, p.clients.Dynamic, p.opts.FluxNamespace, p.opts.Now)
	flags := facts["kustomize-controller"].Flags
	p.report.Workers = flags.Concurrent()
	p.report.Rules.AdditiveCELDependencyCheck = flags.Gate(flux.GateAdditiveCELDependencyCheck)
	for _, name := range []string{"source-controller", "kustomize-controller"} {
		fact := facts[name]
		switch fact.State {
		case wait.ControllerAlive:
			p.say(name, OK, "", "running: %s", fact.Message)
		case wait.ControllerStopped:
			p.say(name, Fail, fmt.Sprintf("kubectl -n %s get deployment,pods", p.opts.FluxNamespace), "not running: %s", fact.Message)
		default:
			message := fact.Message
			if len(unread) > 0 {
				message = strings.Join(unread, "; ")
			}
			p.say(name, Unknown, "whether it answers shows at the first request", "cannot be told: %s", message)
		}
	}
}

// parallelReviews bounds the access reviews in flight.
const parallelReviews = 8

// access asks for every permission that the run needs, and names those that are not granted.
func (p *preflight) access(ctx context.Context) {
	if len(p.opts.Access) == 0 {
		return
	}
	denied, lost, untold := p.review(ctx)
	switch {
	case len(denied) > 0:
		p.say("access", Fail, "ask for a role that allows this, or choose another --context", "not allowed: %s", strings.Join(denied, "; "))
	case len(lost) > 0:
		p.say("access", Warn, "the run goes on without it, and can say less", "not allowed: %s", strings.Join(lost, "; "))
	case len(untold) > 0:
		p.say("access", Unknown, "", "cannot be told: %s", untold[0])
	default:
		p.say("access", OK, "", "allowed: %d of %d", len(p.opts.Access), len(p.opts.Access))
	}
}

// review makes the reviews side by side; the lists come in the order of the options.
func (p *preflight) review(ctx context.Context) (denied, lost, untold []string) {
	allowed := make([]bool, len(p.opts.Access))
	errs := make([]error, len(p.opts.Access))
	var reviews sync.WaitGroup
	slots := make(chan struct{}, parallelReviews)
	for i, a := range p.opts.Access {
		reviews.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answer, err := p.clients.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, a.review(), metav1.CreateOptions{})
			if errs[i] = err; err == nil {
				allowed[i] = answer.Status.Allowed
			}
		})
	}
	reviews.Wait()
	for i, a := range p.opts.Access {
		switch {
		case errs[i] != nil:
			untold = append(untold, errs[i].Error())
		case !allowed[i] && a.Optional:
			lost = append(lost, a.String())
		case !allowed[i]:
			denied = append(denied, a.String())
		}
	}
	return denied, lost, untold
}
