package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// printSummary prints the round with the median rate for each target, and how the first
// compares with the others.
func printSummary(targets []*target) {
	fmt.Println("median")
	ours := targets[0].median().rate()
	for _, t := range targets {
		printRow(t.name, t.median())
	}
	for _, t := range targets[1:] {
		fmt.Printf("ratio to %s %.2f\n", t.name, ours/t.median().rate())
	}
}

// median returns the round with the median rate.
func (t *target) median() result {
	slices.SortFunc(t.results, func(a, b result) int { return int(a.rate() - b.rate()) })
	return t.results[len(t.results)/2]
}

// median is the median round of a server, as it is written to a file.
type median struct {
	Server      string        `json:"server"`
	Connections int           `json:"connections"`
	Bytes       int           `json:"bytes"`
	Rate        float64       `json:"messages_a_second"`
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
}

// writeMedians adds the medians to the file of the option -json.
func writeMedians(o options, targets []*target) error {
	if o.json == "" {
		return nil
	}
	f, err := os.OpenFile(o.json, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for _, t := range targets {
		r := t.median()
		err = errors.Join(err, e.Encode(median{t.name, o.conns, int(o.size), r.rate(), r.p50, r.p99}))
	}
	return errors.Join(err, f.Close())
}
