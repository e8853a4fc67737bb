package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/postroom/postroom/bench/harness"
)

func printHead() {
	fmt.Printf("%d connections, %d bytes, pipelining %t, rounds of %s\n", *conns, int(size), *pipeline, *duration)
	fmt.Printf("%-10s %9s %9s %10s %10s %10s %17s %17s\n", "", "messages", "messages/s", "p50", "p99", "max", "CPU here", "CPU of the server")
}

func (r result) print(name string) {
	fmt.Printf("%-10s %9d %9.0f %10s %10s %10s %17s %17s\n", name, len(r.times), r.rate(),
		harness.Short(r.times.At(0.5)), harness.Short(r.times.At(0.99)), harness.Short(r.times.At(1)), r.share(r.generator), r.share(r.cpu))
}

// share formats CPU time as cores in use and as time per message, which varies less than
// the rate on a busy machine.
func (r result) share(cores float64) string {
	if cores == 0 || len(r.times) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.0fµs/message", cores, cores/r.rate()*1e6)
}

// summarize prints the round with the median rate for each target, and how the first
// compares with the others. It adds the medians to the file of -json.
func summarize(targets []*target) (err error) {
	fmt.Println("median")
	median := func(t *target) result { return harness.Median(t.results, result.rate) }
	for _, t := range targets {
		median(t).print(t.name)
	}
	for _, t := range targets[1:] {
		fmt.Printf("ratio to %s %.2f\n", t.name, median(targets[0]).rate()/median(t).rate())
	}
	if *jsonFile == "" {
		return nil
	}
	f, err := os.OpenFile(*jsonFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, t := range targets {
		r := median(t)
		err = errors.Join(err, json.NewEncoder(f).Encode(harness.Ingested{
			Server: t.name, Connections: *conns, Bytes: int(size), Rate: r.rate(), P50: r.times.At(0.5), P99: r.times.At(0.99),
		}))
	}
	return err
}
