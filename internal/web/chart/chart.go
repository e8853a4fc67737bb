// Package chart draws charts of days as SVG, for pages without scripts.
//
// The page scales a chart to the available width, so it has no text: labels of the axes
// stand beside it in HTML. Each day has a description of its values.
package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size of a chart in SVG units.
const (
	height   = 120
	dayWidth = 10
)

// Series are values that have a name, one for each day. NaN means that a day has none.
type Series struct {
	Name   string
	Values []float64
}

// Chart is a chart with one column for each day.
type Chart struct {
	Width, Height int
	// Ticks are the labels of the horizontal lines, from the top to 0, and Lines are
	// their heights in the same order.
	Ticks []string
	Lines []int
	// Days are labels below the chart, evenly spaced from the first to the last day.
	Days    []string
	Columns []Column
	// Path is the line of a chart of rates, and Limit is the height of a line that the
	// rate should stay below; nil: none.
	Path  string
	Limit *int
	Empty bool // there is no value above zero
}

// Column is a day.
type Column struct {
	X, Width int
	Label    string // the day and its values, with their names
	Parts    []Part // stacked
}

// Part is the n-th value of a day in a chart of bars.
type Part struct{ N, Y, Height int }

// Bars returns the rectangles of all values. A template would take ten times as long.
func (c Chart) Bars() template.HTML {
	var b strings.Builder
	for _, column := range c.Columns {
		for _, p := range column.Parts {
			fmt.Fprintf(&b, `<rect class="part%d" x="%d" y="%d" width="%d" height="%d"/>`, p.N, column.X, p.Y, column.Width, p.Height)
		}
	}
	return template.HTML(b.String()) //nolint:gosec // numbers
}

// Hits returns a rectangle over each day that shows its label.
func (c Chart) Hits() template.HTML {
	var b strings.Builder
	for _, column := range c.Columns {
		fmt.Fprintf(&b, `<rect class="hit" x="%d" y="0" width="%d" height="%d"><title>%s</title></rect>`,
			column.X, column.Width, c.Height, template.HTMLEscapeString(column.Label))
	}
	return template.HTML(b.String()) //nolint:gosec // numbers, and escaped labels
}

// Bars draws the values of each day as a stacked bar. Values above zero are always
// visible.
func Bars(days []time.Time, series ...Series) Chart {
	most := 0.0
	for i := range days {
		most = max(most, sumAt(series, i))
	}
	c := newChart(days, top(most), func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) })
	c.Empty = most == 0
	for i, day := range days {
		column := Column{X: i*dayWidth + 1, Width: dayWidth - 2, Label: day.Format("Jan 2")}
		y := height
		for n, s := range series {
			v := s.Values[i]
			column.Label += fmt.Sprintf(" · %g %s", v, s.Name)
			if v == 0 {
				continue
			}
			h := max(2, int(v*height/top(most)))
			y = max(0, y-h)
			column.Parts = append(column.Parts, Part{N: n, Y: y, Height: h})
		}
		c.Columns = append(c.Columns, column)
	}
	return c
}

// Rate draws a rate in percent as a line. limit is drawn as a line too, unless it is 0.
func Rate(days []time.Time, rate Series, limit float64) Chart {
	most := 2 * limit
	if limit == 0 {
		most = 100
	}
	c := Chart{Empty: true}
	for _, v := range rate.Values {
		if !math.IsNaN(v) {
			most, c.Empty = max(most, v), false
		}
	}
	if most > 2*limit && limit != 0 {
		most = top(most)
	}
	empty := c.Empty
	c = newChart(days, most, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " %" })
	c.Empty = empty
	at := func(v float64) int { return height - int(math.Round(v*height/most)) }
	if limit != 0 {
		y := at(limit)
		c.Limit = &y
	}
	var path strings.Builder
	joined := false
	for i, day := range days {
		v := rate.Values[i]
		column := Column{X: i * dayWidth, Width: dayWidth, Label: day.Format("Jan 2") + " · nothing sent"}
		switch x := i*dayWidth + dayWidth/2; {
		case math.IsNaN(v):
		case joined:
			fmt.Fprintf(&path, "L%d %d", x, at(v))
		default:
			fmt.Fprintf(&path, "M%d %dH%d", x-1, at(v), x) // a day without neighbours shows as well
		}
		if joined = !math.IsNaN(v); joined {
			column.Label = fmt.Sprintf("%s · %.2f %% %s", day.Format("Jan 2"), v, rate.Name)
		}
		c.Columns = append(c.Columns, column)
	}
	c.Path = path.String()
	return c
}

// newChart returns a chart with its axes. The vertical one ends at most.
func newChart(days []time.Time, most float64, format func(float64) string) Chart {
	c := Chart{Width: max(1, len(days)) * dayWidth, Height: height, Lines: []int{0, height / 2, height}}
	for _, v := range []float64{most, most / 2, 0} {
		c.Ticks = append(c.Ticks, format(v))
	}
	for _, i := range spread(len(days)) {
		c.Days = append(c.Days, days[i].Format("Jan 2"))
	}
	return c
}

// mostLabels is how many days have a label below a chart.
const mostLabels = 4

// spread returns up to mostLabels of n places, evenly spaced, with the first and the
// last one.
func spread(n int) []int {
	labels := min(n, mostLabels)
	if labels < 2 {
		return slices.Repeat([]int{0}, labels)
	}
	places := make([]int, labels)
	for i := range places {
		places[i] = int(math.Round(float64(i*(n-1)) / float64(labels-1)))
	}
	return places
}

// top returns the end of an axis for values up to most: a round number whose half is
// one too.
func top(most float64) float64 {
	for unit := 2.0; ; unit *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if end := unit * times; end >= most {
				return end
			}
		}
	}
}

func sumAt(series []Series, i int) (all float64) {
	for _, s := range series {
		all += s.Values[i]
	}
	return all
}
