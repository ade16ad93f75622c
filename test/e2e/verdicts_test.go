package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/standup-sh/standup/pkg/audit"
	"github.com/standup-sh/standup/test/cluster"
	"github.com/standup-sh/standup/test/verdicts"
)

// TestE2EVerdictsEqualReality compares what `standup audit` says of generated repositories with what
// Flux does with them: every tier that is said to come up becomes Ready, and no other does.
//
// STANDUP_VERDICTS is how many repositories to try (`make bench` tries some hundreds), in batches that
// share a cluster, and STANDUP_VERDICTS_SEED the first seed.
func TestE2EVerdictsEqualReality(t *testing.T) {
	total, first := number(t, "STANDUP_VERDICTS", 16), number(t, "STANDUP_VERDICTS_SEED", 1)
	const batch = 24
	c := cluster.New(t, cluster.Options{Components: cluster.Flux(), Flags: map[cluster.Component][]string{
		cluster.SourceController:    {"--enable-leader-election=false"},
		cluster.KustomizeController: {"--enable-leader-election=false", "--requeue-dependency=1s", "--concurrent=24", "--kube-api-qps=500", "--kube-api-burst=1000"},
	}})
	agreed, tiers := 0, 0
	for from := first; from < first+total; from += batch {
		b := newVerdictBatch(t, c, from, min(batch, first+total-from))
		b.compare()
		agreed += len(b.repos)
		tiers += b.tiers()
		t.Logf("%d repositories, %d tiers so far", agreed, tiers)
	}
	if !t.Failed() {
		t.Logf("%d repositories, %d tiers: every verdict is what Flux did", agreed, tiers)
	}
}

func number(t *testing.T, variable string, standard int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// verdictBatch is some repositories on one cluster, each with a namespace of its own.
type verdictBatch struct {
	t      *testing.T
	c      *cluster.Cluster
	client dynamic.Interface
	repos  []*verdicts.Repository
	// said is, by repository and tier, whether the tier comes up.
	said    []map[string]bool
	results []*audit.Result
}

func newVerdictBatch(t *testing.T, c *cluster.Cluster, from, n int) *verdictBatch {
	t.Helper()
	b := &verdictBatch{t: t, c: c, client: c.Dynamic()}
	for seed := from; seed < from+n; seed++ {
		name := fmt.Sprintf("v%d", seed)
		r := verdicts.Generate(uint64(seed), c.Git.URL(name)) //nolint:gosec // small and positive
		result, said, err := r.Audit(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Git.Push(t.Context(), name, r.Files, "first"); err != nil {
			t.Fatal(err)
		}
		b.repos, b.said, b.results = append(b.repos, r), append(b.said, said), append(b.results, result)
	}
	return b
}

func (b *verdictBatch) tiers() int {
	n := 0
	for _, said := range b.said {
		n += len(said)
	}
	return n
}

// compare starts everything, waits until the cluster is as was said, and goes on looking for a while:
// what is said to be stuck must stay so.
func (b *verdictBatch) compare() {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	defer stop()
	standin, err := verdicts.NewStandin(b.c.RESTConfig(), b.repos)
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); standin.Run(ctx) }()
	defer func() { b.suspendAll(ctx); stop(); <-done }()
	for i, r := range b.repos {
		before, err := r.Before(b.results[i])
		if err != nil {
			b.t.Fatal(err)
		}
		before = append([]string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + r.Namespace + "}\n"}, before...)
		if err := b.c.Apply(ctx, strings.Join(before, "---\n")); err != nil {
			b.t.Fatal(err)
		}
		if err := b.c.Sync(ctx, cluster.Sync{Repo: r.Namespace, Path: verdicts.Entry, Name: "root", Namespace: r.Namespace}); err != nil {
			b.t.Fatal(err)
		}
	}
	// A cluster that makes progress is given time: how fast it is depends on the machine.
	quiet := 90 * time.Second
	last, changed := "", time.Now()
	for {
		wrong, err := b.disagreements(ctx)
		if err == nil && len(wrong) == 0 {
			break
		}
		if err != nil { // a machine with too much to do
			wrong = []string{err.Error()}
		}
		if now := fmt.Sprint(wrong); now != last {
			last, changed = now, time.Now()
		}
		if time.Since(changed) > quiet {
			b.fail(ctx, wrong)
			return
		}
		time.Sleep(time.Second)
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		if wrong, err := b.disagreements(ctx); err == nil && len(wrong) > 0 {
			b.fail(ctx, wrong)
			return
		}
	}
}

// disagreements lists the tiers that are not as was said, sorted.
func (b *verdictBatch) disagreements(ctx context.Context) ([]string, error) {
	var out []string
	for i, r := range b.repos {
		list, err := b.client.Resource(verdictTiers()).Namespace(r.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		ready := map[string]bool{}
		for j := range list.Items {
			ready[list.Items[j].GetName()] = upToDate(&list.Items[j])
		}
		for _, name := range slices.Sorted(maps.Keys(b.said[i])) {
			if ready[name] != b.said[i][name] {
				out = append(out, fmt.Sprintf("repository %d: %s is said to come up: %t, is Ready: %t", r.Seed, name, b.said[i][name], ready[name]))
			}
		}
	}
	return out, nil
}

func upToDate(k *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(k.Object, "status", "observedGeneration")
	return observed == k.GetGeneration() && cluster.ConditionTrue(k, "Ready")
}

func (b *verdictBatch) fail(ctx context.Context, wrong []string) {
	b.t.Helper()
	for i, r := range b.repos {
		list, err := b.client.Resource(verdictTiers()).Namespace(r.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, line := range wrong {
			var seed uint64
			if _, err := fmt.Sscanf(line, "repository %d:", &seed); err != nil || seed != r.Seed {
				continue
			}
			for _, k := range list.Items {
				conditions, _, _ := unstructured.NestedSlice(k.Object, "status", "conditions")
				b.t.Logf("%s/%s: %v", k.GetNamespace(), k.GetName(), conditions)
			}
			for _, f := range b.results[i].Findings {
				b.t.Logf("repository %d: %s %s %s: %s", r.Seed, f.Severity, f.Rule, f.Tier, f.Message)
			}
			break
		}
	}
	b.t.Errorf("git and cluster disagree:\n%s", strings.Join(wrong, "\n"))
}

// suspendAll stops the work on a batch, so that the next one has the cluster for itself: parents
// before children, which they would resume.
func (b *verdictBatch) suspendAll(ctx context.Context) {
	for _, r := range b.repos {
		client := b.client.Resource(verdictTiers()).Namespace(r.Namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		names := []string{"root"}
		for _, k := range list.Items {
			if k.GetName() != "root" {
				names = append(names, k.GetName())
			}
		}
		for _, name := range names {
			if _, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func verdictTiers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
}
