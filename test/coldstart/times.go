package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/test/cluster"
)

// graph is the dependsOn graph of one namespace's Kustomizations, the entry left out.
type graph struct {
	names   []string // sorted
	depends map[string][]string
}

func newGraph(items []unstructured.Unstructured) graph {
	g := graph{depends: map[string][]string{}}
	for _, o := range items {
		if o.GetName() == "flux-system" {
			continue
		}
		g.names = append(g.names, o.GetName())
		refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "dependsOn")
		for _, r := range refs {
			if m, ok := r.(map[string]any); ok {
				name, _ := m["name"].(string)
				g.depends[o.GetName()] = append(g.depends[o.GetName()], name)
			}
		}
	}
	slices.Sort(g.names)
	return g
}

// order lists every tier after those it depends on.
func (g graph) order() []string {
	var out []string
	done := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		for _, d := range g.depends[name] {
			visit(d)
		}
		out = append(out, name)
	}
	for _, n := range g.names {
		visit(n)
	}
	return out
}

// reconcileTimes are the durations of every tier's first successful pass, as kustomize-controller
// logged them: the time that no way of ordering can save.
type reconcileTimes struct {
	graph graph
	took  map[string]time.Duration
}

var finished = regexp.MustCompile(`^Reconciliation finished in (\S+), next run in`)

// readTimes reads the controller's log and the graph from the cluster.
func readTimes(ctx context.Context, c *cluster.Cluster) (*reconcileTimes, error) {
	kustomizations, err := c.Resource(cluster.KustomizationGVK(), "flux-system")
	if err != nil {
		return nil, err
	}
	list, err := kustomizations.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	t := &reconcileTimes{graph: newGraph(list.Items), took: map[string]time.Duration{}}
	f, err := os.Open(c.LogPath(cluster.KustomizeController))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Level string `json:"level"`
			Msg   string `json:"msg"`
			Name  string `json:"name"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.Level != "info" {
			continue
		}
		m := finished.FindStringSubmatch(entry.Msg)
		if m == nil || t.took[entry.Name] != 0 {
			continue
		}
		if t.took[entry.Name], err = time.ParseDuration(m[1]); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
		}
	}
	return t, lines.Err()
}

// criticalPath is the largest sum of times along a chain of dependsOn, the entry's own included.
func (t *reconcileTimes) criticalPath() time.Duration {
	longest := map[string]time.Duration{}
	var most time.Duration
	for _, name := range t.graph.order() {
		var before time.Duration
		for _, d := range t.graph.depends[name] {
			before = max(before, longest[d])
		}
		longest[name] = before + t.took[name]
		most = max(most, longest[name])
	}
	return most + t.took["flux-system"]
}

// total is the sum of all times: what the controller's workers share between them.
func (t *reconcileTimes) total() time.Duration {
	var sum time.Duration
	for _, d := range t.took {
		sum += d
	}
	return sum
}
