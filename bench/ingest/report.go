package main

import (
	"fmt"
	"slices"
	"time"
)

func printHead(o options) {
	fmt.Printf("%d connections, %d bytes, pipelining %t, rounds of %s\n", o.conns, int(o.size), o.pipeline, o.duration)
	fmt.Printf("%-10s %9s %9s %10s %10s %10s %17s %17s\n", "", "messages", "messages/s", "p50", "p99", "max", "CPU here", "CPU of the server")
}

func printRow(name string, r result) {
	fmt.Printf("%-10s %9d %9.0f %10s %10s %10s %17s %17s\n", name, r.messages, r.rate(),
		short(r.p50), short(r.p99), short(r.max), r.share(r.generator), r.share(r.cpu))
}

// share formats CPU time as cores in use and as time per message, which varies less than
// the rate on a busy machine.
func (r result) share(cores float64) string {
	if cores == 0 || r.messages == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.0fµs/message", cores, cores/r.rate()*1e6)
}

func short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// printSummary prints the round with the median rate for each target, and how they
// compare.
func printSummary(targets []*target) {
	fmt.Println("median")
	var rates []float64
	for _, t := range targets {
		slices.SortFunc(t.results, func(a, b result) int { return int(a.rate() - b.rate()) })
		r := t.results[len(t.results)/2]
		printRow(t.name, r)
		rates = append(rates, r.rate())
	}
	if len(rates) == 2 {
		fmt.Printf("ratio %.2f\n", rates[0]/rates[1])
	}
}
