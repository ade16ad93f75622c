package tiers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/standup-sh/standup/pkg/repo"
)

var update = flag.Bool("update", false, "write what is seen to the golden files")

// fixture is a small repository in testdata. The comment at its top says what it shows, and how
// it is read in lines of the form "option: value".
type fixture struct {
	name string
	dir  string
	opts Options
}

// fixtures unpacks every repository of testdata into a folder of its own.
func fixtures(t testing.TB) []fixture {
	t.Helper()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var out []fixture
	for _, a := range archives {
		out = append(out, unpack(t, a))
	}
	return out
}

func unpack(t testing.TB, archive string) fixture {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(data)
	f := fixture{name: strings.TrimSuffix(filepath.Base(archive), ".txtar"), dir: t.TempDir()}
	for _, line := range strings.Split(string(ar.Comment), "\n") {
		key, val, _ := strings.Cut(line, ": ")
		switch key {
		case "path":
			f.opts.Path = val
		case "var":
			k, v, _ := strings.Cut(val, "=")
			f.opts.Vars = map[string]string{k: v}
		case "source":
			k, v, _ := strings.Cut(val, "=")
			if f.opts.Sources == nil {
				f.opts.Sources = map[string]string{}
			}
			f.opts.Sources[k] = v
		}
	}
	for _, file := range ar.Files {
		writeFile(t, f.dir, file.Name, string(file.Data))
	}
	return f
}

// writeFile writes one file of a fixture. "name -> target" is a symbolic link, \r and \uFEFF in
// a name's suffix say how the text is encoded, because txtar itself is plain.
func writeFile(t testing.TB, dir, name, data string) {
	t.Helper()
	link, target, isLink := strings.Cut(name, " -> ")
	name, encoding, _ := strings.Cut(link, " as ")
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if isLink {
		if err := os.Symlink(target, full); err != nil {
			t.Fatal(err)
		}
		return
	}
	switch encoding {
	case "crlf":
		data = strings.ReplaceAll(data, "\n", "\r\n")
	case "bom":
		data = "\uFEFF" + data
	}
	if err := os.WriteFile(full, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) load(t testing.TB) (*Graph, error) {
	t.Helper()
	tree, err := repo.Open(f.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return Load(t.Context(), tree, f.opts)
}

// describe writes a graph as a golden file shows it.
func describe(g *Graph) string {
	var b strings.Builder
	for _, t := range g.Tiers {
		fmt.Fprintf(&b, "%d %s", t.Wave, keyString(t.Key))
		if t.Dir != "" {
			fmt.Fprintf(&b, " dir=%s", t.Dir)
		}
		if t.File != "" {
			fmt.Fprintf(&b, " at=%s:%d", t.File, t.Line)
		}
		for name, on := range map[string]bool{" gate": t.Gate} {
			if on {
				b.WriteString(name)
			}
		}
		if t.Leaf {
			b.WriteString(" leaf")
		}
		if t.Suspend {
			b.WriteString(" suspend")
		}
		if t.Synthetic {
			b.WriteString(" synthetic")
		}
		if t.Opaque != "" {
			fmt.Fprintf(&b, " opaque(%s)", t.Opaque)
		}
		b.WriteString("\n")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "%s needs %s (%s)\n", keyString(e.From), keyString(e.To), e.Kind)
	}
	fmt.Fprintf(&b, "critical path: %s\n", pathString(g.CriticalPath))
	for _, p := range g.Problems {
		fmt.Fprintf(&b, "%s:%d: %s: %s: %s\n", p.File, p.Line, p.Severity, p.Rule, p.Message)
	}
	return b.String()
}

// fails reports whether the golden file of a fixture holds an error in place of a graph.
func (f fixture) fails(t *testing.T) bool {
	t.Helper()
	golden, err := os.ReadFile(filepath.Join("testdata", f.name+".golden"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(golden), "error: ")
}

func TestLoadFixtures(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			got := ""
			g, err := f.load(t)
			if err != nil {
				got = "error: " + strings.ReplaceAll(err.Error(), f.dir, "REPO") + "\n"
			} else {
				got = describe(g)
			}
			golden := filepath.Join("testdata", f.name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("graph differs from %s (-want +got):\n%s", golden, d)
			}
		})
	}
}
