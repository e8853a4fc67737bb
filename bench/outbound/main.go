// Command outbound measures how fast emails are sent: POST /v1/emails, a DKIM signature
// with RSA-2048, and SMTP to a server that discards them, each email to a different
// recipient. It ends with the medians. With -submit it measures SMTP submission in turn
// with POST /v1/emails, and prints their ratio.
//
//	go run ./bench/outbound
//	go run ./internal/testpg/cmd/withpg -fsync -- go run ./bench/outbound -postgres
//	go run ./bench/outbound -submit
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// options are the command-line flags.
type options struct {
	service         string
	postgres        bool
	submit          bool
	messages, conns int
	size, rounds    int
	pprof           string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "outbound:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.service, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flag.BoolVar(&o.postgres, "postgres", false, "use a new schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES")
	flag.BoolVar(&o.submit, "submit", false, "measure SMTP submission to the service, in turn with its API")
	flag.IntVar(&o.messages, "n", 3000, "messages in each step of a round")
	flag.IntVar(&o.conns, "c", 32, "connections that submit messages")
	flag.IntVar(&o.size, "size", 4096, "bytes of a message's text")
	flag.IntVar(&o.rounds, "rounds", 3, "number of rounds; the medians are printed")
	flag.StringVar(&o.pprof, "pprof", "", "address at which the service serves profiles, such as 127.0.0.1:6060")
	flag.Parse()
	o.messages -= o.messages % batchSize
	return o
}

// target is a system under measurement.
type target interface {
	name() string
	// send submits messages over that number of connections until n are accepted. With
	// batches, a target that can submits batches.
	send(ctx context.Context, n, conns int, batches bool) error
	canBatch() bool
	// cpu returns the processor time used so far, or 0 if it is unknown.
	cpu() time.Duration
}

// run runs all rounds and prints the results.
func run(ctx context.Context, o options) (err error) {
	if o.messages < batchSize {
		return fmt.Errorf("-n must be %d or more", batchSize)
	}
	sink, err := newSink(ctx)
	if err != nil {
		return err
	}
	defer sink.close()
	p, err := harness.New(ctx, o.service, o.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	address, err := harness.FreeAddress(ctx)
	if err != nil {
		return err
	}
	service, err := p.Start(ctx, "POSTROOM_RELAY=smtp://"+sink.addr()+"?tls=off", "POSTROOM_SUBMISSION="+address, "POSTROOM_PPROF="+o.pprof)
	if err != nil {
		return err
	}
	defer service.Stop()
	api := &postroom{service: service, label: "Postroom on " + p.Engine(), size: o.size}
	targets := []target{api}
	if o.submit {
		s := &submission{*api, address}
		s.label = "Submission"
		targets = []target{s, api} // the ratio is that of submission to the API
	}
	return compare(ctx, o, sink, targets)
}

// compare measures the targets in turn and prints the results.
func compare(ctx context.Context, o options, sink *sink, targets []target) error {
	for _, t := range targets { // creates signing keys, fills pages and caches
		if _, err := round(ctx, o, sink, t, batchSize); err != nil {
			return fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	r := newReport(targets)
	r.head(o)
	for range o.rounds {
		for _, t := range targets {
			figures, err := round(ctx, o, sink, t, o.messages)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name(), err)
			}
			r.add(t, figures)
		}
	}
	r.summary()
	return nil
}
