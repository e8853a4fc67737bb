package faults_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// logPath returns the path of the program's log. It is outside the data folder, which
// may be full.
func (in *installation) logPath() string { return filepath.Join(filepath.Dir(in.dir), "log") }

// logTail returns the end of the program's log.
func (in *installation) logTail() string {
	const most = 2000
	b, err := os.ReadFile(in.logPath())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

// never lists log texts that no fault excuses.
var never = []string{"panic", "database is locked", "fatal error", "goroutine "}

// reported matches a log line that an operator may act on.
var reported = regexp.MustCompile(`level=(WARN|ERROR) msg=("[^"]*"|\S+)( .*)?`)

// checkLog fails the test for lines that must not be in the log, and shows the other
// warnings and errors, each kind once.
func (in *installation) checkLog() {
	b, err := os.ReadFile(in.logPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		in.t.Error(err)
	}
	counts, first := map[string]int{}, map[string]string{}
	for line := range strings.Lines(string(b)) {
		if slices.ContainsFunc(never, func(s string) bool { return strings.Contains(line, s) }) {
			in.t.Errorf("the log says: %s", line)
		}
		if found := reported.FindStringSubmatch(line); found != nil {
			what := found[1] + " " + found[2]
			if counts[what]++; counts[what] == 1 {
				first[what] = found[3]
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		in.t.Logf("%d times in the log: %s%s", counts[what], what, first[what])
	}
	if in.t.Failed() {
		in.t.Logf("the end of the log:\n%s", in.logTail())
	}
}
