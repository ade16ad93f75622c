package report

import (
	"cmp"
	"math"
	"slices"
)

// The measures of the picture, in pixels.
const (
	boxHeight = 22
	rowHeight = 28 // from one box to the next below
	columnGap = 18 // between the columns of one wave
	bandGap   = 72 // between waves: room for the edges
	bandInset = 10 // around the boxes of a wave
	headRoom  = 34 // above the boxes: the name of the wave
)

// node is a tier as the layout sees it: its wave, the width of its box, and the nodes of earlier waves
// that should lie near it.
type node struct {
	wave, width int
	near        []int
}

// rectangle is a place in the picture.
type rectangle struct{ X, Y, Width, Height int }

// middle is where edges meet the side of a box.
func (r rectangle) middle() int { return r.Y + r.Height/2 }

func (r rectangle) right() int { return r.X + r.Width }

// band is the place of a wave.
type band struct {
	rectangle
	Wave, Tiers int
}

// layout places boxes, in the order of the nodes, and the bands of the waves behind them.
type layout struct {
	boxes         []rectangle
	bands         []band
	width, height int
}

// arrange lays waves out from left to right. Within a wave, boxes are ordered and placed by the mean
// height of what they should be near: few crossings, and straight edges where there is room. A wave of
// many tiers gets several columns, read line by line, so that the picture stays about as wide as high.
// It takes time proportional to the edges and to sorting the nodes.
func arrange(nodes []node) layout {
	waves := byWave(nodes)
	most := max(48, int(3*math.Sqrt(float64(len(nodes)))))
	columns := make([]int, len(waves))
	rows := 1
	for i, members := range waves {
		columns[i] = max(1, (len(members)+most-1)/most)
		rows = max(rows, lines(len(members), columns[i]))
	}
	l := layout{boxes: make([]rectangle, len(nodes)), height: headRoom + rows*rowHeight + bandInset}
	heights := make([]float64, len(nodes)) // from the middle of the picture, in lines
	for i, members := range waves {
		if len(members) > 0 { // a part of a graph has the waves of the whole
			settle(nodes, members, heights, columns[i], rows)
			l.add(nodes, members, heights, columns[i], rows)
		}
	}
	return l
}

// byWave lists the nodes of every wave, in their own order.
func byWave(nodes []node) [][]int {
	var waves [][]int
	for i, n := range nodes {
		for len(waves) <= n.wave {
			waves = append(waves, nil)
		}
		waves[n.wave] = append(waves[n.wave], i)
	}
	return waves
}

// lines is how many lines n boxes fill.
func lines(n, columns int) int { return (n + columns - 1) / columns }

// settle sorts the members of a wave by the mean height of what they should be near, and finds their
// heights within the given number of rows.
func settle(nodes []node, members []int, heights []float64, columns, rows int) {
	for _, m := range members {
		heights[m] = mean(nodes[m].near, heights)
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(heights[a], heights[b]) })
	wanted := make([]float64, 0, lines(len(members), columns))
	for line := range slices.Chunk(members, columns) {
		wanted = append(wanted, mean(line, heights))
	}
	first := -float64(rows-1) / 2
	for i, h := range spread(wanted, first, first+float64(rows-len(wanted))) {
		for _, m := range members[i*columns : min((i+1)*columns, len(members))] {
			heights[m] = h
		}
	}
}

func mean(of []int, values []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sum := 0.0
	for _, i := range of {
		sum += values[i]
	}
	return sum / float64(len(of))
}

// spread moves sorted values to be at least 1 apart, with the least sum of squared moves (pool adjacent
// violators: values that would overlap are moved as one block). The first is kept between low and high,
// and the others so that as many as there are fit in.
func spread(wanted []float64, low, high float64) []float64 {
	type block struct {
		sum float64
		n   int
	}
	var blocks []block
	for i, v := range wanted {
		b := block{v - float64(i), 1}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum/float64(last.n) < b.sum/float64(b.n) {
				break
			}
			b = block{b.sum + last.sum, b.n + last.n}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	out := make([]float64, 0, len(wanted))
	for _, b := range blocks {
		at := min(max(b.sum/float64(b.n), low), high)
		for range b.n {
			out = append(out, at+float64(len(out)))
		}
	}
	return out
}

// add puts one wave to the right of the others.
func (l *layout) add(nodes []node, members []int, heights []float64, columns, rows int) {
	width := 0
	for _, m := range members {
		width = max(width, nodes[m].width)
	}
	x := 0
	if len(l.bands) > 0 {
		x = l.width + bandGap
	}
	for i, m := range members {
		l.boxes[m] = rectangle{
			X:      x + bandInset + (i%columns)*(width+columnGap),
			Y:      headRoom + int(math.Round((heights[m]+float64(rows-1)/2)*rowHeight)) + (rowHeight-boxHeight)/2,
			Width:  width,
			Height: boxHeight,
		}
	}
	l.bands = append(l.bands, band{
		rectangle: rectangle{X: x, Width: 2*bandInset + columns*(width+columnGap) - columnGap, Height: l.height},
		Wave:      nodes[members[0]].wave, Tiers: len(members),
	})
	l.width = l.bands[len(l.bands)-1].right()
}
