package tiers

// Components are the strongly connected components of a graph of numbered nodes, where edges lists what
// each node needs: each after those it needs, its members in no order. It is Tarjan's algorithm with
// a stack of its own: a chain of ten thousand tiers must not become ten thousand calls.
func Components(edges [][]int) [][]int {
	t := tarjan{edges: edges, index: make([]int, len(edges)), low: make([]int, len(edges)), on: make([]bool, len(edges))}
	for n := range edges {
		if t.index[n] == 0 {
			t.visit(n)
		}
	}
	return t.out
}

type tarjan struct {
	edges      [][]int
	index, low []int // index 0: not visited
	on         []bool
	stack      []int
	next       int
	out        [][]int
}

func (t *tarjan) visit(root int) {
	type frame struct{ node, edge int }
	t.open(root)
	calls := []frame{{node: root}}
	for len(calls) > 0 {
		f := &calls[len(calls)-1]
		if f.edge < len(t.edges[f.node]) {
			m := t.edges[f.node][f.edge]
			f.edge++
			switch {
			case t.index[m] == 0:
				t.open(m)
				calls = append(calls, frame{node: m})
			case t.on[m]:
				t.low[f.node] = min(t.low[f.node], t.index[m])
			}
			continue
		}
		n := f.node
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			p := calls[len(calls)-1].node
			t.low[p] = min(t.low[p], t.low[n])
		}
		if t.low[n] == t.index[n] {
			t.close(n)
		}
	}
}

func (t *tarjan) open(n int) {
	t.next++
	t.index[n], t.low[n], t.on[n] = t.next, t.next, true
	t.stack = append(t.stack, n)
}

func (t *tarjan) close(n int) {
	var component []int
	for {
		m := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.on[m] = false
		component = append(component, m)
		if m == n {
			break
		}
	}
	t.out = append(t.out, component)
}
