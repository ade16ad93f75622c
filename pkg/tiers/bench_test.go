package tiers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/standup-sh/standup/pkg/repo"
)

// BenchmarkLoad reads generated repositories of 1,000 and 5,000 tiers, as a graph and with all
// objects. It reports the memory that the result keeps for each tier.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		dir := b.TempDir()
		generateRepo(b, dir, n)
		for _, objects := range []bool{false, true} {
			name := fmt.Sprintf("graph/%d", n)
			if objects {
				name = fmt.Sprintf("objects/%d", n)
			}
			b.Run(name, func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var g *Graph
				for b.Loop() {
					g = loadGenerated(b, dir, n, objects)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/float64(n), "heap-B/tier")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/tier")
				runtime.KeepAlive(g)
			})
		}
	}
}

func loadGenerated(b testing.TB, dir string, n int, objects bool) *Graph {
	tree, err := repo.Open(dir, "")
	if err != nil {
		b.Fatal(err)
	}
	g, err := Load(b.Context(), tree, Options{Path: "clusters/main", Objects: objects})
	if err != nil {
		b.Fatal(err)
	}
	if len(g.Tiers) != n+1 || len(g.Problems) > 0 {
		b.Fatalf("%d tiers, problems %v", len(g.Tiers), g.Problems)
	}
	return g
}

// BenchmarkAgainstReference measures in one run what the targets compare: a loop over the
// controller's own build, reading and parsing every file once, the graph, and the full render. The
// loop takes a minute or two for 1,000 tiers; STANDUP_BENCH_TIERS changes their number.
func BenchmarkAgainstReference(b *testing.B) {
	n := 1000
	if s := os.Getenv("STANDUP_BENCH_TIERS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	generateRepo(b, dir, n)
	for b.Loop() {
		parse := best(3, func() { parseAll(b, dir) })
		graph := best(3, func() { loadGenerated(b, dir, n, false) })
		full := best(3, func() { loadGenerated(b, dir, n, true) })
		loop := best(1, func() { buildAll(b, dir, n) })
		b.ReportMetric(loop.Seconds(), "s/fluxcd-loop")
		b.ReportMetric(full.Seconds(), "s/full")
		b.ReportMetric(loop.Seconds()/full.Seconds(), "x-faster")
		b.ReportMetric(parse.Seconds(), "s/parse-once")
		b.ReportMetric(graph.Seconds(), "s/graph")
		b.ReportMetric(graph.Seconds()/parse.Seconds(), "x-parse")
	}
}

func best(runs int, f func()) time.Duration {
	var least time.Duration
	for i := range runs {
		start := time.Now()
		f()
		if d := time.Since(start); i == 0 || d < least {
			least = d
		}
	}
	return least
}

// parseAll reads and parses every manifest once, on one core, as any reader must.
func parseAll(b *testing.B, dir string) {
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, doc := range strings.Split(string(data), "\n---\n") {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// buildAll is the loop that a tool around fluxcd's Build is made of.
func buildAll(b *testing.B, dir string, n int) {
	for i := range n {
		ks := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"path": fmt.Sprintf("./tiers/tier-%04d", i)},
		}}
		if _, err := reference(b.Context(), dir, ks, nil); err != nil {
			b.Fatal(err)
		}
	}
}
