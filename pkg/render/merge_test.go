package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// mergeSeeds are an object and a patch each, without their kind and, where it does not matter, their metadata.
var mergeSeeds = []struct { //nolint:gochecknoglobals // a table
	name, object, patch string
	// simple: the fields are merged here, not by kustomize.
	simple bool
}{
	{"a new field", "spec: {a: b}", "spec: {c: d}", true},
	{"new fields in disorder", "spec: {b: c}", "spec: {z: {b: c, a: d}, a: b}", true},
	{"a new mapping", "spec: {a: b}", "spec: {c: {d: e, f: null, g: {h: null}}}", true},
	{"a replaced text keeps its quotes", "spec: {a: 'b'}", "spec: {a: on}", true},
	{"a text that YAML 1.1 reads as a truth", "spec: {a: on, b: {c: y, d: 012e3}}", "spec: {e: no, f: off}", true},
	{"a list is replaced", "spec: {a: [1, 2]}", "spec: {a: [{b: c}]}", true},
	{"null leaves out", "spec: {a: b, c: {d: e}, f: [g]}", "spec: {a: null, c: null, f: null, h: null}", true},
	{"an empty mapping takes the style", "spec: {}", "spec:\n  a: {b: c}\n", true},
	{"an empty patch", "spec: {a: b}", "spec: {}", true},
	{"no spec", "data: {a: b}", "spec: {a: b}", true},
	{"an empty text", "spec: {a: ''}", "spec: {b: ''}", true},
	{"several lines", "spec: {a: \"b\\nc\"}", "spec:\n  a: |\n    on\n    off\n", true},
	{"numbers", "spec: {a: 1, b: 1.0, c: true}", "spec: {a: 2, d: 1e3, e: false}", true},
	{"dates and times", "spec: {a: 2001-01-01}", "spec: {b: 10m, c: 1:20, d: 2001-01-01}", true},
	{"a name is not changed", "spec: {a: b}", "metadata: {name: other, namespace: other, labels: {a: b}}", true},
	{"a namespace is not changed", "metadata: {name: a, namespace: b}\nspec: {a: b}", "metadata: {name: other, namespace: null}", true},
	{"a name that only looks like one is", "spec: {metadata: {name: a}}", "spec: {metadata: {name: b}}", true},
	{"null in the object", "spec: {a: null, b: ~, c: }", "spec: {d: e}", false},
	{"a key without a name", "spec: {'': a}", "spec: {a: b}", false},
	{"a key without a name in the patch", "spec: {a: b}", "spec: {a: {'': b}}", false},
	{"a key twice", "spec: {a: b}", "spec: {c: {d: e, f: g, d: h}}", false},
	{"a directive", "spec: {a: {b: c}}", "spec: {a: {$patch: replace, d: e}}", false},
	{"a text for a mapping", "spec: {a: {b: c}}", "spec: {a: b}", false},
	{"an embedded object", "spec: {a: {apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b}]}}}", "spec: {a: {spec: {containers: [{name: b, image: c}]}}}", false},
	{"an embedded object in the patch", "spec: {a: {spec: {containers: [{name: a}, {name: b}]}}}", "spec: {a: {apiVersion: v1, kind: Pod, spec: {containers: [{name: b, image: c}]}}}", false},
	{"a schema in a comment", "spec:\n  a: [{name: b}] # {\"type\":\"array\",\"x-kubernetes-list-type\":\"associative\",\"x-kubernetes-patch-merge-key\":\"name\"}\n", "spec: {a: [{name: c}]}", false},
}

// TestMergeIsKustomize merges patches both ways.
func TestMergeIsKustomize(t *testing.T) {
	for _, seed := range mergeSeeds {
		t.Run(seed.name, func(t *testing.T) {
			got, want, merged, ok := mergedBothWays(seed.object, seed.patch)
			if !ok {
				t.Fatal("object or patch is no manifest")
			}
			if merged != seed.simple {
				t.Errorf("simple: %v, want %v", merged, seed.simple)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("not what kustomize merges (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzMergeIsKustomize(f *testing.F) {
	for _, seed := range mergeSeeds {
		f.Add(seed.object, seed.patch)
	}
	f.Fuzz(func(t *testing.T, object, patch string) {
		got, want, _, ok := mergedBothWays(object, patch)
		if !ok {
			t.Skip()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("not what kustomize merges (-want +got):\n%s", diff)
		}
	})
}

// mergedBothWays merges a patch into an object, and reports whether it was simple and whether both are manifests.
func mergedBothWays(object, patch string) (got, want string, simple, ok bool) {
	factory := newFactory()
	read := func(name, fields string) *resource.Resource {
		head := "apiVersion: example.org/v1\nkind: Thing\n"
		if !strings.HasPrefix(fields, "metadata:") {
			head += "metadata: {name: " + name + "}\n"
		}
		nodes, err := nodesOf(factory, []byte(head+fields))
		if err != nil || len(nodes) != 1 || nodes[0].YNode().Kind != kyaml.MappingNode {
			return nil
		}
		return &resource.Resource{RNode: *nodes[0]}
	}
	a, b, p := read("a", object), read("a", object), read("patch", patch)
	if a == nil || p == nil {
		return "", "", false, false
	}
	before := text(a)
	simple = isSimple(p) && mergeSimply(a, p)
	if !simple {
		// It must be left as it was, for kustomize to merge.
		return text(a), before, false, true
	}
	own := p.DeepCopy()
	own.SetGvk(b.GetGvk())
	if err := b.ApplySmPatch(own); err != nil {
		return text(a), err.Error(), true, true
	}
	return text(a), text(b), true, true
}

// text is an object as YAML, without comments.
func text(r *resource.Resource) string {
	var strip func(n *kyaml.Node)
	strip = func(n *kyaml.Node) {
		n.HeadComment, n.LineComment, n.FootComment = "", "", ""
		for _, c := range n.Content {
			strip(c)
		}
	}
	c := r.DeepCopy()
	strip(c.YNode())
	return c.MustString()
}
