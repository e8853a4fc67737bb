package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc (USER_HZ, 100 a second everywhere).
const tick = 10 * time.Millisecond

// cpuTime is how long the process has run on a processor so far, by Linux's
// /proc/<pid>/stat. Of a machine that has other work it tells more than the
// clock does.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold spaces; utime and stime are the 12th and
	// 13th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is not as it should be", pid)
	}
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// cpuMeter says what CPU time the service took. Without a pid it says nothing.
type cpuMeter struct {
	pid    int
	before time.Duration
}

func (m *cpuMeter) start() (err error) {
	if m.pid != 0 {
		m.before, err = cpuTime(m.pid)
	}
	return err
}

func (m *cpuMeter) print(w io.Writer, mails int) error {
	if m.pid == 0 {
		return nil
	}
	now, err := cpuTime(m.pid)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "CPU of the service, for a mail and its wait: %d µs\n", (now-m.before).Microseconds()/int64(mails))
	return err
}
