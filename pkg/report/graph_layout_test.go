package report

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// randomNodes is a layered graph with some empty waves and some very full ones.
func randomNodes(r *rand.Rand) []node {
	var nodes []node
	for wave := range 1 + r.IntN(8) {
		before := len(nodes)
		for range []int{0, 1, 5, 60, 200}[r.IntN(5)] {
			n := node{wave: wave, width: 40 + r.IntN(200)}
			for range r.IntN(4) {
				if before > 0 {
					n.near = append(n.near, r.IntN(before))
				}
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func TestArrangeOverlapsNothingAndStaysInside(t *testing.T) {
	for seed := range uint64(200) {
		nodes := randomNodes(rand.New(rand.NewPCG(seed, 1)))
		l := arrange(nodes)
		bands := map[int]band{}
		for i, b := range l.bands {
			bands[b.Wave] = b
			if b.right() > l.width || i > 0 && b.X < l.bands[i-1].right()+bandGap {
				t.Fatalf("seed %d: band %d lies at %+v", seed, i, b)
			}
		}
		for i, b := range l.boxes {
			band := bands[nodes[i].wave]
			if b.X < band.X+bandInset || b.right() > band.right()-bandInset || b.Y < headRoom || b.Y+b.Height > l.height-bandInset || b.Width < nodes[i].width {
				t.Fatalf("seed %d: box %d lies at %+v, outside of its band %+v", seed, i, b, band)
			}
			for j := range i {
				o := l.boxes[j]
				if b.X < o.right() && o.X < b.right() && b.Y < o.Y+o.Height && o.Y < b.Y+b.Height {
					t.Fatalf("seed %d: boxes %d and %d overlap: %+v %+v", seed, i, j, b, o)
				}
			}
		}
	}
}

func TestArrangeOrdersByWhatABoxShouldBeNear(t *testing.T) {
	nodes := []node{{wave: 0}, {wave: 0}, {wave: 0}, {wave: 1, near: []int{2}}, {wave: 1, near: []int{0}}, {wave: 1, near: []int{0, 2}}}
	l := arrange(nodes)
	if !(l.boxes[4].Y < l.boxes[5].Y && l.boxes[5].Y < l.boxes[3].Y) {
		t.Errorf("%+v", l.boxes)
	}
	for i, of := range map[int]int{3: 2, 4: 0, 5: 1} {
		if l.boxes[i].Y != l.boxes[of].Y {
			t.Errorf("box %d is at %d and not beside %d, at %d", i, l.boxes[i].Y, of, l.boxes[of].Y)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name      string
		wanted    []float64
		low, high float64
		want      []float64
	}{
		{"room enough", []float64{0, 2, 5}, 0, 9, []float64{0, 2, 5}},
		{"a knot goes both ways", []float64{4, 4, 4}, 0, 9, []float64{3, 4, 5}},
		{"knots that meet move as one", []float64{3, 3, 4, 4}, 0, 9, []float64{2, 3, 4, 5}},
		{"not above the top", []float64{0, 0, 0}, 0, 9, []float64{0, 1, 2}},
		{"not below the bottom", []float64{9, 9}, 0, 8, []float64{8, 9}},
		{"nothing", nil, 0, 9, []float64{}},
	} {
		if got := spread(c.wanted, c.low, c.high); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v becomes %v, want %v", c.name, c.wanted, got, c.want)
		}
	}
}

// TestArrangeGrowsWithTheGraph: a hundred times the tiers may not take ten thousand times as long.
func TestArrangeGrowsWithTheGraph(t *testing.T) {
	took := func(n int) time.Duration {
		nodes := make([]node, n)
		for i := range nodes {
			nodes[i] = node{wave: i * 20 / n, width: 100}
			if nodes[i].wave > 0 {
				nodes[i].near = []int{(i * 7) % (n / 20), (i * 3) % (n / 20)}
			}
		}
		best := time.Hour
		for range 5 {
			start := time.Now()
			arrange(nodes)
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := took(1_000), took(100_000)
	t.Logf("1,000 tiers: %s, 100,000: %s", small, large)
	if large > 2000*small {
		t.Errorf("1,000 tiers take %s, 100,000 take %s", small, large)
	}
}
