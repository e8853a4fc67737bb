package chart_test

import (
	"math"
	"strings"
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
	want := `<rect class="part0" x="1" y="56" width="8" height="64"/><rect class="part1" x="1" y="53" width="8" height="3"/>` +
		`<rect class="part0" x="21" y="118" width="8" height="2"/>` // a small value can be seen
	if diff := cmp.Diff(want, string(c.Bars)); diff != "" {
		t.Errorf("the bars: %s", diff)
	}
	if !strings.Contains(string(c.Hits), "<title>Nov 1 · 107 delivered · 5 bounced</title>") {
		t.Errorf("the labels are %s", c.Hits)
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
		if len(c.Days) != min(n, 4) || n > 0 && c.Days[0] != "Nov 1" || n > 1 && c.Days[len(c.Days)-1] != days(n)[n-1].Format("Jan 2") {
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
	if c.Limit != 60 {
		t.Errorf("the limit is at %d, want 60", c.Limit)
	}
	for _, label := range []string{"Nov 2 · 5 % bounced", "Nov 3 · nothing sent", "Nov 4 · 0 % bounced"} {
		if !strings.Contains(string(c.Hits), label) {
			t.Errorf("the labels are %s", c.Hits)
		}
	}
	if c := chart.Rate(days(1), chart.Series{Values: []float64{37}}, 5); c.Ticks[0] != "40 %" {
		t.Errorf("the axis for 37 %% ends at %s", c.Ticks[0])
	}
	if c := chart.Rate(days(1), chart.Series{Values: []float64{none}}, 0); !c.Empty || c.Ticks[0] != "100 %" || c.Limit != 0 {
		t.Errorf("without values and limit: %+v", c)
	}
}
