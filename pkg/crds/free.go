package crds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Free makes the next pass of one tier succeed as far as its kinds are concerned: it applies the
// objects that bring the missing kinds, and what those need, then waits until the API server serves
// the kinds. It does not ask Flux for the pass. A tier that lacks nothing is left alone, and a
// trigger that is there as git wants it is not written again, so that a second call makes no write.
//
// Every round of objects is dry-run at the server before its first write. Fields are applied with
// [FieldManager] and never taken from others, except values that kustomize-controller itself applied
// for this tier at an earlier revision. The outcome says what was written also when there is an
// error; interrupted anywhere, the next call goes on.
//
// Errors: [NotYetError], [RevisionError], [MissingKindError], [EncryptedError], [ConflictError],
// [RefusedError], [OrphanError], [NotServedError] with the cause in it, [UnknownProviderError], or
// ctx's. emit may be nil.
func Free(ctx context.Context, clients Clients, tier tiers.Key, opts Options, emit func(Event)) (Outcome, error) {
	f, err := newFreer(clients, tier, opts, emit)
	if err != nil {
		return Outcome{Tier: tier}, err
	}
	err = f.free(ctx)
	return f.outcome, err
}

// freer frees one tier.
type freer struct {
	clients Clients
	opts    Options
	emit    func(Event)
	tier    *tiers.Tier
	served  *Served
	outcome Outcome
	// announce is told before the first write, and nothing where there is none.
	announce *Event
	// told are the exclusions that were found, to tell each once.
	told []Exclusion
	// before are the kinds that were served when the call began.
	before *Served
}

func newFreer(clients Clients, tier tiers.Key, opts Options, emit func(Event)) (*freer, error) {
	if emit == nil {
		emit = func(Event) {}
	}
	f := &freer{clients: clients, opts: opts.complete(), emit: emit, outcome: Outcome{Tier: tier}}
	for _, t := range opts.Graph.Tiers {
		if t.Key == tier {
			f.tier = t
			return f, nil
		}
	}
	return nil, &NotYetError{Tier: tier, Reason: "it is not in git"}
}

func (f *freer) free(ctx context.Context) error {
	if err := f.discover(ctx); err != nil {
		return err
	}
	f.before = f.served
	plan, lacks := f.plan(ctx, flux.Snapshot{})
	if !lacks {
		return nil
	}
	live, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := f.checkRevision(live); err != nil {
		return err
	}
	if plan, lacks = f.plan(ctx, live); !lacks {
		return nil
	}
	if !plan.stuck() {
		return hopeless(plan, live)
	}
	if plan.NotYet != "" {
		return &NotYetError{Tier: f.tier.Key, Reason: plan.NotYet}
	}
	if plan.Partial {
		return f.partial(ctx, plan)
	}
	return f.rounds(ctx, plan)
}

// hopeless is the error for kinds of a tier that neither Flux nor standup brings. Of a kind that
// nobody knows nothing is said before Flux has failed for it.
func hopeless(plan TierPlan, live flux.Snapshot) error {
	failed := failedForUnknown(live.Kustomizations[plan.Tier], plan.Missing)
	var errs []error
	for _, m := range plan.Missing {
		if m.Verdict == OtherVersion || m.Verdict == Absent || m.Verdict == Unreachable || m.Verdict == NotKnown && failed {
			errs = append(errs, &MissingKindError{Tier: plan.Tier, Missing: m})
		}
	}
	return errors.Join(errs...)
}

// plan is the tier's plan with what is served now.
func (f *freer) plan(ctx context.Context, live flux.Snapshot) (TierPlan, bool) {
	return NewPlan(ctx, f.opts.Graph, f.served, f.opts.Catalogue,
		PlanOptions{Snapshot: live, Rendered: f.opts.Rendered, Rules: f.opts.Rules}).Of(f.tier.Key)
}

// rounds applies the triggers, one round after the other.
func (f *freer) rounds(ctx context.Context, plan TierPlan) error {
	for _, round := range plan.Rounds {
		var objects []wanted
		var kinds []schema.GroupVersionKind
		for _, planned := range round {
			trigger := wanted{Object: planned.Origin.Object, tier: f.tierOf(planned.Origin.Tier), triggers: true,
				why: "brings " + kindList(planned.Brings)}
			kinds = append(kinds, planned.Brings...)
			for _, w := range withNeeds(trigger) {
				if !contains(objects, w.Object) {
					objects = append(objects, w)
				}
			}
		}
		byStage(objects)
		if err := f.checkSealed(objects); err != nil {
			return err
		}
		if err := f.checkOrphans(ctx, round); err != nil {
			return err
		}
		if err := f.applyAll(ctx, objects); err != nil {
			return err
		}
		if f.opts.DryRun {
			f.served = f.served.With(kinds...)
			continue
		}
		if err := f.await(ctx, kinds, round); err != nil {
			return err
		}
	}
	return nil
}

func (f *freer) tierOf(key tiers.Key) *tiers.Tier {
	i := slices.IndexFunc(f.opts.Graph.Tiers, func(t *tiers.Tier) bool { return t.Key == key })
	return f.opts.Graph.Tiers[i]
}

// checkSealed refuses a trigger that is encrypted, or that needs something that is.
func (f *freer) checkSealed(objects []wanted) error {
	var errs []error
	for _, w := range objects {
		if !sealed(w.Object) {
			continue
		}
		f.exclude(w, "encrypted with SOPS")
		needed := strings.TrimSuffix(w.why, " needs it")
		if w.triggers {
			needed = w.ID()
		}
		errs = append(errs, &EncryptedError{Object: w.ID(), Needed: needed})
	}
	return errors.Join(errs...)
}

func (f *freer) exclude(w wanted, reason string) {
	x := Exclusion{Object: w.ID(), File: w.File, Reason: reason}
	told := slices.Contains(f.told, x)
	f.outcome.Excluded, f.told = append(f.outcome.Excluded, x), append(f.told, x)
	if f.announce == nil && !told {
		f.emit(Event{Kind: EventExcluded, Tier: f.tier.Key, Excluded: &x})
	}
}

// announced tells what was to be announced, and what has been left out so far.
func (f *freer) announced() {
	if f.announce == nil {
		return
	}
	f.emit(*f.announce)
	f.announce = nil
	for _, x := range f.outcome.Excluded {
		f.emit(Event{Kind: EventExcluded, Tier: f.tier.Key, Excluded: &x})
	}
}

// applyAll dry-runs a set of objects, and writes those that differ once all dry runs have
// succeeded. Refusals that may pass are tried again until time is up.
func (f *freer) applyAll(ctx context.Context, objects []wanted) error {
	deadline := f.opts.Now().Add(f.opts.Timeout)
	for {
		decisions, err := f.decideAll(ctx, objects)
		if err == nil {
			return f.writeAll(ctx, decisions, deadline)
		}
		if err := f.retry(ctx, err, deadline); err != nil {
			return err
		}
	}
}

func (f *freer) decideAll(ctx context.Context, objects []wanted) ([]decision, error) {
	var decisions []decision
	var errs []error
	for _, w := range objects {
		d, err := f.decide(ctx, w, objects)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		decisions = append(decisions, d)
	}
	return decisions, errors.Join(errs...)
}

func (f *freer) writeAll(ctx context.Context, decisions []decision, deadline time.Time) error {
	for _, d := range decisions {
		if d.skip {
			f.exclude(d.wanted, "Flux is told to leave it alone")
			continue
		}
		if err := f.writeOne(ctx, d, deadline); err != nil {
			return err
		}
	}
	return nil
}

func (f *freer) writeOne(ctx context.Context, d decision, deadline time.Time) error {
	if d.action != Unchanged {
		f.announced()
	}
	if !f.opts.DryRun && d.action != Unchanged {
		if err := f.persist(ctx, d, deadline); err != nil {
			return err
		}
	}
	w := Write{GroupVersionKind: d.GroupVersionKind(), Namespace: d.object.GetNamespace(), Name: d.GetName(), Tier: d.tier.Key,
		File: d.File, Line: d.Line, Action: d.action, Why: d.why, Predicted: f.opts.DryRun && d.later}
	f.outcome.Writes = append(f.outcome.Writes, w)
	f.emit(Event{Kind: EventWrite, Tier: f.tier.Key, Write: &w})
	if isCRD(d.Object) && !f.opts.DryRun && d.action != Unchanged {
		return f.awaitDefinition(ctx, d.Object, deadline)
	}
	return nil
}

// persist writes one object; what could not be dry-run before is first dry-run now.
func (f *freer) persist(ctx context.Context, d decision, deadline time.Time) error {
	for {
		err := f.tryWrite(ctx, d)
		if err == nil {
			return nil
		}
		if err := f.retry(ctx, err, deadline); err != nil {
			return err
		}
	}
}

func (f *freer) tryWrite(ctx context.Context, d decision) error {
	if d.later {
		again, err := f.decide(ctx, d.wanted, nil)
		if err != nil {
			return err
		}
		d = again
	}
	return f.write(ctx, d)
}

// retry waits a moment if an error may pass, and returns it if not or if time is up.
func (f *freer) retry(ctx context.Context, err error, deadline time.Time) error {
	var refused *RefusedError
	if !errors.As(err, &refused) || !transient(refused.Err) || f.opts.Now().After(deadline) {
		return err
	}
	f.emit(Event{Kind: EventWaiting, Tier: f.tier.Key, Message: err.Error()})
	return pause(ctx, f.opts.Poll)
}

// pause waits for a while, or for ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
