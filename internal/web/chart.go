package web

import (
	"fmt"

	"github.com/postroom/postroom/gen"
)

// Size of a chart in SVG units. The page scales it to the available width.
const (
	chartHeight = 120
	barWidth    = 10
)

// chart is a bar chart with one bar per day. A bar stacks one or more counts.
type chart struct {
	Width, Height int
	Most          int // the highest bar
	Bars          []bar
}

type bar struct {
	X, Width int
	Label    string // the day and its counts
	Parts    []barPart
}

// barPart is one count: the n-th, as the style colours it.
type barPart struct{ N, Y, Height int }

// newChart draws the counts of each day, which have these names. Counts above zero
// are always visible.
func newChart(days []gen.StatsDay, names []string, counts func(gen.StatsDay) []int) chart {
	c := chart{Width: max(1, len(days)) * barWidth, Height: chartHeight}
	for _, d := range days {
		c.Most = max(c.Most, sum(counts(d)))
	}
	for i, d := range days {
		b := bar{X: i*barWidth + 1, Width: barWidth - 2, Label: d.Date.Format("Jan 2")}
		y := chartHeight
		for n, count := range counts(d) {
			b.Label += fmt.Sprintf(" · %d %s", count, names[n])
			if count == 0 {
				continue
			}
			h := max(2, count*chartHeight/c.Most)
			y = max(0, y-h)
			b.Parts = append(b.Parts, barPart{N: n, Y: y, Height: h})
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

func sum(ns []int) (all int) {
	for _, n := range ns {
		all += n
	}
	return all
}
