// Package chart draws charts of days as SVG, for pages without scripts.
//
// The page scales a chart to the available width, so it has no text: labels of the axes
// stand beside it in HTML. Each day has a description of its values.
package chart

import (
	"fmt"
	"html/template"
	"math"
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
	Days []string
	// Bars are the rectangles of all values, and Hits a rectangle over each day that shows
	// its values. A template would take ten times as long.
	Bars, Hits template.HTML
	Limit      int  // the height of the line that the values should stay below; 0: none
	Empty      bool // there is no value above zero
}

// Bars draws the values of each day as a stacked bar. Values above zero are always visible.
func Bars(days []time.Time, series ...Series) Chart { return draw(days, "", 0, 0, series) }

// Rate draws a rate in percent, with a line at limit unless that is 0.
func Rate(days []time.Time, rate Series, limit float64) Chart {
	least := 2 * limit
	if limit == 0 {
		least = 100
	}
	return draw(days, " %", least, limit, []Series{rate})
}

// draw draws a chart whose axis ends at least at a value, with the unit of its values.
func draw(days []time.Time, unit string, least, limit float64, series []Series) Chart {
	most, empty := least, true
	for i := range days {
		sum := 0.0
		for _, s := range series {
			if !math.IsNaN(s.Values[i]) {
				sum += s.Values[i]
			}
		}
		most, empty = max(most, sum), empty && sum == 0
	}
	if most > least || most == 0 {
		most = top(most)
	}
	c := Chart{Width: max(1, len(days)) * dayWidth, Height: height, Lines: []int{0, height / 2, height}, Empty: empty}
	if limit > 0 {
		c.Limit = height - int(math.Round(limit*height/most))
	}
	for _, v := range []float64{most, most / 2, 0} {
		c.Ticks = append(c.Ticks, strconv.FormatFloat(v, 'f', -1, 64)+unit)
	}
	labels := min(len(days), mostLabels)
	for i := range labels {
		c.Days = append(c.Days, days[i*(len(days)-1)/max(1, labels-1)].Format("Jan 2"))
	}
	var bars, hits strings.Builder
	for i, day := range days {
		label, y := day.Format("Jan 2"), height
		for n, s := range series {
			v := s.Values[i]
			if math.IsNaN(v) {
				label += " · nothing sent"
				continue
			}
			label += fmt.Sprintf(" · %g%s %s", math.Round(v*100)/100, unit, s.Name)
			if v > 0 {
				high := max(2, int(v*height/most))
				y = max(0, y-high)
				fmt.Fprintf(&bars, `<rect class="part%d" x="%d" y="%d" width="%d" height="%d"/>`, n, i*dayWidth+1, y, dayWidth-2, high)
			}
		}
		fmt.Fprintf(&hits, `<rect class="hit" x="%d" y="0" width="%d" height="%d"><title>%s</title></rect>`,
			i*dayWidth, dayWidth, height, template.HTMLEscapeString(label))
	}
	c.Bars, c.Hits = template.HTML(bars.String()), template.HTML(hits.String()) //nolint:gosec // numbers, and escaped labels
	return c
}

// mostLabels is how many days have a label below a chart.
const mostLabels = 4

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
