package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func printHead(o options) {
	fmt.Printf("%d connections, %d bytes, pipelining %t, rounds of %s\n", o.conns, int(o.size), o.pipeline, o.duration)
	fmt.Printf("%-10s %9s %9s %10s %10s %10s %17s %17s\n", "", "mails", "mails/s", "p50", "p99", "max", "CPU here", "CPU of the server")
}

func printRow(name string, r result) {
	fmt.Printf("%-10s %9d %9.0f %10s %10s %10s %17s %17s\n", name, r.mails, r.rate(),
		short(r.p50), short(r.p99), short(r.max), r.share(r.generator), r.share(r.cpu))
}

// share tells CPU time as cores in use and as time for each mail, which a busy
// machine changes less than the rate.
func (r result) share(cores float64) string {
	if cores == 0 || r.mails == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f, %.0fµs/mail", cores, cores/r.rate()*1e6)
}

func short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// printSummary prints the round of the median rate for each target, and how
// they compare.
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

// tick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time that a process has used, 0 when it is not known.
func cpuOf(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold spaces; utime and stime are the 12th
	// and 13th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

func ownCPU() time.Duration { return cpuOf(os.Getpid()) }
