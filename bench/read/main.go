// Command read measures how fast mail is read: it fills one account with mail,
// starts the service on it, and asks for pages, single messages and searches
// over HTTP, on one connection and on several. It starts the service anew for
// each step and leaves nothing behind.
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

	"github.com/postroom/postroom/bench/place"
)

// options are the flags.
type options struct {
	service  string
	postgres bool
	small    int
	mails    int
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
	flag.BoolVar(&o.postgres, "postgres", false, "on the PostgreSQL that POSTROOM_TEST_POSTGRES names, in a schema of its own")
	flag.IntVar(&o.small, "small", 1000, "mails in the small store, to compare with; 0 leaves it out")
	flag.IntVar(&o.mails, "mails", 100_000, "mails in the store")
	flag.IntVar(&o.size, "size", 4096, "bytes of a mail")
	flag.IntVar(&o.conns, "c", 8, "connections, beside one")
	flag.DurationVar(&o.duration, "d", 3*time.Second, "length of a measurement")
	flag.StringVar(&o.pprof, "pprof", "", "where the service serves profiles, such as 127.0.0.1:6060")
	flag.StringVar(&o.only, "only", "", "measure only what has this in its name, such as page")
	flag.Parse()
	return o
}

// run fills and measures, twice when there is a small store to compare with.
func run(ctx context.Context, o options) (err error) {
	p, err := place.New(ctx, o.service, o.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	f := &filler{place: p, size: o.size}
	for _, mails := range []int{o.small, o.mails} {
		if mails == 0 {
			continue
		}
		if err := f.fill(ctx, mails); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
		if err := measure(ctx, o, p, f, mails); err != nil {
			return err
		}
	}
	return nil
}

// measure starts the service and asks for everything once on one connection and
// once on several.
func measure(ctx context.Context, o options, p *place.Place, f *filler, mails int) error {
	s, err := p.Start(ctx, "POSTROOM_PPROF="+o.pprof)
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\n%s, %d mails of %d bytes\n", p.Engine(), mails, o.size)
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
