// Command wait measures the time from sending a message to the program that waits for
// it: from the start of the SMTP transaction (the first byte of MAIL, or with -connect
// the opening of a connection) to the HTTP response of the wait call. The message is
// on the disk before the wait returns.
//
// Every waiter has its own inbox and must get its own message. A lost or wrong message
// is an error. The service must run with --rate-limits off.
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

	"github.com/postroom/postroom/bench/harness"
)

// options are the command-line flags.
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
	flag.StringVar(&o.api, "api", "http://127.0.0.1:8080", "URL of the API")
	flag.StringVar(&o.key, "key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	flag.StringVar(&o.smtp, "smtp", "127.0.0.1:2525", "address of the SMTP server")
	flag.StringVar(&o.domain, "domain", "postroom.localhost", "the mail domain")
	flag.IntVar(&o.waiters, "waiters", 1, "number of concurrent waits, each on its own inbox")
	flag.IntVar(&o.rounds, "rounds", 1000, "messages for each waiter, one after the other")
	flag.IntVar(&o.senders, "senders", 0, "SMTP connections (default: 8, or the number of waiters if that is less)")
	flag.IntVar(&o.size, "size", 4096, "bytes of a message")
	flag.DurationVar(&o.settle, "settle", 0, "time between the wait calls and the messages (default: 3ms, or 1s for 100 and more waiters)")
	flag.BoolVar(&o.connect, "connect", false, "open a connection for each message, and include that in the time")
	flag.IntVar(&o.pace, "pace", 0, "messages a second; 0 means as fast as possible")
	flag.IntVar(&o.pid, "pid", 0, "process id of the service, to print the CPU time of a message and its wait (Linux)")
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

// run creates the inboxes, runs the rounds, prints the results, and deletes the
// inboxes.
func run(ctx context.Context, o options) (err error) {
	a := newClient(o)
	made, err := a.CreateInboxes(ctx, o.waiters)
	defer func() {
		if cleanErr := a.DeleteInboxes(context.WithoutCancel(ctx), made); err == nil {
			err = cleanErr
		}
	}()
	if err != nil {
		return err
	}
	boxes := make([]*inbox, len(made))
	for i := range made {
		boxes[i] = &inbox{Inbox: made[i]}
	}
	s, err := newSenders(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	var all samples
	start, used := time.Now(), harness.CPU(o.pid)
	for n := range o.rounds {
		one, err := round(ctx, o, a, s, boxes, n)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		all = append(all, one...)
	}
	all.print(os.Stdout, o, time.Since(start))
	if o.pid != 0 {
		fmt.Printf("CPU of the service, for a message and its wait: %d µs\n", (harness.CPU(o.pid)-used).Microseconds()/int64(len(all)))
	}
	return nil
}
