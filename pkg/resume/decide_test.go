package resume

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/flux"
	"github.com/standup-sh/standup/test/model"
)

// ready returns a snapshot in which one tier, "apps", is settled, and what is given beside it.
func ready(t *testing.T, objects ...any) (Options, flux.Snapshot) {
	t.Helper()
	c := model.New([]model.Tier{{Name: "apps", Interval: time.Hour}})
	c.RunUntil(10*time.Second, func() bool { return flux.Settled(c.Snapshot().Kustomizations[model.Key("apps")], c.Snapshot()) })
	s := c.Snapshot()
	for _, o := range objects {
		switch o := o.(type) {
		case *helmv2.HelmRelease:
			s.HelmReleases[flux.Key{Namespace: o.Namespace, Name: o.Name}] = o
		case *flux.Source:
			s.Sources[o.SourceRef] = o
		}
	}
	return Options{Graph: c.Graph()}, s
}

func release(name string, change func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	h := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "apps", Name: name, Generation: 1,
			Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": model.Namespace},
		},
		Status: helmv2.HelmReleaseStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "InstallSucceeded"}}},
	}
	if change != nil {
		change(h)
	}
	return h
}

func suspended(h *helmv2.HelmRelease) { h.Spec.Suspend = true }

func needs(name string, rest ...func(*helmv2.HelmRelease)) func(*helmv2.HelmRelease) {
	return func(h *helmv2.HelmRelease) {
		h.Spec.DependsOn = []meta.DependencyReference{{Name: name}}
		for _, change := range rest {
			change(h)
		}
	}
}

func says(reason string, more ...metav1.Condition) func(*helmv2.HelmRelease) {
	return func(h *helmv2.HelmRelease) {
		h.Status.Conditions = append([]metav1.Condition{{Type: "Ready", Status: "False", Reason: reason}}, more...)
	}
}

func TestHelmReleases(t *testing.T) {
	exhausted := func(h *helmv2.HelmRelease) {
		says("InstallFailed", metav1.Condition{Type: "Stalled", Status: "True", Reason: "RetriesExceeded"})(h)
		h.Status.InstallFailures = 3
	}
	inGit := func(h *helmv2.HelmRelease) {
		suspended(h)
		h.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", Operation: "Apply", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:suspend":{}}}`)}}}
	}
	charts := &flux.Source{SourceRef: flux.SourceRef{Kind: "HelmRepository", Namespace: "apps", Name: "charts"}, Suspended: true, Static: true}
	fromCharts := func(h *helmv2.HelmRelease) {
		suspended(h)
		h.Spec.Chart = &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{SourceRef: helmv2.CrossNamespaceObjectReference{Kind: "HelmRepository", Name: "charts"}}}
	}
	tests := map[string]struct {
		objects []any
		reset   bool
		want    []string
		done    bool
	}{
		"ready":                         {[]any{release("a", nil)}, false, nil, true},
		"suspended":                     {[]any{release("a", suspended)}, false, []string{"resume HelmRelease/apps/a (suspended)"}, false},
		"suspended in git":              {[]any{release("a", inGit)}, false, nil, true},
		"suspended behind a suspended":  {[]any{release("a", suspended), release("b", needs("a", suspended))}, false, []string{"resume HelmRelease/apps/a (suspended)"}, false},
		"suspended behind a ready one":  {[]any{release("a", nil), release("b", needs("a", suspended))}, false, []string{"resume HelmRelease/apps/b (suspended)"}, false},
		"turned away, now ready":        {[]any{release("a", nil), release("b", needs("a", says("DependencyNotReady")))}, false, []string{"nudge HelmRelease/apps/b (dependencies ready)"}, false},
		"turned away, not ready":        {[]any{release("a", says("InstallFailed")), release("b", needs("a", says("DependencyNotReady")))}, false, nil, true},
		"failed: helm-controller's own": {[]any{release("a", says("InstallFailed"))}, false, nil, true},
		"exhausted":                     {[]any{release("a", exhausted)}, false, nil, true},
		"exhausted, reset if asked":     {[]any{release("a", exhausted)}, true, []string{"reset HelmRelease/apps/a (retries exhausted)"}, false},
		"its repository first":          {[]any{charts, release("a", fromCharts)}, false, []string{"resume HelmRepository/apps/charts (suspended)"}, false},
		"of another tier": {[]any{release("a", func(h *helmv2.HelmRelease) {
			suspended(h)
			h.Labels["kustomize.toolkit.fluxcd.io/name"] = "other"
		})}, false, nil, true},
		"asked already": {[]any{release("a", nil), release("b", needs("a", says("DependencyNotReady"), func(h *helmv2.HelmRelease) {
			h.Annotations = map[string]string{flux.RequestAnnotation: "t"}
		}))}, false, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts, s := ready(t, test.objects...)
			opts.ResetHelm = test.reset
			decision := decide(t, opts, s, Memory{})
			if diff := cmp.Diff(test.want, texts(decision)); diff != "" {
				t.Errorf("want(-) got(+):\n%s", diff)
			}
			if decision.Done != test.done {
				t.Errorf("done is %v, want %v", decision.Done, test.done)
			}
		})
	}
}

func TestExhaustedReleaseIsForcedIfAsked(t *testing.T) {
	opts, s := ready(t, release("a", func(h *helmv2.HelmRelease) {
		says("InstallFailed", metav1.Condition{Type: "Stalled", Status: "True", Reason: "RetriesExceeded"})(h)
		h.Status.InstallFailures = 3
	}))
	opts.ForceHelm, opts.ResetHelm = true, true
	decision := decide(t, opts, s, Memory{})
	if diff := cmp.Diff([]string{"force HelmRelease/apps/a (retries exhausted)"}, texts(decision)); diff != "" {
		t.Errorf("want(-) got(+):\n%s", diff)
	}
	// Once a run: the release failed again.
	again := decide(t, opts, s, decision.Memory.sent(decision.Actions[0], model.Start(), s).arrived(decision.Actions[0].Object, model.Start()))
	for _, a := range again.Actions {
		t.Errorf("%s again", a.Verb)
	}
	if got, want := string(patchFor(Force, "t")), `{"metadata":{"annotations":{"reconcile.fluxcd.io/forceAt":"t","reconcile.fluxcd.io/requestedAt":"t"}}}`; got != want {
		t.Errorf("patch %s, want %s", got, want)
	}
}

func decide(t *testing.T, opts Options, s flux.Snapshot, m Memory) Decision {
	t.Helper()
	return decideAt(t, opts, s, m, 0)
}

// decideAt decides a while later.
func decideAt(t *testing.T, opts Options, s flux.Snapshot, m Memory, after time.Duration) Decision {
	t.Helper()
	d, err := NewDispatcher(opts)
	if err != nil {
		t.Fatal(err)
	}
	return d.Decide(t.Context(), s, m, model.Start().Add(time.Hour+after))
}

func texts(d Decision) []string {
	var all []string
	for _, a := range d.Actions {
		all = append(all, fmt.Sprintf("%s %s (%s)", a.Verb, a.Object, a.Why))
	}
	return all
}

func TestSourcesComeFirst(t *testing.T) {
	failing := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: "False", Reason: reason}}
	}
	change := func(change func(*flux.Source)) *flux.Source {
		src := &flux.Source{SourceRef: model.Source(), Generation: 1, ObservedGeneration: 1, Revision: "main@sha1:2"}
		change(src)
		return src
	}
	tests := map[string]struct {
		source *flux.Source
		want   []string
		phase  Phase // of the tier, which is suspended
		cause  Cause
	}{
		"fetched":   {change(func(*flux.Source) {}), []string{"resume Kustomization/flux-system/apps (suspended)"}, Working, ""},
		"suspended": {change(func(s *flux.Source) { s.Suspended = true }), []string{"resume GitRepository/flux-system/flux-system (suspended)"}, Blocked, ""},
		"suspended in git, with an artifact": {change(func(s *flux.Source) { s.Suspended, s.SuspendedInGit = true, true }),
			[]string{"resume Kustomization/flux-system/apps (suspended)"}, Working, ""},
		"suspended in git, without one": {change(func(s *flux.Source) { s.Suspended, s.SuspendedInGit, s.Revision = true, true, "" }), nil, Stopped, CauseBlocker},
		"being fetched":                 {change(func(s *flux.Source) { s.RequestedAt = "t" }), nil, Blocked, ""},
		"new, its controller's first look behind it": {change(func(s *flux.Source) { s.Revision, s.Generation, s.ObservedGeneration, s.HasFinalizer = "", 1, 0, true }),
			[]string{"nudge GitRepository/flux-system/flux-system (new)"}, Blocked, ""},
		"new":             {change(func(s *flux.Source) { s.Revision, s.ObservedGeneration = "", 0 }), nil, Blocked, ""},
		"no artifact yet": {change(func(s *flux.Source) { s.Revision = "" }), nil, Blocked, ""},
		"failing, with an artifact": {change(func(s *flux.Source) { s.Conditions = failing("GitOperationFailed") }),
			[]string{"resume Kustomization/flux-system/apps (suspended)"}, Working, ""},
		"failing for good, without one": {change(func(s *flux.Source) { s.Conditions, s.Revision = failing("URLInvalid"), "" }), nil, Stopped, CauseBlocker},
		"absent":                        {nil, nil, Stopped, CauseBlocker},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts, s := ready(t)
			k := s.Kustomizations[model.Key("apps")].DeepCopy()
			k.Spec.Suspend = true
			s.Kustomizations[model.Key("apps")] = k
			s.Sources[model.Source()] = test.source
			if test.source == nil {
				delete(s.Sources, model.Source())
			}
			decision := decide(t, opts, s, Memory{})
			if diff := cmp.Diff(test.want, texts(decision)); diff != "" {
				t.Errorf("want(-) got(+):\n%s", diff)
			}
			for _, st := range decision.Standings {
				if st.Object.Kind == kustomizev1.KustomizationKind && (st.Phase != test.phase || st.Cause != test.cause) {
					t.Errorf("the tier is %s %s, want %s %s", st.Phase, st.Cause, test.phase, test.cause)
				}
			}
		})
	}
}

func TestDecideIsPure(t *testing.T) {
	opts, s := ready(t, release("a", suspended))
	d, err := NewDispatcher(opts)
	if err != nil {
		t.Fatal(err)
	}
	before := Memory{}.with(releaseObject(flux.Key{Namespace: "apps", Name: "x"}), func(n *note) { n.healed = 1 })
	first := d.Decide(t.Context(), s, before, model.Start())
	second := d.Decide(t.Context(), s, before, model.Start())
	if diff := cmp.Diff(texts(first), texts(second)); diff != "" || len(before.notes) != 1 {
		t.Errorf("a decision changed what it was made of: %s, %d notes", diff, len(before.notes))
	}
}

func TestSuspendedInGitCanBeIncluded(t *testing.T) {
	list := chain(2, func(_ int, t *model.Tier) { t.Suspended, t.InGit = true, true })
	h := newHarness(t, model.New(list), Options{IncludeSuspendedInGit: true})
	if err := h.run(time.Minute); err != nil {
		t.Error(err)
	}
	const warning = "git suspends it: its parent's next pass suspends it again"
	if n := strings.Count(strings.Join(h.log, "\n"), warning); n != 2 {
		t.Errorf("%d warnings, want one for each tier", n)
	}
	h.check(t)
}

func TestFailFastEndsAtTheFirstFailure(t *testing.T) {
	list := []model.Tier{
		{Name: "bad", Interval: time.Hour, Broken: &model.Failure{Reason: "BuildFailed", Message: "kustomize build failed"}},
		{Name: "slow", Interval: time.Hour, Apply: time.Minute},
	}
	h := newHarness(t, model.New(list), Options{FailFast: true})
	if err := h.run(time.Minute); err == nil || h.elapsed() > 5*time.Second {
		t.Errorf("ended after %s with %v", h.elapsed(), err)
	}
	h.check(t)
}

func TestSelection(t *testing.T) {
	g := model.Graph([]model.Tier{
		{Name: "root"}, {Name: "a", Parent: "root"}, {Name: "b", DependsOn: []string{"a"}}, {Name: "c", DependsOn: []string{"b"}}, {Name: "d"},
	}, model.Namespace)
	g.Tiers[4].Kustomization.Annotations = map[string]string{DisabledKey: "disabled"}
	tests := map[string]struct {
		selection Selection
		want      string
	}{
		"all but the disabled one": {Selection{}, "root a b c"},
		"only":                     {Selection{Only: keys("b", "d")}, "b"},
		"except":                   {Selection{Except: keys("b")}, "root a c"},
		"until":                    {Selection{Until: keys("b")}, "root a b"},
		"until and except":         {Selection{Until: keys("b"), Except: keys("root")}, "a b"},
		"unknown": {Selection{Only: keys("x"), Until: keys("y")},
			"selecting Kustomization/flux-system/x: no such tier\nselecting Kustomization/flux-system/y: no such tier"},
	}
	for name, test := range tests {
		selected, err := test.selection.Of(g)
		got := ""
		for _, tier := range g.Tiers {
			if selected[tier.Key] {
				got += " " + tier.Name
			}
		}
		if err != nil {
			got = " " + err.Error()
		}
		if got[1:] != test.want {
			t.Errorf("%s: got %q, want %q", name, got[1:], test.want)
		}
	}
}

func keys(names ...string) []flux.Key {
	var all []flux.Key
	for _, name := range names {
		all = append(all, model.Key(name))
	}
	return all
}

func TestLimits(t *testing.T) {
	list := []model.Tier{
		{Name: "applied", Interval: time.Hour},
		{Name: "gate", Interval: time.Hour, Wait: true, Timeout: 5 * time.Minute, DependsOn: []string{"applied"}},
		{Name: "beside", Interval: time.Hour},
	}
	g := model.Graph(list, model.Namespace)
	if got, want := TierLimit(g.Tiers[0].Kustomization), 3*time.Minute; got != want {
		t.Errorf("a tier that only applies: got %s, want %s", got, want)
	}
	if got, want := TierLimit(g.Tiers[1].Kustomization), 12*time.Minute; got != want {
		t.Errorf("a gate: got %s, want %s", got, want)
	}
	if got, want := TotalLimit(g, 0), 17*time.Minute; got != want {
		t.Errorf("in total: got %s, want %s", got, want)
	}
	if got, want := TotalLimit(g, time.Minute), 5*time.Minute; got != want {
		t.Errorf("in total, a minute each: got %s, want %s", got, want)
	}
}

func TestBackoff(t *testing.T) {
	var got []string
	for n := range 6 {
		got = append(got, backoff(healRetry, healRetryMax, n).String())
	}
	if want := []string{"5s", "10s", "20s", "30s", "30s", "30s"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
