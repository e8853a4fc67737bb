package main

import (
	"fmt"
	"time"
)

func printHead() {
	fmt.Printf("%-22s %6s %9s %10s %10s %10s %14s\n", "", "conns", "a second", "p50", "p99", "max", "CPU each")
}

// print writes a row. On a machine with other work, the CPU time of the service for each
// request varies less than the rate.
func (r result) print(name string, conns int) {
	n := len(r.times)
	at := func(p float64) string {
		return r.times[min(n-1, int(p*float64(n)))].Round(10 * time.Microsecond).String()
	}
	cpu := "-"
	if r.cpu > 0 {
		cpu = (r.cpu / time.Duration(n)).Round(time.Microsecond).String()
	}
	fmt.Printf("%-22s %6d %9.0f %10s %10s %10s %14s\n", name, conns, float64(n)/r.took.Seconds(), at(0.50), at(0.99), at(1), cpu)
}
