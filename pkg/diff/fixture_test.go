package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/standup-sh/standup/pkg/diff"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

func load(t *testing.T, dir, path string) *tiers.Graph {
	t.Helper()
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := tiers.Load(t.Context(), tree, tiers.Options{Path: path, Objects: true,
		Sources: map[string]string{"GitRepository/flux-system/other": "."}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// facts writes a diff one fact a line, as the fixtures list them.
func facts(d *diff.Diff) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, k := range d.Added {
		add("added: %s", k)
	}
	for _, k := range d.Removed {
		add("removed: %s", k)
	}
	for _, c := range d.Changed {
		add("changed: %s %s %s %s", c.Tier, c.Field, c.Before, c.After)
	}
	for sign, edges := range map[string][]tiers.Edge{"+": d.AddedEdges, "-": d.RemovedEdges} {
		for _, e := range edges {
			if e.Kind == tiers.DependsOn {
				add("edge: %s %s %s %s", sign, e.From, e.To, e.Kind)
			}
		}
	}
	for _, r := range d.Reordered {
		add("order: %s %s %t", r.First, r.Then, r.Reversed)
	}
	for _, m := range d.Moves {
		add("move: %s %s %s %s %s", m.ID, m.From, m.To, m.Outcome, m.Severity)
	}
	for _, l := range d.Losses {
		add("loss: %s %s %t %s", l.ID, l.Tier, l.Deleted, l.Severity)
	}
	for _, g := range d.Gone {
		add("gone: %s deletes %t objects %d moves %d", g.Tier, g.Deletes, g.Objects, g.Moves)
	}
	for _, p := range d.Preconditions {
		add("needs: %s", p.Tier)
	}
	return out
}

// skipOwn leaves out what follows from tiers being added and removed: the moves and losses of the
// Kustomization objects themselves, unless the fixture lists some.
func skipOwn(got, want []string) []string {
	listed := slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "loss: Kustomization") })
	return slices.DeleteFunc(got, func(s string) bool {
		return !listed && strings.HasPrefix(s, "loss: Kustomization/")
	})
}

func TestFixtures(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, archive := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(archive), ".txtar"), func(t *testing.T) {
			dir, want := unpack(t, archive)
			d := diff.Compare(load(t, filepath.Join(dir, "before"), "cluster"), load(t, filepath.Join(dir, "after"), "cluster"))
			got := skipOwn(facts(d), want)
			slices.Sort(got)
			slices.Sort(want)
			if delta := cmp.Diff(want, got); delta != "" {
				t.Errorf("(-want +got):\n%s", delta)
				for _, m := range d.Moves {
					t.Logf("%s: %s", m.ID, m.Why)
				}
			}
		})
	}
}

func unpack(t *testing.T, archive string) (dir string, want []string) {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(data)
	_, list, _ := strings.Cut(string(ar.Comment), "\n\n")
	for line := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		want = append(want, line)
	}
	dir = t.TempDir()
	for _, file := range ar.Files {
		name := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, want
}
