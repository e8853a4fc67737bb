// Command ingest measures how many mails a second the service takes in over
// SMTP: persistent connections, one mail after the other on each, lock-step
// commands, 250 after the mail is on the disk. With -baseline it also measures
// a server that throws mail away, in turn with the service, and prints the
// ratio: that is the figure to compare, because the rates themselves depend on
// the machine and on what else runs on it.
//
//	go run ./bench/ingest -key "$KEY" -c 64 -size 4k -baseline
//	go run ./bench/ingest -addr 127.0.0.1:2525 -rcpt a@example.com,b@example.com
//
// The service must run with --rate-limits off when the inboxes are made here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	api, key, addr, rcpt        string
	conns, inboxes, rounds, pid int
	mails                       int64
	duration, warm              time.Duration
	size                        size
	baseline, pipeline          bool
	serveBaseline               bool
}

// size is a number of bytes, such as 4096, 4k or 1m.
type size int

// String implements flag.Value.
func (s *size) String() string { return strconv.Itoa(int(*s)) }

// Set implements flag.Value.
func (s *size) Set(v string) error {
	unit := 1
	switch v = strings.ToLower(v); {
	case strings.HasSuffix(v, "k"):
		v, unit = strings.TrimSuffix(v, "k"), 1<<10
	case strings.HasSuffix(v, "m"):
		v, unit = strings.TrimSuffix(v, "m"), 1<<20
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return errors.New("is no number of bytes")
	}
	*s = size(n * unit)
	return nil
}

func parse() options {
	o := options{size: 4 << 10}
	flag.StringVar(&o.addr, "addr", "127.0.0.1:2525", "where mail comes in")
	flag.StringVar(&o.rcpt, "rcpt", "", "recipients, separated by commas (default: inboxes made by the API)")
	flag.StringVar(&o.api, "api", "http://127.0.0.1:8080", "where the API is")
	flag.StringVar(&o.key, "key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	flag.IntVar(&o.inboxes, "inboxes", 100, "how many inboxes to make")
	flag.IntVar(&o.conns, "c", 64, "connections")
	flag.Int64Var(&o.mails, "n", 0, "mails in a round (default: as many as -d allows)")
	flag.DurationVar(&o.duration, "d", 5*time.Second, "length of a round")
	flag.DurationVar(&o.warm, "warm", time.Second, "length of a first round that does not count")
	flag.IntVar(&o.rounds, "rounds", 3, "how many rounds; the median counts")
	flag.Var(&o.size, "size", "bytes of a mail, such as 4096 or 4k")
	flag.BoolVar(&o.pipeline, "pipeline", false, "send MAIL, RCPT and DATA at once (RFC 2920)")
	flag.BoolVar(&o.baseline, "baseline", false, "measure a server that throws mail away too, in turn")
	flag.IntVar(&o.pid, "pid", 0, "process of the service, to tell its share of the CPU (Linux)")
	flag.BoolVar(&o.serveBaseline, "serve-baseline", false, "be that server: used by -baseline")
	flag.Parse()
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := parse()
	do := run
	if o.serveBaseline {
		do = serveBaseline
	}
	if err := do(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

// run measures and prints.
func run(ctx context.Context, o options) (err error) {
	rcpts := strings.Split(o.rcpt, ",")
	if o.rcpt == "" {
		boxes := &inboxes{o: o}
		defer func() { err = errors.Join(err, boxes.deleteAll(context.WithoutCancel(ctx))) }()
		if rcpts, err = boxes.create(ctx); err != nil {
			return err
		}
	}
	targets := []*target{{name: "service", addr: o.addr, rcpts: rcpts, pid: o.pid}}
	if o.baseline {
		child, err := startBaseline(ctx)
		if err != nil {
			return err
		}
		defer child.stop()
		targets = append(targets, &target{name: "baseline", addr: child.addr, rcpts: rcpts, pid: child.cmd.Process.Pid})
	}
	if err := warmUp(ctx, o, targets); err != nil {
		return err
	}
	printHead(o)
	for range o.rounds {
		for _, t := range targets {
			r, err := measure(ctx, o, t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.results = append(t.results, r)
			printRow(t.name, r)
		}
	}
	printSummary(targets)
	return nil
}

func warmUp(ctx context.Context, o options, targets []*target) error {
	o.duration, o.mails = o.warm, 0
	for _, t := range targets {
		if _, err := measure(ctx, o, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}
