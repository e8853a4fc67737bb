// Package doctor looks at an install as its operator would: at what the DNS says
// of its domains, at the ways that mail comes in and goes out, at the machine, at
// what it stores in, and at whether its settings fit together. Of each it says
// what it saw and what is to be done.
//
// All checks run at the same time, and none may take longer than Config.Timeout:
// one that does has failed, and is left to itself. What nobody can know from here
// is skipped and never taken for a fault. Nothing is changed but for probes in
// the data folder and in the blob storage, which are removed again, and no mail
// is sent. The install may be serving meanwhile or not.
package doctor

import (
	"context"
	"fmt"
	"time"
)

// Status is how a check ended.
type Status string

// The outcomes of a check.
const (
	OK      Status = "ok"
	Warn    Status = "warn"    // mail goes, but not as well as it could, or not for long
	Fail    Status = "fail"    // mail is not received, not sent, or not kept
	Skipped Status = "skipped" // there is nothing to look at, or no way to
)

// Result is what a check found.
type Result struct {
	Check string `json:"check"`
	// Subject is what was looked at: a domain, a folder, a setting.
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	Saw     string `json:"saw"`
	// Do says what to do about it, a step each: a record to publish, a command, a
	// setting.
	Do []string `json:"do"`
}

// Report is what all checks found, in their order.
type Report struct {
	Status    Status    `json:"status"` // the worst of all
	CheckedAt time.Time `json:"checked_at"`
	TookMS    int64     `json:"took_ms"`
	Results   []Result  `json:"results"`
}

// Count is how many results there are of a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, one := range r.Results {
		if one.Status == s {
			n++
		}
	}
	return n
}

// check is one thing to look at. It may have several results, or none.
type check struct {
	name, subject string
	run           func(ctx context.Context) []Result
}

// Timeout is how long a check may take when Config does not say.
const Timeout = 10 * time.Second

// Run looks at everything.
func Run(ctx context.Context, cfg Config) Report {
	cfg.setDefaults()
	start := cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	v := newVisit(ctx, cfg)
	report := Report{Status: OK, CheckedAt: start.UTC().Truncate(time.Millisecond), Results: runAll(ctx, cfg.Timeout, v.checks())}
	v.leave()
	for _, s := range []Status{Warn, Fail} {
		if report.Count(s) > 0 {
			report.Status = s
		}
	}
	report.TookMS = cfg.Now().Sub(start).Milliseconds()
	return report
}

// runAll runs the checks side by side, until ctx ends and not longer: the disk
// and some resolvers do not listen to it.
func runAll(ctx context.Context, limit time.Duration, checks []check) []Result {
	// A check that asks something gives up a little before, and says why.
	asking, cancel := context.WithTimeout(ctx, limit*9/10)
	defer cancel()
	found := make([]chan []Result, len(checks))
	for i, c := range checks {
		found[i] = make(chan []Result, 1)
		go func() { found[i] <- c.run(asking) }()
	}
	var all []Result
	for i, c := range checks {
		select {
		case results := <-found[i]:
			all = append(all, complete(c, results)...)
		case <-ctx.Done():
			select {
			case results := <-found[i]: // it was ready all the same
				all = append(all, complete(c, results)...)
			default:
				all = append(all, Result{
					Check: c.name, Subject: c.subject, Status: Fail, Saw: fmt.Sprintf("no result within %s", limit), Do: []string{},
				})
			}
		}
	}
	return all
}

// complete fills in what a check leaves to be said by its name.
func complete(c check, results []Result) []Result {
	for i := range results {
		r := &results[i]
		if r.Check == "" {
			r.Check = c.name
		}
		if r.Subject == "" {
			r.Subject = c.subject
		}
		if r.Do == nil {
			r.Do = []string{}
		}
	}
	return results
}

func ok(format string, args ...any) Result {
	return Result{Status: OK, Saw: fmt.Sprintf(format, args...)}
}

func warn(format string, args ...any) Result {
	return Result{Status: Warn, Saw: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) Result {
	return Result{Status: Fail, Saw: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Result {
	return Result{Status: Skipped, Saw: fmt.Sprintf(format, args...)}
}

// advise adds a step to what is to be done.
func (r Result) advise(format string, args ...any) Result {
	r.Do = append(r.Do, fmt.Sprintf(format, args...))
	return r
}

// about names another check or subject than that which the result is of.
func (r Result) about(check, subject string) Result {
	r.Check, r.Subject = check, subject
	return r
}

func one(r Result) []Result { return []Result{r} }
