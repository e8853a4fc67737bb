// Command gotest runs go test, and prints at the end which packages and tests took longest:
//
//	gotest [flags of go test] -- packages
//
// It prints the output of what fails, or of everything with -v. When the variable CI is set,
// a failed test runs once more, alone. If it passes then, it is reported as flaky and does
// not fail the run. A data race, a panic, a timeout, a failed build or more than three
// failed tests fail the run at once.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const (
	module = "github.com/postroom/postroom/"

	// repeats is how many failed tests run once more at most.
	repeats = 3
	// listed is how many packages and tests the summary lists.
	listed = 10
)

func main() {
	flags, packages, ok := cut(os.Args[1:])
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: gotest [flags of go test] -- packages")
		os.Exit(2)
	}
	code, err := run(goTest, flags, packages, os.Getenv("CI") != "", os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = 1
	}
	os.Exit(code)
}

func cut(args []string) (flags, packages []string, ok bool) {
	i := slices.Index(args, "--")
	if i < 0 {
		return nil, nil, false
	}
	return args[:i], args[i+1:], true
}

// runner runs go test with arguments, passes each line of its output to take, and returns
// its exit code.
type runner func(take func(line []byte), args ...string) (code int, err error)

// run returns the exit code for the tests of the packages.
func run(test runner, flags, packages []string, ci bool, w io.Writer) (int, error) {
	r := &report{out: w, verbose: slices.Contains(flags, "-v"), tests: map[string]*result{}}
	defer func() { r.summarize() }()
	code, err := test(r.line, slices.Concat([]string{"-json"}, flags, packages)...)
	if err != nil || code == 0 || !ci || !r.repeatable() {
		return code, err
	}
	for _, f := range r.failures {
		fmt.Fprintln(w, "=== once more:", f.pkg, strings.Join(f.tests, " "))
		again := slices.Concat(flags, []string{"-count=1", "-v", "-run", "^(" + strings.Join(f.tests, "|") + ")$", f.pkg})
		if code, err := test(func(line []byte) { r.print(string(line)) }, again...); err != nil || code != 0 {
			return code, err
		}
		for _, name := range f.tests {
			r.flaky = append(r.flaky, f.pkg+" "+name)
		}
	}
	return 0, nil
}

func goTest(take func(line []byte), args ...string) (int, error) {
	cmd := exec.Command("go", append([]string{"test"}, args...)...) //nolint:noctx // signals go to the whole process group
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for lines := bufio.NewReader(out); err == nil; {
		var line []byte
		if line, err = lines.ReadBytes('\n'); len(line) > 0 {
			take(line)
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil // -1 after a signal
	}
	return 0, err
}

// event is a line of go test -json, as `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// result is what is known of a test at the top level of a package, or of a package.
type result struct {
	pkg, test string
	seconds   float64
	output    []string // of the test and its subtests
}

// failure is a package with its failed tests.
type failure struct {
	pkg   string
	tests []string
}

// report collects the results of a run.
type report struct {
	out     io.Writer
	verbose bool

	tests    map[string]*result // those that run, by package and name
	done     []*result
	failures []failure
	flaky    []string
	fatal    bool // something failed that is not a failed test
}

// fatal matches what does not become right by a repetition.
var fatal = regexp.MustCompile(`^\s*WARNING: DATA RACE|^panic: |^fatal error: `)

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = r.out.Write(line) // not of a test
		return
	}
	if e.Package == "" { // of a build
		r.fatal = r.fatal || e.Action == "build-fail"
		r.print(e.Output)
		return
	}
	name, _, sub := strings.Cut(e.Test, "/")
	key := e.Package + " " + name
	if r.tests[key] == nil {
		r.tests[key] = &result{pkg: e.Package, test: name}
	}
	t := r.tests[key]
	switch e.Action {
	case "output":
		r.output(t, e.Output)
	case "pass", "fail", "skip":
		// A test does not count the time of its parallel subtests.
		t.seconds = max(t.seconds, e.Elapsed)
		if !sub {
			r.end(t, e.Action == "fail")
			delete(r.tests, key)
		}
	}
}

func (r *report) print(text string) { _, _ = io.WriteString(r.out, text) }

func (r *report) output(t *result, text string) {
	r.fatal = r.fatal || fatal.MatchString(text)
	switch {
	case r.verbose:
		r.print(text)
	case t.test != "" || !strings.HasPrefix(text, "ok ") && !strings.HasPrefix(text, "FAIL\t"):
		t.output = append(t.output, text)
	default:
		r.print(text) // the result of a package
	}
}

func (r *report) end(t *result, failed bool) {
	if failed && !r.verbose {
		if t.test == "" { // a panic or a timeout ended the tests that still ran
			for _, other := range r.tests {
				if other.pkg == t.pkg && other.test != "" {
					r.print(strings.Join(other.output, ""))
				}
			}
		}
		r.print(strings.Join(t.output, ""))
	}
	t.output = nil
	r.done = append(r.done, t)
	if !failed {
		return
	}
	i := slices.IndexFunc(r.failures, func(f failure) bool { return f.pkg == t.pkg })
	if i < 0 {
		i = len(r.failures)
		r.failures = append(r.failures, failure{pkg: t.pkg})
	}
	if t.test != "" {
		r.failures[i].tests = append(r.failures[i].tests, t.test)
	}
}

// repeatable reports whether only a few tests failed.
func (r *report) repeatable() bool {
	n := 0
	for _, f := range r.failures {
		if len(f.tests) == 0 {
			return false // for example in TestMain
		}
		n += len(f.tests)
	}
	return !r.fatal && 0 < n && n <= repeats
}

func (r *report) summarize() {
	slices.SortStableFunc(r.done, func(a, b *result) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, what := range []string{"packages", "tests"} {
		fmt.Fprintf(r.out, "=== the slowest %s, in seconds\n", what)
		n := 0
		for _, t := range r.done {
			if (t.test == "") == (what == "packages") && t.seconds > 0 && n < listed {
				fmt.Fprintf(r.out, "%8.1f  %s\n", t.seconds, strings.TrimSpace(strings.TrimPrefix(t.pkg, module)+" "+t.test))
				n++
			}
		}
	}
	for _, name := range r.flaky {
		fmt.Fprintln(r.out, "=== FLAKY:", name, "failed, and passed alone")
	}
}
