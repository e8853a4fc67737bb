package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func printHead() {
	fmt.Printf("%-20s %6s %9s %10s %10s %10s %14s\n", "", "conns", "a second", "p50", "p99", "max", "CPU each")
}

// print writes a row. The CPU time of the service for each request varies less
// on a machine that has other work than the rate does.
func (r result) print(name string, conns int) {
	n := len(r.times)
	at := func(p float64) string {
		return r.times[min(n-1, int(p*float64(n)))].Round(10 * time.Microsecond).String()
	}
	cpu := "-"
	if r.cpu > 0 {
		cpu = (r.cpu / time.Duration(n)).Round(time.Microsecond).String()
	}
	fmt.Printf("%-20s %6d %9.0f %10s %10s %10s %14s\n", name, conns, float64(n)/r.took.Seconds(), at(0.50), at(0.99), at(1), cpu)
}

// tick is the unit of the times in /proc: USER_HZ, 100 on every Linux that Go
// runs on.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has used, 0 when it is not known.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name
	fields := strings.Fields(rest)
	var ticks int64
	for _, i := range []int{11, 12} { // utime and stime
		if i >= len(fields) {
			return 0
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
