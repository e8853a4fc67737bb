// Package doctor checks an installation: DNS records, ports, certificates, disk, clock and
// settings. Each result says what was found and what to do.
//
// All checks run concurrently, and none may take longer than Config.Timeout: a
// check that does is reported as failed and abandoned. What cannot be determined
// from this machine is skipped, not failed. The doctor changes nothing except for a
// file in each directory that it checks, which it removes, and sends no messages.
// The installation may be running or stopped.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Status is the outcome of a check.
type Status string

// Outcomes of a check.
const (
	OK      Status = "ok"
	Warn    Status = "warn"    // mail works, but with limitations, or will stop working soon
	Fail    Status = "fail"    // mail is not received, not sent, or not stored
	Skipped Status = "skipped" // not applicable, or impossible to check
)

// Result is the finding of a check.
type Result struct {
	Check string `json:"check"`
	// Subject is the object of the check: a domain, a directory, a setting.
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	Saw     string `json:"saw"`
	// Do lists the steps to fix it, such as a record to publish, a command or a
	// setting.
	Do []string `json:"do"`
}

// Report holds the results of all checks, in order.
type Report struct {
	Status    Status    `json:"status"` // the worst of all results
	CheckedAt time.Time `json:"checked_at"`
	TookMS    int64     `json:"took_ms"`
	Results   []Result  `json:"results"`
}

// Count returns the number of results with a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, one := range r.Results {
		if one.Status == s {
			n++
		}
	}
	return n
}

// check is one check. It may have several results, or none.
type check struct {
	name, subject string
	run           func(ctx context.Context) []Result
}

// Timeout is the default time limit of a check.
const Timeout = 10 * time.Second

// Run runs all checks and returns their results.
func Run(ctx context.Context, cfg Config) Report {
	cfg.setDefaults()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	// A check's own timeout is a little shorter, so that it can report the cause.
	asking, stop := context.WithTimeout(ctx, cfg.Timeout*9/10)
	defer stop()
	v := newVisit(asking, cfg)
	checks := v.checks()
	found := make([]chan []Result, len(checks))
	for i, c := range checks {
		found[i] = make(chan []Result, 1)
		go func() { found[i] <- c.run(asking) }()
	}
	report := Report{Status: OK, CheckedAt: start.UTC().Truncate(time.Millisecond)}
	for i, c := range checks {
		for _, r := range await(ctx, found[i], cfg.Timeout) {
			r.Check, r.Subject = cmp.Or(r.Check, c.name), cmp.Or(r.Subject, c.subject)
			if r.Do == nil {
				r.Do = []string{}
			}
			report.Results = append(report.Results, r)
		}
	}
	for _, s := range []Status{Warn, Fail} {
		if report.Count(s) > 0 {
			report.Status = s
		}
	}
	report.TookMS = time.Since(start).Milliseconds()
	return report
}

// await returns the results of a check when they are there or ctx ends, because the disk
// and some resolvers ignore ctx.
func await(ctx context.Context, found <-chan []Result, limit time.Duration) []Result {
	select {
	case results := <-found:
		return results
	case <-ctx.Done():
	}
	select {
	case results := <-found: // finished before ctx ended
		return results
	default:
		return one(fail("no result within %s", limit))
	}
}

// concurrently runs a check for each of all, and returns the results in their order.
func concurrently[T any](all []T, check func(T) []Result) []Result {
	found := make([][]Result, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { found[i] = check(one) })
	}
	running.Wait()
	return slices.Concat(found...)
}

func result(s Status, format string, args []any) Result {
	return Result{Status: s, Saw: fmt.Sprintf(format, args...)}
}

func ok(format string, args ...any) Result      { return result(OK, format, args) }
func warn(format string, args ...any) Result    { return result(Warn, format, args) }
func fail(format string, args ...any) Result    { return result(Fail, format, args) }
func skipped(format string, args ...any) Result { return result(Skipped, format, args) }

func (r Result) advise(format string, args ...any) Result {
	r.Do = append(r.Do, fmt.Sprintf(format, args...))
	return r
}

func (r Result) about(check, subject string) Result {
	r.Check, r.Subject = check, subject
	return r
}

func one(r Result) []Result { return []Result{r} }

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the report as text: one line per result, followed by its
// steps.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, one := range r.Results {
		mark := string(one.Status)
		if one.Status == Fail || one.Status == Warn {
			mark = strings.ToUpper(mark)
		}
		text := one.Saw
		if one.Subject != "" && !strings.Contains(text, one.Subject) {
			text = one.Subject + ": " + text
		}
		fmt.Fprintf(&b, "%-8s %-12s %s\n", mark, one.Check, text)
		for _, step := range one.Do {
			fmt.Fprintf(&b, "%21s -> %s\n", "", step)
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d warned (WARN), %d failed (FAIL), %d skipped\n", r.Count(OK), r.Count(Warn), r.Count(Fail), r.Count(Skipped))
	_, err := io.WriteString(w, b.String())
	return err
}
