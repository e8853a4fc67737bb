// Command outbound measures how fast mail goes out: POST /v1/emails, a DKIM
// signature of RSA-2048, and SMTP to a server that throws it away, each mail to
// a recipient of its own. Beside it, in the same run, it measures Postfix with
// OpenDKIM from the system's packages, which takes the same mail by SMTP. What it
// prints last are the medians and their ratio: the rates themselves depend on
// the machine and on what else runs on it.
//
//	go run ./bench/outbound
//	go run ./internal/testpg/cmd/withpg -fsync -- go run ./bench/outbound -postgres
//
// Postfix starts only for root, in a folder and on ports of its own; -peer=false
// leaves it out. Nothing is left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/postroom/postroom/bench/place"
)

// options are the flags.
type options struct {
	service        string
	postgres, peer bool
	mails, conns   int
	size, rounds   int
	pprof          string
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
	flag.BoolVar(&o.postgres, "postgres", false, "on the PostgreSQL that POSTROOM_TEST_POSTGRES names, in a schema of its own")
	flag.BoolVar(&o.peer, "peer", true, "measure Postfix with OpenDKIM too, in turn")
	flag.IntVar(&o.mails, "n", 3000, "mails in each step of a round")
	flag.IntVar(&o.conns, "c", 32, "connections that hand mail in")
	flag.IntVar(&o.size, "size", 4096, "bytes of a mail's text")
	flag.IntVar(&o.rounds, "rounds", 3, "how many rounds; the median counts")
	flag.StringVar(&o.pprof, "pprof", "", "where the service serves profiles, such as 127.0.0.1:6060")
	flag.Parse()
	o.mails -= o.mails % batchSize
	return o
}

// target is what is measured.
type target interface {
	name() string
	// send hands in mails until n are accepted, batches of them if it can and is
	// asked to, over the given number of connections.
	send(ctx context.Context, n, conns int, batches bool) error
	canBatch() bool
	// cpu is the processor time that it has used, 0 when it is not known.
	cpu() time.Duration
}

// run measures and prints.
func run(ctx context.Context, o options) (err error) {
	if o.mails < batchSize {
		return fmt.Errorf("-n must be %d or more", batchSize)
	}
	sink, err := newSink(ctx)
	if err != nil {
		return err
	}
	defer sink.close()
	p, err := place.New(ctx, o.service, o.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	service, err := p.Start(ctx, "POSTROOM_RELAY=smtp://"+sink.addr()+"?tls=off", "POSTROOM_PPROF="+o.pprof)
	if err != nil {
		return err
	}
	defer service.Stop()
	targets := []target{&postroom{service: service, label: "Postroom on " + p.Engine(), size: o.size}}
	if o.peer {
		peer, err := startPostfix(ctx, sink.addr(), o.size)
		if err != nil {
			return err
		}
		defer peer.stop()
		targets = append(targets, peer)
	}
	return compare(ctx, o, sink, targets)
}

// compare lets the targets take turns and prints what came of it.
func compare(ctx context.Context, o options, sink *sink, targets []target) error {
	for _, t := range targets { // signing keys are made, pages and caches filled
		if _, err := round(ctx, o, sink, t, batchSize); err != nil {
			return fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	r := newReport(targets)
	r.head(o)
	for range o.rounds {
		for _, t := range targets {
			figures, err := round(ctx, o, sink, t, o.mails)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name(), err)
			}
			r.add(t, figures)
		}
	}
	r.summary()
	return nil
}
