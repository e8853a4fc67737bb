package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Parallel calls do for 0 to n-1 at the same time, and returns all errors.
func Parallel(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Share has a number of workers call do for 0 to n-1. After the first error no worker
// goes on.
func Share(ctx context.Context, n, workers int, do func(i int) error) error {
	var next atomic.Int64
	return errors.Join(ctx.Err(), Parallel(workers, func(int) error {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			if err := do(i); err != nil {
				next.Store(int64(n))
				return err
			}
		}
		return nil
	}))
}

// Times are measured durations.
type Times []time.Duration

// At returns the value that the share p of all times, which are sorted, does not exceed.
func (t Times) At(p float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)-1, int(p*float64(len(t))))]
}

// Sorted returns all times of some workers.
func Sorted(of ...Times) Times {
	all := slices.Concat(of...)
	slices.Sort(all)
	return all
}

// Short formats a duration for a table.
func Short(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// Median returns the middle one by rate.
func Median[T any](all []T, rate func(T) float64) T {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b T) int { return int(rate(a) - rate(b)) })
	return all[len(all)/2]
}

// Prose returns lines of text, of about size bytes.
func Prose(size int, end string) string {
	const words = "the quick brown fox jumps over a lazy dog while no one at all is looking "
	var b strings.Builder
	for line := 0; b.Len() < size; line++ {
		n := line % len(words)
		fmt.Fprint(&b, strings.TrimSpace(words[n:]+words[:n]), end)
	}
	return b.String()
}

// Ingested is the median round of a server, as the command ingest writes it and peers
// reads it.
type Ingested struct {
	Server      string        `json:"server"`
	Connections int           `json:"connections"`
	Bytes       int           `json:"bytes"`
	Rate        float64       `json:"messages_a_second"`
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
}
