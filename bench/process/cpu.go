// Package process reads what the kernel reports about a process, on Linux.
package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// usage is the processor time in /proc/<pid>/stat.
type usage struct {
	parent      int
	own, reaped time.Duration // of the process, and of its children that have ended
}

// CPU returns the processor time that a process has used, or 0 if it is unknown.
func CPU(pid int) time.Duration { return usageOf(statPath(pid)).own }

// FamilyCPU returns the processor time that a process and its children have used,
// including children that have ended, or 0 if it is unknown.
func FamilyCPU(pid int) time.Duration {
	u := usageOf(statPath(pid))
	sum := u.own + u.reaped
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range all {
		if child := usageOf(path); child.parent == pid {
			sum += child.own + child.reaped
		}
	}
	return sum
}

func statPath(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/stat" }

func usageOf(path string) usage {
	stat, err := os.ReadFile(path)
	if err != nil {
		return usage{}
	}
	// The name, in parentheses, may contain spaces. The parent is the 2nd field after
	// it, and the times of the process and of its children are the 12th to 15th.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return usage{}
	}
	number := func(field string) int {
		n, _ := strconv.Atoi(field) // the kernel writes numbers
		return n
	}
	ticks := func(a, b string) time.Duration { return time.Duration(number(a)+number(b)) * tick }
	return usage{parent: number(fields[1]), own: ticks(fields[11], fields[12]), reaped: ticks(fields[13], fields[14])}
}
