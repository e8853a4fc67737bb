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
	"flag"
	"fmt"

	"github.com/postroom/postroom/bench/harness"
)

// The flags.
var (
	settings = harness.Flags()
	submit   = flag.Bool("submit", false, "measure SMTP submission to the service, in turn with its API")
	messages = flag.Int("n", 3000, "messages in each step of a round")
	conns    = flag.Int("c", 32, "connections that submit messages")
	size     = flag.Int("size", 4096, "bytes of a message's text")
	rounds   = flag.Int("rounds", 3, "number of rounds; the medians are printed")
)

func main() { harness.Main("outbound", run) }

// run runs all rounds and prints the results.
func run(ctx context.Context) error {
	if *messages -= *messages % batchSize; *messages < batchSize {
		return fmt.Errorf("-n must be %d or more", batchSize)
	}
	sink, err := harness.NewSink(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = sink.Close() }()
	go func() { _ = sink.Serve() }() // until it is closed
	return settings.With(ctx, func(p *harness.Place) error {
		submission, err := harness.FreeAddress(ctx)
		if err != nil {
			return err
		}
		service, err := p.Start(ctx, "POSTROOM_RELAY=smtp://"+sink.Addr().String()+"?tls=off", "POSTROOM_SUBMISSION="+submission)
		if err != nil {
			return err
		}
		defer service.Stop()
		api := &target{name: "Postroom on " + p.Engine(), service: service, send: postOne, batch: postBatch, address: service.Address}
		targets := []*target{api}
		if *submit { // the ratio is that of submission to the API
			targets = []*target{{name: "Submission", service: service, send: submitOne, address: submission, login: true}, api}
		}
		return compare(ctx, sink, targets)
	})
}

// compare measures the targets in turn and prints the results.
func compare(ctx context.Context, sink *harness.Sink, targets []*target) error {
	for _, t := range targets { // creates signing keys, fills pages and caches
		if _, err := t.round(ctx, sink, batchSize); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	fmt.Printf("%d messages of %d bytes in each step, %d connections; messages a second, and the processor time of the target for each\n", *messages, *size, *conns)
	row("", names)
	for range *rounds {
		for _, t := range targets {
			figures, err := t.round(ctx, sink, *messages)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.rounds = append(t.rounds, figures)
			row(t.name, figures)
		}
	}
	fmt.Println("medians")
	for _, t := range targets {
		row(t.name, t.medians())
	}
	if len(targets) > 1 {
		var ratios [figures]ratio
		for f, theirs := range targets[1].medians() {
			ratios[f] = ratio(targets[0].medians()[f].rate / theirs.rate)
		}
		row("ratio", ratios)
	}
	return nil
}

func row[T fmt.Stringer](name string, cells [figures]T) {
	fmt.Printf("%-24s", name)
	for _, c := range cells {
		fmt.Printf(" %18s", c)
	}
	fmt.Println()
}
