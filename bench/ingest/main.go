// Command ingest measures how many messages a second the service receives over SMTP: on
// persistent connections, one message after the other on each, with each command
// waiting for its reply, and 250 after the message is on the disk. With -baseline it
// also measures a server that discards messages, in turn with the service, and prints
// the ratio. Compare the ratio, because the rates depend on the machine and its other
// work.
//
//	go run ./bench/ingest -key "$KEY" -c 64 -size 4k -baseline
//	go run ./bench/ingest -addr 127.0.0.1:2525 -rcpt a@example.com,b@example.com
//
// The service must run with --rate-limits off when this program creates the inboxes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// options are the command-line flags.
type options struct {
	api, key, addr, rcpt        string
	conns, inboxes, rounds, pid int
	messages                    int64
	duration, warm              time.Duration
	size                        size
	baseline, pipeline          bool
	serveBaseline               bool
	peers                       []string // name=address
	json                        string
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
		return errors.New("use a number of bytes, such as 4096, 4k or 1m")
	}
	*s = size(n * unit)
	return nil
}

func parse() options {
	o := options{size: 4 << 10}
	flag.StringVar(&o.addr, "addr", "127.0.0.1:2525", "address of the SMTP server")
	flag.StringVar(&o.rcpt, "rcpt", "", "recipients, separated by commas (default: new inboxes)")
	flag.StringVar(&o.api, "api", "http://127.0.0.1:8080", "URL of the API")
	flag.StringVar(&o.key, "key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	flag.IntVar(&o.inboxes, "inboxes", 100, "number of inboxes to create")
	flag.IntVar(&o.conns, "c", 64, "connections")
	flag.Int64Var(&o.messages, "n", 0, "messages in a round (default: as many as -d allows)")
	flag.DurationVar(&o.duration, "d", 5*time.Second, "length of a round")
	flag.DurationVar(&o.warm, "warm", time.Second, "length of the warm-up round")
	flag.IntVar(&o.rounds, "rounds", 3, "number of rounds; the medians are printed")
	flag.Var(&o.size, "size", "bytes of a message, such as 4096 or 4k")
	flag.BoolVar(&o.pipeline, "pipeline", false, "send MAIL, RCPT and DATA at once (RFC 2920)")
	flag.BoolVar(&o.baseline, "baseline", false, "also measure a server that discards messages")
	flag.IntVar(&o.pid, "pid", 0, "process id of the service, to print its CPU time (Linux)")
	flag.Func("peer", "another server to measure, as name=address; may be repeated", func(v string) error {
		if name, addr, ok := strings.Cut(v, "="); !ok || name == "" || addr == "" {
			return errors.New("use name=address")
		}
		o.peers = append(o.peers, v)
		return nil
	})
	flag.StringVar(&o.json, "json", "", "file to add the medians to, as JSON lines")
	flag.BoolVar(&o.serveBaseline, "serve-baseline", false, "run as that server; used by -baseline")
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

// run runs all rounds and prints the results.
func run(ctx context.Context, o options) (failed error) {
	rcpts := strings.Split(o.rcpt, ",")
	if o.rcpt == "" {
		api := &harness.Client{Base: o.api, Key: o.key, HTTP: http.DefaultClient}
		boxes, err := api.CreateInboxes(ctx, o.inboxes)
		defer func() { failed = errors.Join(failed, api.DeleteInboxes(context.WithoutCancel(ctx), boxes)) }()
		if err != nil {
			return err
		}
		rcpts = nil
		for _, in := range boxes {
			rcpts = append(rcpts, in.Address)
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
	for _, p := range o.peers {
		name, addr, _ := strings.Cut(p, "=")
		targets = append(targets, &target{name: name, addr: addr, rcpts: rcpts})
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
	return writeMedians(o, targets)
}

func warmUp(ctx context.Context, o options, targets []*target) error {
	o.duration, o.messages = o.warm, 0
	for _, t := range targets {
		if _, err := measure(ctx, o, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}
