package harness

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// CPU returns the processor time that a process has used, or 0 if it is unknown.
func CPU(pid int) time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name, in parentheses, may contain spaces. The times in the program and in the
	// kernel are the 12th and 13th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if err != nil || len(fields) < 13 {
		return 0
	}
	program, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
	kernel, _ := strconv.Atoi(fields[12])
	return time.Duration(program+kernel) * tick
}

// Memory returns the resident memory of a process in bytes, or 0 if it is unknown.
func Memory(pid int) int64 {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(statm))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
	return pages * int64(os.Getpagesize())
}
