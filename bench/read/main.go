// Command read measures how fast messages are read: it fills one account with messages,
// starts the service, and requests pages, single messages and searches over HTTP, on
// one connection and on several. It restarts the service for each step and removes
// everything afterwards.
//
//	go run ./bench/read
//	go run ./internal/testpg/cmd/withpg -- go run ./bench/read -postgres
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// The flags.
var (
	settings = harness.Flags()
	small    = flag.Int("small", 1000, "messages in the small store, for comparison; 0 skips it")
	messages = flag.Int("messages", 100_000, "messages in the store")
	size     = flag.Int("size", 4096, "bytes of a message")
	conns    = flag.Int("c", 8, "connections, besides one")
	duration = flag.Duration("d", 3*time.Second, "length of a measurement")
	only     = flag.String("only", "", "measure only requests with this in their name, such as page")
)

func main() {
	harness.Main("read", func(ctx context.Context) error {
		return settings.With(ctx, func(p *harness.Place) error { return run(ctx, p) })
	})
}

// run fills the store and measures, first with the small store unless it is skipped.
func run(ctx context.Context, p *harness.Place) error {
	f := &filler{place: p}
	for _, n := range []int{*small, *messages} {
		if n == 0 {
			continue
		}
		if err := f.fill(ctx, n); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
		if err := measure(ctx, p, f); err != nil {
			return err
		}
	}
	return nil
}

// measure starts the service and runs every request, on one connection and then on
// several.
func measure(ctx context.Context, p *harness.Place, f *filler) error {
	s, err := p.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\n%s, %d messages of %d bytes\n", p.Engine(), f.have, *size)
	fmt.Printf("%-22s %6s %9s %10s %10s %10s %14s\n", "", "conns", "a second", "p50", "p99", "max", "CPU each")
	cases, err := f.cases(ctx, s)
	if err != nil {
		return err
	}
	for _, n := range []int{1, *conns} {
		for _, c := range cases {
			if !strings.Contains(c.name, *only) {
				continue
			}
			if err := load(ctx, s, c, n); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}
