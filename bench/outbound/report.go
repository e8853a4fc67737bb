package main

import (
	"fmt"
	"slices"
	"time"
)

// report collects the figures of all rounds.
type report struct {
	targets []target
	all     map[target][][figures]outcome
}

func newReport(targets []target) *report {
	return &report{targets, map[target][][figures]outcome{}}
}

func (*report) head(o options) {
	fmt.Printf("%d messages of %d bytes in each step, %d connections; messages a second, and the processor time of the target for each\n",
		o.messages, o.size, o.conns)
	fmt.Printf("%-24s", "")
	for f := range figures {
		fmt.Printf(" %18s", f)
	}
	fmt.Println()
}

func (r *report) add(t target, out [figures]outcome) {
	r.all[t] = append(r.all[t], out)
	row(t.name(), out)
}

func row(name string, out [figures]outcome) {
	fmt.Printf("%-24s", name)
	for _, o := range out {
		fmt.Printf(" %18s", o)
	}
	fmt.Println()
}

func (o outcome) String() string {
	switch {
	case o.rate == 0:
		return "-"
	case o.cpu == 0:
		return fmt.Sprintf("%.0f", o.rate)
	}
	return fmt.Sprintf("%.0f, %d µs", o.rate, o.cpu/time.Microsecond)
}

// summary prints the median of each figure and how the targets compare.
func (r *report) summary() {
	fmt.Println("medians")
	medians := make([][figures]outcome, len(r.targets))
	for i, t := range r.targets {
		for f := range figures {
			medians[i][f] = median(r.all[t], f)
		}
		row(t.name(), medians[i])
	}
	if len(medians) < 2 {
		return
	}
	fmt.Printf("%-24s", "ratio")
	for f := range figures {
		ratio := "-"
		if peer := medians[1][f].rate; peer > 0 && medians[0][f].rate > 0 {
			ratio = fmt.Sprintf("%.2f", medians[0][f].rate/peer)
		}
		fmt.Printf(" %18s", ratio)
	}
	fmt.Println()
}

func median(rounds [][figures]outcome, f figure) outcome {
	all := make([]outcome, 0, len(rounds))
	for _, r := range rounds {
		all = append(all, r[f])
	}
	slices.SortFunc(all, func(a, b outcome) int { return int(a.rate - b.rate) })
	return all[len(all)/2]
}
