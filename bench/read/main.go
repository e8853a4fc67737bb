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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// options are the command-line flags.
type options struct {
	service  string
	postgres bool
	small    int
	messages int
	size     int
	conns    int
	duration time.Duration
	pprof    string
	only     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.service, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flag.BoolVar(&o.postgres, "postgres", false, "use a new schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES")
	flag.IntVar(&o.small, "small", 1000, "messages in the small store, for comparison; 0 skips it")
	flag.IntVar(&o.messages, "messages", 100_000, "messages in the store")
	flag.IntVar(&o.size, "size", 4096, "bytes of a message")
	flag.IntVar(&o.conns, "c", 8, "connections, besides one")
	flag.DurationVar(&o.duration, "d", 3*time.Second, "length of a measurement")
	flag.StringVar(&o.pprof, "pprof", "", "address at which the service serves profiles, such as 127.0.0.1:6060")
	flag.StringVar(&o.only, "only", "", "measure only requests with this in their name, such as page")
	flag.Parse()
	return o
}

// run fills the store and measures, first with the small store unless it is skipped.
func run(ctx context.Context, o options) (err error) {
	p, err := harness.New(ctx, o.service, o.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	f := &filler{place: p, size: o.size}
	for _, messages := range []int{o.small, o.messages} {
		if messages == 0 {
			continue
		}
		if err := f.fill(ctx, messages); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
		if err := measure(ctx, o, p, f, messages); err != nil {
			return err
		}
	}
	return nil
}

// measure starts the service and runs every request, on one connection and then on
// several.
func measure(ctx context.Context, o options, p *harness.Place, f *filler, messages int) error {
	s, err := p.Start(ctx, "POSTROOM_PPROF="+o.pprof)
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\n%s, %d messages of %d bytes\n", p.Engine(), messages, o.size)
	printHead()
	cases, err := f.cases(ctx, s)
	if err != nil {
		return err
	}
	for _, conns := range []int{1, o.conns} {
		for _, c := range cases {
			if !strings.Contains(c.name, o.only) {
				continue
			}
			r, err := load(ctx, s, c, conns, o.duration)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.print(c.name, conns)
		}
	}
	return nil
}
