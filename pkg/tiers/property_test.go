package tiers

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/standup-sh/standup/pkg/repo"
)

// randomGraph makes up to n tiers with random edges; forward ones only if acyclic is set.
func randomGraph(r *rand.Rand, n int, acyclic bool) *Graph {
	g := &Graph{}
	count := 1 + r.Intn(n)
	for i := range count {
		g.Tiers = append(g.Tiers, &Tier{Key: Key{Namespace: fmt.Sprintf("ns%d", r.Intn(3)), Name: fmt.Sprintf("t%03d", i)},
			Kustomization: &kustomizev1.Kustomization{}})
	}
	for range r.Intn(3 * count) {
		i, j := r.Intn(count), r.Intn(count)
		if acyclic && i <= j {
			continue
		}
		kind := []EdgeKind{DependsOn, Parent, Source}[r.Intn(3)]
		g.Edges = append(g.Edges, Edge{From: g.Tiers[i].Key, To: g.Tiers[j].Key, Kind: kind})
	}
	r.Shuffle(count, func(i, j int) { g.Tiers[i], g.Tiers[j] = g.Tiers[j], g.Tiers[i] })
	return g
}

func TestEveryEdgePointsToAnEarlierTier(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 500 {
		g := randomGraph(r, 40, true)
		sortGraph(g)
		at := map[Key]int{}
		for i, x := range g.Tiers {
			at[x.Key] = i
		}
		byKey := index(g.Tiers)
		for _, e := range g.Edges {
			if at[e.To] >= at[e.From] {
				t.Fatalf("%v comes before %v, which it needs", e.From, e.To)
			}
			if byKey[e.From].Wave <= byKey[e.To].Wave {
				t.Fatalf("wave %d of %v is not after wave %d of %v", byKey[e.From].Wave, e.From, byKey[e.To].Wave, e.To)
			}
			if byKey[e.To].Leaf {
				t.Fatalf("%v is called a leaf, but %v needs it", e.To, e.From)
			}
		}
		checkChain(t, g)
		if got, want := len(g.CriticalPath), 1+slices.MaxFunc(g.Tiers, func(a, b *Tier) int { return a.Wave - b.Wave }).Wave; got != want {
			t.Fatalf("critical path of %d for %d waves", got, want)
		}
		if d := cmp.Diff(g.CriticalPath, longest(g)); d != "" {
			t.Fatalf("longest chain differs from the critical path: %s", d)
		}
	}
}

// checkChain checks that each step of the critical path is an edge.
func checkChain(t *testing.T, g *Graph) {
	t.Helper()
	needs := adjacency(g.Edges)
	for i := 1; i < len(g.CriticalPath); i++ {
		if !slices.Contains(needs[g.CriticalPath[i]], g.CriticalPath[i-1]) {
			t.Fatalf("critical path: no edge from %v to %v", g.CriticalPath[i], g.CriticalPath[i-1])
		}
	}
}

func TestReportedCyclesAreCycles(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 500 {
		g := randomGraph(r, 15, false)
		sortGraph(g)
		needs := adjacency(g.Edges)
		inCycle := map[Key]bool{}
		for _, c := range cycles(g.Tiers, needs) {
			for i, k := range c {
				inCycle[k] = true
				if !slices.Contains(needs[k], c[(i+1)%len(c)]) {
					t.Fatalf("no edge from %v to %v in cycle %v", k, c[(i+1)%len(c)], c)
				}
			}
		}
		for _, x := range g.Tiers {
			if reaches(needs, x.Key) != inCycle[x.Key] {
				t.Fatalf("%v lies on a cycle: %v, reported: %v", x.Key, !inCycle[x.Key], inCycle[x.Key])
			}
		}
	}
}

// reaches says whether a tier needs itself, by the plainest search there is.
func reaches(needs map[Key][]Key, start Key) bool {
	seen := map[Key]bool{}
	queue := slices.Clone(needs[start])
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		if k == start {
			return true
		}
		if !seen[k] {
			seen[k] = true
			queue = append(queue, needs[k]...)
		}
	}
	return false
}

func TestSelections(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for range 200 {
		g := randomGraph(r, 25, true)
		sortGraph(g)
		k := g.Tiers[r.Intn(len(g.Tiers))].Key
		up, down := g.UpstreamOf(k), g.DownstreamOf(k)
		needs := adjacency(g.Edges)
		for _, x := range up.Tiers {
			for _, n := range needs[x.Key] {
				if index(up.Tiers)[n] == nil {
					t.Fatalf("upstream of %v lacks %v, which %v needs", k, n, x.Key)
				}
			}
		}
		for _, e := range g.Edges {
			if in := index(down.Tiers); in[e.To] != nil && in[e.From] == nil {
				t.Fatalf("downstream of %v lacks %v, which needs %v", k, e.From, e.To)
			}
		}
		checkChain(t, up)
		checkChain(t, down)
	}
}

// TestShuffledFilesGiveTheSameGraph spreads the same Kustomizations over files in many ways.
func TestShuffledFilesGiveTheSameGraph(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	var docs []string
	for i := range 30 {
		deps := ""
		if i > 0 {
			deps = fmt.Sprintf("  dependsOn: [{name: t%02d}, {name: t%02d}]\n", r.Intn(i), r.Intn(i))
		}
		docs = append(docs, fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: t%02d, namespace: flux-system}\n"+
			"spec:\n  interval: 1h\n  path: ./x\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system}\n%s", i, deps))
	}
	want := ""
	for round := range 20 {
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		files := map[string][]byte{"x/cm.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")}
		for i, d := range docs {
			name := fmt.Sprintf("clusters/prod/%c/f%d.yaml", 'a'+r.Intn(4), r.Intn(9)+10*(i%2))
			files[name] = append(files[name], []byte("---\n"+d)...)
		}
		g, err := Load(t.Context(), repo.FromFiles(files), Options{Path: "clusters/prod"})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range g.Tiers {
			x.File, x.Line = "", 0
		}
		if got := describe(g); round == 0 {
			want = got
		} else if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("round %d: %s", round, d)
		}
	}
}

// TestLoadIsDeterministic loads every fixture several times; the work is spread over all cores.
func TestLoadIsDeterministic(t *testing.T) {
	for _, f := range fixtures(t) {
		first := ""
		for round := range 4 {
			g, err := f.load(t)
			if err != nil {
				break
			}
			if got := describe(g); round == 0 {
				first = got
			} else if d := cmp.Diff(first, got); d != "" {
				t.Errorf("%s: round %d: %s", f.name, round, d)
			}
		}
	}
}

// FuzzLoad looks for panics and for graphs that are not in order. Its seeds are the fixtures.
func FuzzLoad(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range archives {
		data, err := os.ReadFile(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip()
		}
		ar := txtar.Parse(data)
		files := map[string][]byte{}
		for _, file := range ar.Files {
			files[file.Name] = file.Data
		}
		tree := repo.FromFiles(files)
		paths := []string{""}
		if entries, err := FindEntries(tree); err == nil {
			for _, e := range entries {
				paths = append(paths, e.Path)
			}
		}
		for _, line := range strings.Split(string(ar.Comment), "\n") {
			if p, ok := strings.CutPrefix(line, "path: "); ok {
				paths = append(paths, p)
			}
		}
		for _, p := range paths {
			g, err := Load(t.Context(), tree, Options{Path: p, HelmReleases: true})
			if err != nil {
				continue
			}
			cyclic := slices.ContainsFunc(g.Problems, func(p Problem) bool { return p.Rule == "cycle" })
			at := map[Key]int{}
			for i, x := range g.Tiers {
				at[x.Key] = i
			}
			for _, e := range g.Edges {
				if at[e.To] >= at[e.From] && !cyclic {
					t.Fatalf("%v comes before %v, which it needs", e.From, e.To)
				}
			}
		}
	})
}
