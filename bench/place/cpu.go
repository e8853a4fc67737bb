package place

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

// usage is what /proc/<pid>/stat says of a process.
type usage struct {
	parent      int
	own, reaped time.Duration // by itself, and by its children that have ended
}

// CPUOf is the processor time that a process has used, 0 when it is not known.
func CPUOf(pid int) time.Duration { return usageOf("/proc/" + strconv.Itoa(pid) + "/stat").own }

// CPUOfFamily is the processor time that a process and its children have used,
// those that have ended too, 0 when it is not known.
func CPUOfFamily(pid int) time.Duration {
	u := usageOf("/proc/" + strconv.Itoa(pid) + "/stat")
	sum := u.own + u.reaped
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a right one
	for _, path := range all {
		if child := usageOf(path); child.parent == pid {
			sum += child.own + child.reaped
		}
	}
	return sum
}

func usageOf(path string) usage {
	stat, err := os.ReadFile(path)
	if err != nil {
		return usage{}
	}
	// The name, in parentheses, may hold spaces; the parent is the 2nd field after
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
