// Command wait measures how long a mail takes from its sender to the program
// that waits for it: from the start of sending over SMTP (the first byte of
// MAIL, or with -connect the opening of a connection) to the answer of the wait
// call over HTTP. Mail is on the disk before a waiter is told of it.
//
// Every waiter has an inbox of its own and must get its own mail: one that is
// lost or mixed up is an error. The service must run with --rate-limits off.
//
//	go run ./bench/wait -key "$KEY" -waiters 1 -rounds 2000
//	go run ./bench/wait -key "$KEY" -waiters 1000 -rounds 20
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// options are the flags.
type options struct {
	api, key, smtp, domain string
	waiters, rounds        int
	senders, size          int
	settle                 time.Duration
	connect                bool
	pace, pid              int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "wait:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.api, "api", "http://127.0.0.1:8080", "where the API is")
	flag.StringVar(&o.key, "key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	flag.StringVar(&o.smtp, "smtp", "127.0.0.1:2525", "where mail comes in")
	flag.StringVar(&o.domain, "domain", "postroom.localhost", "the mail domain")
	flag.IntVar(&o.waiters, "waiters", 1, "how many wait at the same time, each on its own inbox")
	flag.IntVar(&o.rounds, "rounds", 1000, "how many mails each gets, one after the other")
	flag.IntVar(&o.senders, "senders", 0, "SMTP connections that send (default: 8, or as many as there are waiters)")
	flag.IntVar(&o.size, "size", 4096, "bytes of a mail")
	flag.DurationVar(&o.settle, "settle", 0, "time between the wait calls and the mail (default: 3ms, and 1s from 100 waiters on)")
	flag.BoolVar(&o.connect, "connect", false, "open a connection for each mail, and count that too")
	flag.IntVar(&o.pace, "pace", 0, "mails a second; 0 is as fast as it goes")
	flag.IntVar(&o.pid, "pid", 0, "process of the service, on Linux: says what CPU time a mail and its wait take")
	flag.Parse()
	if o.senders == 0 {
		o.senders = min(8, o.waiters)
	}
	if o.settle == 0 {
		o.settle = 3 * time.Millisecond
		if o.waiters >= 100 {
			o.settle = time.Second
		}
	}
	return o
}

// run makes the inboxes, does the rounds, prints what came of them, and deletes
// the inboxes.
func run(ctx context.Context, o options) (err error) {
	a := newAPI(o)
	boxes, err := a.createInboxes(ctx, o.waiters)
	defer func() {
		if cleanErr := a.deleteInboxes(context.WithoutCancel(ctx), boxes); err == nil {
			err = cleanErr
		}
	}()
	if err != nil {
		return err
	}
	s, err := newSenders(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	var all samples
	start, cpu := time.Now(), cpuMeter{pid: o.pid}
	if err := cpu.start(); err != nil {
		return err
	}
	for n := range o.rounds {
		one, err := round(ctx, o, a, s, boxes, n)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		all = append(all, one...)
	}
	all.print(os.Stdout, o, time.Since(start))
	return cpu.print(os.Stdout, len(all))
}
