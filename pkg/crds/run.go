package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Result is what [Run] found and did.
type Result struct {
	// Plan is the state before the first write.
	Plan Plan
	// Cold and Bundle are what was created ahead of all tiers; nil where it was not asked for.
	Cold, Bundle *Outcome
	// Outcomes are the tiers that were freed, in the order in which it was done.
	Outcomes []Outcome
	// Nudged are the tiers that were asked for a pass, or would be.
	Nudged []tiers.Key
	// Pending are the tiers that were stuck and had not passed when the run ended, in tier order.
	Pending []tiers.Key
	// NotYet are the stuck tiers whose turn has not come.
	NotYet []*NotYetError
}

// Changed counts the writes to objects, nudges not among them.
func (r Result) Changed() int {
	n := 0
	for _, o := range r.Outcomes {
		n += o.Changed()
	}
	for _, o := range []*Outcome{r.Cold, r.Bundle} {
		if o != nil {
			n += o.Changed()
		}
	}
	return n
}

// Run frees every tier that is stuck and whose dependencies are ready: [Free], a nudge, then it
// watches the tier's next pass until that has succeeded. Freeing one tier may bring the next one's
// turn, so it goes on until nothing more can be done. It waits for nothing that Flux does by
// itself: stuck tiers whose turn has not come are listed, and are an error only when nothing else is.
//
// A second run finds nothing missing and writes nothing. With Options.DryRun the outcomes are the
// exact list of what would be written and who would be nudged, as far as the cluster's state now
// tells: a tier whose turn comes only once another one has passed is in NotYet.
//
// With Options.Cold or Options.Bundle a cluster without Flux, or without any of the tiers, is as good
// as another: what can be done ahead is done, and there is nothing to free yet.
//
// Errors are those of [Free] and [PassError], one tier's joined to the other's in tier order: a
// failure of one tier does not keep the others from being freed. A [BeginError] ends the run. emit
// may be nil.
func Run(ctx context.Context, clients Clients, opts Options, emit func(Event)) (Result, error) {
	r := &runner{clients: clients, opts: opts.complete(), emit: emit, tried: map[tiers.Key]bool{}, passed: map[tiers.Key]bool{}}
	if r.emit == nil {
		r.emit = func(Event) {}
	}
	err := r.run(ctx)
	r.result.Pending = r.pending()
	return r.result, err
}

type runner struct {
	clients Clients
	opts    Options
	emit    func(Event)
	result  Result
	tried   map[tiers.Key]bool
	passed  map[tiers.Key]bool
	errs    []error
}

func (r *runner) run(ctx context.Context) error {
	if err := r.ahead(ctx); err != nil {
		return err
	}
	served, err := discoverFor(ctx, r.clients.Discovery, r.opts.Graph.Tiers, r.opts.Poll)
	if err != nil {
		return err
	}
	ahead := r.opts.Cold || r.opts.Bundle != nil
	if ahead && len(served.Versions(kustomizations())) == 0 {
		return nil // before Flux: there is no tier yet
	}
	live, err := ReadSnapshot(ctx, r.clients.Dynamic, r.opts.Graph)
	if err != nil {
		return err
	}
	if ahead && !slices.ContainsFunc(r.opts.Graph.Tiers, func(t *tiers.Tier) bool { return live.Kustomizations[t.Key] != nil }) {
		return nil // before Flux has been pointed at the repository
	}
	served = served.With(r.opts.assumedKinds()...)
	r.result.Plan = NewPlan(ctx, r.opts.Graph, served, r.opts.Catalogue, PlanOptions{Snapshot: live, Rendered: r.opts.Rendered, Rules: r.opts.Rules})
	if err := r.takeUp(ctx, served, live); err != nil {
		return err
	}
	for {
		progressed, err := r.sweep(ctx)
		if err != nil {
			return err
		}
		if !progressed {
			return r.verdict()
		}
	}
}

func kustomizations() schema.GroupKind {
	return schema.GroupKind{Group: kustomizev1.GroupVersion.Group, Kind: kustomizev1.KustomizationKind}
}

// pending are the tiers that were stuck and have not passed.
func (r *runner) pending() []tiers.Key {
	var keys []tiers.Key
	for _, t := range r.result.Plan.Tiers {
		if t.stuck() && !r.passed[t.Tier] {
			keys = append(keys, t.Tier)
		}
	}
	return keys
}

// ahead creates what does not depend on any tier.
func (r *runner) ahead(ctx context.Context) error {
	if r.opts.Cold {
		c := newCreator(r.clients, r.opts, r.emit)
		r.result.Cold = c.outcome
		if err := c.cold(ctx, r.opts.Charts); err != nil {
			return err
		}
		r.assume(c.created)
	}
	if r.opts.Bundle != nil {
		c := newCreator(r.clients, r.opts, r.emit)
		r.result.Bundle = c.outcome
		if err := c.bundle(ctx, r.opts.Bundle); err != nil {
			return err
		}
		r.assume(c.created)
	}
	return nil
}

// assume keeps in mind what a dry run would have created.
func (r *runner) assume(created []render.Object) {
	if r.opts.DryRun {
		r.opts.assumed = append(r.opts.assumed, created...)
	}
}

// takeUp goes on where an earlier run was interrupted, or where a kind has come by another way: tiers
// whose last pass failed for want of kinds that are all served now are asked for a pass, which Flux
// by itself would make only an interval later.
func (r *runner) takeUp(ctx context.Context, served *Served, live flux.Snapshot) error {
	for _, t := range r.opts.Graph.Tiers {
		k := live.Kustomizations[t.Key]
		if _, lacks := r.result.Plan.Of(t.Key); lacks || k == nil || !failedForServed(k, served) {
			continue
		}
		f, err := newFreer(r.clients, t.Key, r.opts, r.emit)
		if err != nil {
			return err
		}
		if err := r.seeThrough(ctx, f); err != nil {
			if r.over(ctx, err) {
				return errors.Join(err, ctx.Err())
			}
			r.errs = append(r.errs, err)
		}
		r.tried[t.Key] = true
	}
	return nil
}

// failedForServed reports whether a tier's last pass failed for kinds that are served now.
func failedForServed(k *kustomizev1.Kustomization, served *Served) bool {
	status := flux.Classify(k)
	if status.State != flux.MayHeal && status.State != flux.Final {
		return false
	}
	missing := flux.MissingKinds(status.Message)
	for _, m := range missing {
		if m.Form == flux.KindMissing && !served.Has(m.GVK) {
			return false
		}
	}
	return len(missing) > 0
}

// sweep tries every tier that lacks kinds once, in tier order.
func (r *runner) sweep(ctx context.Context) (progressed bool, err error) {
	r.result.NotYet = nil
	for _, t := range r.result.Plan.Tiers {
		if r.tried[t.Tier] || !r.mayHelp(t) {
			continue
		}
		done, err := r.one(ctx, t.Tier)
		if r.over(ctx, err) {
			return false, errors.Join(err, ctx.Err())
		}
		progressed = progressed || done
	}
	return progressed, nil
}

// over reports whether an error ends the run, rather than the work on one tier.
func (r *runner) over(ctx context.Context, err error) bool {
	_, refused := errors.AsType[*BeginError](err)
	return refused || ctx.Err() != nil
}

// mayHelp leaves out tiers for which Flux does everything. A tier that lacks an unknown kind may
// have failed for it, which only its status tells.
func (r *runner) mayHelp(t TierPlan) bool {
	return t.stuck() ||
		slices.ContainsFunc(t.Missing, func(m Missing) bool { return m.Verdict == NotKnown })
}

// one frees one tier and sees it through its pass.
func (r *runner) one(ctx context.Context, key tiers.Key) (progressed bool, err error) {
	f, err := newFreer(r.clients, key, r.opts, r.emit)
	if err != nil {
		return false, err
	}
	err = f.free(ctx)
	var notYet *NotYetError
	if errors.As(err, &notYet) {
		r.result.NotYet = append(r.result.NotYet, notYet)
		return false, nil
	}
	r.tried[key] = r.tried[key] || err != nil || len(f.outcome.Writes) > 0
	if len(f.outcome.Writes) > 0 || len(f.outcome.Excluded) > 0 {
		r.result.Outcomes = append(r.result.Outcomes, f.outcome)
	}
	if err != nil {
		r.errs = append(r.errs, err)
		return false, err
	}
	if len(f.outcome.Writes) == 0 {
		came, err := f.cameMeanwhile(ctx)
		if !came || err != nil {
			return false, err
		}
		r.tried[key] = true
	}
	if err := r.seeThrough(ctx, f); err != nil {
		r.errs = append(r.errs, err)
		return false, err
	}
	return !r.opts.DryRun, nil
}

// cameMeanwhile reports whether the kinds of a tier that was stuck when the run began have come by
// themselves since, so that all it lacks is a pass.
func (f *freer) cameMeanwhile(ctx context.Context) (bool, error) {
	k, err := f.kustomization(ctx, f.tier.Key)
	return k != nil && failedForServed(k, f.served), err
}

// seeThrough asks a freed tier for a pass and waits until it has succeeded.
func (r *runner) seeThrough(ctx context.Context, f *freer) error {
	if k, err := f.kustomization(ctx, f.tier.Key); err != nil || k == nil || k.Spec.Suspend {
		return err // a suspended tier makes no pass: resuming it is somebody else's decision
	}
	if r.opts.DryRun {
		r.result.Nudged = append(r.result.Nudged, f.tier.Key)
		return nil
	}
	token, err := f.nudge(ctx)
	if err != nil {
		return err
	}
	r.result.Nudged = append(r.result.Nudged, f.tier.Key)
	r.emit(Event{Kind: EventNudged, Tier: f.tier.Key})
	if err := f.watchPass(ctx, token); err != nil {
		return err
	}
	r.emit(Event{Kind: EventPassed, Tier: f.tier.Key})
	r.passed[f.tier.Key] = true
	return nil
}

// nudge asks for a pass and returns the token that the pass will answer.
func (f *freer) nudge(ctx context.Context) (string, error) {
	if err := f.opts.begun.once(ctx); err != nil {
		return "", err
	}
	token := flux.Token(f.opts.Now())
	_, err := f.clients.Dynamic.Resource(kustomizev1.GroupVersion.WithResource("kustomizations")).Namespace(f.tier.Namespace).
		Patch(ctx, f.tier.Name, flux.PatchType, flux.NudgePatch(token), metav1.PatchOptions{FieldManager: flux.FieldManager})
	if err != nil {
		return "", fmt.Errorf("Kustomization/%s: asking for a pass: %w", f.tier.Key, err)
	}
	return token, nil
}

// watchPass waits for the end of the pass that answers a token. A pass that goes on for longer than
// the timeout (health checks) is an error that says so; a revision that changes under it too.
func (f *freer) watchPass(ctx context.Context, token string) error {
	deadline := f.opts.Now().Add(f.opts.Timeout)
	said := ""
	for {
		k, err := f.kustomization(ctx, f.tier.Key)
		if err != nil {
			return err
		}
		if k == nil {
			return &PassError{Tier: f.tier.Key, Reason: flux.ReasonNotFound, Message: "it was deleted meanwhile"}
		}
		status := flux.Classify(k)
		ready := readyCondition(k)
		answered := k.Status.LastHandledReconcileAt == token
		switch {
		case answered && status.State == flux.Ready:
			return nil
		case answered && ready.Status == metav1.ConditionFalse && !status.Reconciling:
			return f.passFailure(ctx, status)
		case f.opts.Now().After(deadline):
			return &PassError{Tier: f.tier.Key, Reason: status.Reason, Message: f.said(status.Message), Running: true}
		}
		if text := f.said(status.Message); text != said {
			said = text
			f.emit(Event{Kind: EventWaiting, Tier: f.tier.Key, Message: text})
		}
		if err := pause(ctx, f.opts.Poll); err != nil {
			return err
		}
	}
}

// passFailure says why a pass failed; a revision that has changed since is the better reason.
func (f *freer) passFailure(ctx context.Context, status flux.Status) error {
	failure := &PassError{Tier: f.tier.Key, Reason: status.Reason, Message: f.said(status.Message)}
	live, err := f.snapshot(ctx)
	if err != nil {
		return failure
	}
	if changed := f.checkRevision(live); changed != nil {
		return errors.Join(changed, failure)
	}
	return failure
}

// hopeless lists the kinds of the plan that neither Flux nor standup brings, except those of tiers
// that were tried.
func (r *runner) hopeless() []error {
	var errs []error
	for _, t := range r.result.Plan.Tiers {
		for _, m := range t.Missing {
			if !r.tried[t.Tier] && m.Verdict != FluxWill && m.Verdict != Deadlocked {
				errs = append(errs, &MissingKindError{Tier: t.Tier, Missing: m})
			}
		}
	}
	return errs
}

// verdict is the error of the whole run.
func (r *runner) verdict() error {
	if r.opts.Bundle != nil && !r.opts.DryRun {
		served, err := Discover(r.clients.Discovery)
		if err == nil {
			err = stillRefused(r.opts.Bundle, r.opts, served)
		}
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
	r.errs = append(r.errs, r.hopeless()...)
	if len(r.errs) > 0 {
		return errors.Join(r.errs...)
	}
	if r.result.Changed() > 0 || len(r.result.NotYet) == 0 {
		return nil
	}
	errs := make([]error, 0, len(r.result.NotYet))
	for _, e := range r.result.NotYet {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
