package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/net/html"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
	"github.com/standup-sh/standup/test/homenetwork"
)

// traitsGraph is the graph of testdata/graph-traits.txtar.
func traitsGraph(t *testing.T) *tiers.Graph {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/graph-traits.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := repo.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := tiers.Load(t.Context(), tree, tiers.Options{Path: "clusters/main", HelmReleases: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// layeredGraph has n tiers in layers of fifty, each after two of the layer before.
func layeredGraph(n int) *tiers.Graph {
	const layer = 50
	list := make([]kustomizev1.Kustomization, n)
	for i := range list {
		list[i].ObjectMeta = metav1.ObjectMeta{Namespace: "flux-system", Name: fmt.Sprintf("tier-%04d", i)}
		if i >= layer {
			first := (i/layer - 1) * layer
			for _, d := range []int{first + i%layer, first + (i*7+3)%layer} {
				list[i].Spec.DependsOn = append(list[i].Spec.DependsOn, kustomizev1.DependencyReference{Name: fmt.Sprintf("tier-%04d", d)})
			}
		}
	}
	return tiers.FromCluster(list)
}

func graphPageOf(t *testing.T, g *tiers.Graph) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := Graph(&b, g, GraphOptions{Format: "html", Namespace: "flux-system"}); err != nil {
		t.Fatal(err)
	}
	return b.String(), parsePage(t, b.Bytes())
}

// TestGraphHTMLGolden leaves out style and script, so that the file shows what depends on the graph.
func TestGraphHTMLGolden(t *testing.T) {
	var b bytes.Buffer
	if err := writePage(&b, "graph", newGraphPage(traitsGraph(t), GraphOptions{Namespace: "flux-system"}, page{})); err != nil {
		t.Fatal(err)
	}
	golden(t, "graph-traits.html", b.Bytes())
}

func TestGraphHTMLDrawsEveryTierAndEdgeOnce(t *testing.T) {
	home, _ := homeNetwork(t, homenetwork.Wedged)
	for name, g := range map[string]*tiers.Graph{
		"traits": traitsGraph(t), "home network": home, "a thousand": layeredGraph(1000), "empty": tiers.FromCluster(nil),
		"part": home.UpstreamOf(home.CriticalPath[len(home.CriticalPath)-1]),
	} {
		t.Run(name, func(t *testing.T) {
			_, doc := graphPageOf(t, g)
			checkPage(t, doc)
			boxes := find(doc, func(n *html.Node) bool { return n.Data == "a" && hasClass(n, "tier") })
			if len(boxes) != len(g.Tiers) {
				t.Fatalf("%d boxes for %d tiers", len(boxes), len(g.Tiers))
			}
			for i, box := range boxes {
				tier := g.Tiers[i]
				if got, want := attribute(box, "data-name"), Name(tier.Key, "flux-system"); got != want {
					t.Errorf("box %d is of %q, not %q", i, got, want)
				}
				if hasClass(box, "gate") != tier.Gate || hasClass(box, "suspended") != tier.Suspend || hasClass(box, "opaque") != (tier.Opaque != "") {
					t.Errorf("%s is drawn as %q", tier.Key, attribute(box, "class"))
				}
			}
			paths := find(doc, func(n *html.Node) bool { return n.Data == "path" && attribute(n, "data-from") != "" })
			if len(paths) != len(g.Edges) {
				t.Fatalf("%d paths for %d edges", len(paths), len(g.Edges))
			}
			at := positions(g)
			for i, e := range g.Edges {
				got := attribute(paths[i], "data-from") + " " + attribute(paths[i], "data-to")
				if want := fmt.Sprintf("%d %d", at[e.From], at[e.To]); got != want || !hasClass(paths[i], string(e.Kind)) {
					t.Errorf("path %d is %s (%s), not %s (%s)", i, got, attribute(paths[i], "class"), want, e.Kind)
				}
			}
			rows := find(doc, func(n *html.Node) bool { return n.Data == "tr" && strings.HasPrefix(attribute(n, "id"), "r") })
			if len(rows) != len(g.Tiers) {
				t.Errorf("%d rows for %d tiers", len(rows), len(g.Tiers))
			}
		})
	}
}

func TestGraphHTMLMarksTheCriticalPath(t *testing.T) {
	g := traitsGraph(t)
	_, doc := graphPageOf(t, g)
	boxes := find(doc, func(n *html.Node) bool { return n.Data == "a" && hasClass(n, "tier") && hasClass(n, "critical") })
	paths := find(doc, func(n *html.Node) bool { return attribute(n, "data-from") != "" && hasClass(n, "critical") })
	if len(g.CriticalPath) < 3 || len(boxes) != len(g.CriticalPath) || len(paths) != len(g.CriticalPath)-1 {
		t.Errorf("%d boxes and %d edges are marked of a path of %d", len(boxes), len(paths), len(g.CriticalPath))
	}
}

// TestGraphHTMLEscapes names tiers, files, reasons and messages with what a browser would run.
func TestGraphHTMLEscapes(t *testing.T) {
	const evil = `"'><script>alert(1)</script></title></style><img src=x onerror=alert(1)>{{.}}`
	list := []kustomizev1.Kustomization{{}, {}}
	for i := range list {
		list[i].ObjectMeta = metav1.ObjectMeta{Namespace: evil, Name: fmt.Sprint(i, evil)}
		list[i].Spec.Path = "javascript:" + evil
	}
	list[1].Spec.DependsOn = []kustomizev1.DependencyReference{{Name: list[0].Name, ReadyExpr: evil}, {Name: "not there" + evil}}
	g := tiers.FromCluster(list)
	g.Entry, g.Revision = evil, evil
	for _, tier := range g.Tiers {
		tier.File, tier.Line, tier.Opaque = evil, 1, evil
		tier.HelmReleases = []tiers.HelmRelease{{Key: tiers.Key{Namespace: evil, Name: evil}, DependsOn: []tiers.Key{{Name: evil}}}}
	}
	g.Problems = append(g.Problems, tiers.Problem{Rule: evil, Severity: tiers.Error, Tier: g.Tiers[0].Key, File: evil, Message: evil})
	text, doc := graphPageOf(t, g)
	checkPage(t, doc)
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		t.Error("a name is markup")
	}
	if n := strings.Count(textOf(doc), evil); n < 10 {
		t.Errorf("the text is shown %d times only", n)
	}
}

// A dependency may carry an expression that decides instead of readiness: the picture says so.
func TestGraphHTMLShowsReadyExpressions(t *testing.T) {
	list := make([]kustomizev1.Kustomization, 2)
	list[0].ObjectMeta = metav1.ObjectMeta{Namespace: "flux-system", Name: "a"}
	list[1].ObjectMeta = metav1.ObjectMeta{Namespace: "flux-system", Name: "b"}
	list[1].Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "a", ReadyExpr: "dep.status.ok == true"}}
	list[1].Spec.HealthChecks = []meta.NamespacedObjectKindReference{{Kind: "Deployment", Name: "b"}}
	_, doc := graphPageOf(t, tiers.FromCluster(list))
	if text := textOf(doc); !strings.Contains(text, "b waits for a (dependsOn) until dep.status.ok == true") {
		t.Errorf("the expression is missing in %s", text)
	}
}
