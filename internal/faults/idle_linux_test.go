package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// mostStart is how much processor time a start may take, except for the first one.
	// mostIdle is how much memory of its own the service may have when it is idle: heap, stacks and
	// what SQLite allocates. Pages of the program's file are not part of it. The
	// system drops those when it needs memory, and they grow with the program.
	mostStart = 200 * time.Millisecond
	mostIdle  = 20 << 20
	starts    = 3
)

// TestStartsAtOnceAndIdlesSmall starts the service several times. It checks processor time:
// the time until the service is ready, which it logs, depends on the machine's other work.
// It does not run beside other tests, which would share the processor's caches.
func TestStartsAtOnceAndIdlesSmall(t *testing.T) { //nolint:paralleltest // as above
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.start() // the first start generates keys
		in.stop()
		var ran, took []time.Duration
		var resident, own []int
		for range starts {
			n := in.start()
			pid := n.cmd.Process.Pid
			took = append(took, time.Since(n.began))
			ran = append(ran, processorTime(t, pid))
			resident = append(resident, settled(t, pid))
			own = append(own, statusBytes(t, pid, "RssAnon:"))
			in.stop()
		}
		slices.Sort(ran)
		slices.Sort(took)
		slices.Sort(resident)
		slices.Sort(own)
		t.Logf("ready after %v to %v, with %v to %v of processor time; %.1f to %.1f MiB of its own, %.1f to %.1f MiB resident with the program",
			took[0].Round(time.Millisecond), took[starts-1].Round(time.Millisecond), ran[0].Round(time.Millisecond), ran[starts-1].Round(time.Millisecond),
			inMiB(own[0]), inMiB(own[starts-1]), inMiB(resident[0]), inMiB(resident[starts-1]))
		if ran[0] > mostStart {
			t.Errorf("the cheapest start took %v of processor time, want at most %v", ran[0], mostStart)
		}
		if own[0] > mostIdle {
			t.Errorf("at least %.1f MiB are the service's own, want at most %d", inMiB(own[0]), mostIdle>>20)
		}
	})
}

func inMiB(bytes int) float64 { return float64(bytes) / (1 << 20) }

// processorTime returns how long the threads of a process have run.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all time.Duration
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread is gone
		}
		ran, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all += time.Duration(ns)
	}
	return all
}

// settled returns the resident memory of a process, in bytes, once it is stable.
func settled(t *testing.T, pid int) int {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	last, same := 0, 0
	for range 50 {
		<-again.C
		is := residentBytes(t, pid)
		if same++; is-last > 64<<10 || last-is > 64<<10 {
			same = 0
		}
		if last = is; same == 3 {
			break
		}
	}
	return last
}

func residentBytes(t *testing.T, pid int) int {
	t.Helper()
	return statusBytes(t, pid, "VmRSS:")
}

// statusBytes returns a figure of /proc/<pid>/status, in bytes.
func statusBytes(t *testing.T, pid int, name string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), name)
	text, _, _ := strings.Cut(rest, " kB")
	kib, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
