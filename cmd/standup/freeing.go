package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/resume"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/pkg/wait"
)

// freeing makes a run free the tiers that are stuck for want of a kind, and returns what the selected
// tiers lack now.
func (a *app) freeing(c *cli.Context, s *session, options *resume.Options, p printer) (crds.Plan, error) {
	catalogue, err := loadCatalogue(c)
	if err != nil {
		return crds.Plan{}, err
	}
	charts, err := a.renderCharts(c, s.tree, s.graph)
	if err != nil {
		return crds.Plan{}, err
	}
	served, err := crds.Discover(s.Discovery)
	if err != nil {
		return crds.Plan{}, err
	}
	selected, err := options.Selection.Of(s.graph)
	if err != nil {
		return crds.Plan{}, err
	}
	plan := crds.NewPlan(c.Context, s.graph, served, catalogue, crds.PlanOptions{Rules: options.Rules, Rendered: charts.Rendered})
	plan.Tiers = slices.DeleteFunc(plan.Tiers, func(t crds.TierPlan) bool { return !selected[t.Tier] })
	options.Stuck = func(tier tiers.Key, _ flux.Snapshot) bool { return plan.Stuck(tier) }
	options.Suspected = plan.Suspected
	free := crds.Options{Graph: s.graph, Catalogue: catalogue, Rendered: charts.Rendered, Rules: options.Rules, Timeout: options.TierTimeout}
	options.Free = func(ctx context.Context, tier tiers.Key) (resume.FreeOutcome, error) {
		done, err := crds.Free(ctx, s.crdsClients(), tier, free, p.CRDs)
		s.refused.put(tier, err)
		outcome, err := freeOutcome(err)
		outcome.Applied = done.Changed()
		return outcome, err
	}
	return plan, nil
}

// notYetRetry is how soon a tier whose turn has not come is tried again.
const notYetRetry = 2 * time.Second

func freeOutcome(err error) (resume.FreeOutcome, error) {
	if notYet, ok := errors.AsType[*crds.NotYetError](err); ok {
		return resume.FreeOutcome{Retry: notYetRetry, Message: notYet.Reason}, nil
	}
	if late, ok := errors.AsType[*crds.NotServedError](err); ok {
		return resume.FreeOutcome{Retry: notYetRetry, Message: late.Error()}, nil
	}
	return resume.FreeOutcome{Freed: err == nil, Hopeless: nobodyBrings(err) || is[*crds.EncryptedError](err)}, err
}

// nobodyBrings reports whether a kind is missing for which there is nothing to do on the cluster.
func nobodyBrings(err error) bool {
	return is[*crds.MissingKindError](err) || is[*crds.UnknownProviderError](err)
}

func (s *session) crdsClients() crds.Clients {
	return crds.Clients{Dynamic: s.Dynamic, Discovery: s.Discovery, APIExtensions: s.APIExtensions}
}

// refusals are why tiers could not be freed, as far as a run has got. Tiers are freed from several
// goroutines.
type refusals struct {
	mu   sync.Mutex
	errs map[tiers.Key]error
}

// put keeps the last answer about a tier; nil: it was freed.
func (r *refusals) put(tier tiers.Key, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs = map[tiers.Key]error{}
	}
	r.errs[tier] = err
}

// explain tells of the tiers that still lack a kind why they were not freed. Where nobody brings it,
// freeing them once more helps nothing, and the way out is in git.
func (r *refusals) explain(causes []wait.Diagnosis, entry string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range causes {
		d := &causes[i]
		err := r.errs[d.Tier]
		if d.Cause != wait.KindMissing || err == nil {
			continue
		}
		d.Hint = "freeing it failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		if nobodyBrings(err) {
			d.Hint += "; add the CRD, or what brings it, to a tier that this one depends on"
			d.Command = strings.TrimSpace("standup crds --list --path " + entry)
		}
	}
}
