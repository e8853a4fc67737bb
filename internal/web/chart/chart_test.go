package chart_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/web/chart"
)

func days(n int) []time.Time {
	all := make([]time.Time, n)
	for i := range all {
		all[i] = time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC)
	}
	return all
}

func TestBars(t *testing.T) {
	t.Parallel()
	c := chart.Bars(days(3), chart.Series{Name: "delivered", Values: []float64{107, 0, 1}}, chart.Series{Name: "bounced", Values: []float64{5, 0, 0}})
	if diff := cmp.Diff([]string{"200", "100", "0"}, c.Ticks); diff != "" {
		t.Errorf("the axis: %s", diff)
	}
	if diff := cmp.Diff([]string{"Nov 1", "Nov 2", "Nov 3"}, c.Days); diff != "" {
		t.Errorf("the days: %s", diff)
	}
	if got, want := c.Columns[0].Label, "Nov 1 · 107 delivered · 5 bounced"; got != want {
		t.Errorf("the label is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]chart.Part{{N: 0, Y: 56, Height: 64}, {N: 1, Y: 53, Height: 3}}, c.Columns[0].Parts); diff != "" {
		t.Errorf("the first day: %s", diff)
	}
	if n := len(c.Columns[1].Parts); n != 0 {
		t.Errorf("a day without values has %d parts", n)
	}
	if diff := cmp.Diff([]chart.Part{{N: 0, Y: 118, Height: 2}}, c.Columns[2].Parts); diff != "" {
		t.Errorf("a small value cannot be seen: %s", diff)
	}
	if c.Empty || !chart.Bars(days(2), chart.Series{Values: []float64{0, 0}}).Empty {
		t.Error("only the chart without values is empty")
	}
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{0: "2", 2: "2", 3: "4", 5: "10", 11: "20", 41: "100", 101: "200", 9999: "10000"} {
		if got := chart.Bars(days(1), chart.Series{Values: []float64{most}}).Ticks[0]; got != want {
			t.Errorf("the axis for %g ends at %s, want %s", most, got, want)
		}
	}
}

func TestLabelsOfManyDays(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 7, 30, 90} {
		c := chart.Bars(days(n), chart.Series{Values: make([]float64, n)})
		if len(c.Days) != min(n, 4) || n > 0 && c.Days[0] != "Nov 1" || n > 0 && c.Days[len(c.Days)-1] != days(n)[n-1].Format("Jan 2") {
			t.Errorf("%d days have the labels %v", n, c.Days)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	c := chart.Rate(days(5), chart.Series{Name: "bounced", Values: []float64{2.5, 5, none, 0, none}}, 5)
	if diff := cmp.Diff([]string{"10 %", "5 %", "0 %"}, c.Ticks); diff != "" {
		t.Errorf("the axis: %s", diff)
	}
	if c.Limit == nil || *c.Limit != 60 {
		t.Errorf("the limit is at %v, want 60", c.Limit)
	}
	if want := "M4 90H5L15 60M34 120H35"; c.Path != want {
		t.Errorf("the line is %s, want %s", c.Path, want)
	}
	if got := c.Columns[1].Label + c.Columns[2].Label; got != "Nov 2 · 5.00 % bouncedNov 3 · nothing sent" {
		t.Errorf("the labels are %q", got)
	}
	if c := chart.Rate(days(1), chart.Series{Values: []float64{37}}, 5); c.Ticks[0] != "40 %" {
		t.Errorf("the axis for 37 %% ends at %s", c.Ticks[0])
	}
	if c := chart.Rate(days(1), chart.Series{Values: []float64{none}}, 0); !c.Empty || c.Ticks[0] != "100 %" || c.Limit != nil {
		t.Errorf("without values and limit: %+v", c)
	}
}
