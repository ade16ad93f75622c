package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/preflight"
	"github.com/standup-sh/standup/pkg/report"
	"github.com/standup-sh/standup/pkg/wait"
)

// errPreflight says that a check failed; the checks have been printed.
var errPreflight = errors.New("the checks before the first write failed; nothing was written")

// preflight asks, before anything is written, whether the run can work at all. Only what is not
// well is shown, unless the run is a dry one.
func (a *app) preflight(c *cli.Context, s *session, free bool) (preflight.Report, error) {
	options := preflight.Options{
		FluxNamespace: s.namespace, SourceKinds: wait.SourceKinds(s.graph), Access: s.access(free), Revision: s.graph.Revision,
	}
	if entry := entryOf(s.graph); entry != nil {
		source := flux.SourceOf(entry.Kustomization)
		options.Entry, options.Source = &entry.Key, &source
	}
	checks, err := preflight.Run(c.Context, preflight.Clients{Kubernetes: s.Kube, Dynamic: s.Dynamic}, options)
	if err != nil {
		return checks, err
	}
	if checks.Failed() || !c.Bool(flagQuiet) {
		if err := report.Preflight(a.stderr, checks, c.Bool(flagDryRun)); err != nil {
			return checks, err
		}
	}
	if checks.Failed() {
		return checks, errPreflight
	}
	return checks, nil
}

// access is exactly what a run does to the cluster. What freeing a tier writes depends on the tier:
// the server's dry run is the check for that.
func (s *session) access(free bool) []preflight.Access {
	const kustomize = "kustomize.toolkit.fluxcd.io"
	var access []preflight.Access
	for _, verb := range []string{"list", "watch", "patch"} {
		access = append(access, preflight.Access{Verb: verb, Group: kustomize, Resource: "kustomizations"})
	}
	for _, kind := range wait.SourceKinds(s.graph) {
		resource, ok := wait.SourceResource(kind)
		if !ok {
			continue
		}
		for _, verb := range []string{"list", "watch"} {
			access = append(access, preflight.Access{Verb: verb, Group: resource.Group, Resource: resource.Resource})
		}
	}
	for _, verb := range []string{"get", "create", "update", "delete"} {
		access = append(access, preflight.Access{Verb: verb, Group: "coordination.k8s.io", Resource: "leases", Namespace: s.namespace})
	}
	if free {
		access = append(access, preflight.Access{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Optional: true})
	}
	return access
}
