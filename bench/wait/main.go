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
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// waitSeconds is the longest time of a wait. A message that takes longer counts as
// lost.
const waitSeconds = 60

// The flags.
var (
	api       = flag.String("api", "http://127.0.0.1:8080", "URL of the API")
	key       = flag.String("key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	smtp      = flag.String("smtp", "127.0.0.1:2525", "address of the SMTP server")
	waiters   = flag.Int("waiters", 1, "number of concurrent waits, each on its own inbox")
	rounds    = flag.Int("rounds", 1000, "messages for each waiter, one after the other")
	senders   = flag.Int("senders", 0, "SMTP connections (default: 8, or the number of waiters if that is less)")
	size      = flag.Int("size", 4096, "bytes of a message")
	settle    = flag.Duration("settle", 0, "time between the wait calls and the messages (default: 3ms, or 1s for 100 and more waiters)")
	connect   = flag.Bool("connect", false, "open a connection for each message, and include that in the time")
	perSecond = flag.Int("pace", 0, "messages a second; 0 means as fast as possible")
	pid       = flag.Int("pid", 0, "process id of the service, to print the CPU time of a message and its wait (Linux)")
)

func main() { harness.Main("wait", run) }

// run creates the inboxes, runs the rounds, prints the results, and deletes the
// inboxes.
func run(ctx context.Context) (err error) {
	if *senders == 0 {
		*senders = min(8, *waiters)
	}
	if *settle == 0 {
		*settle = 3 * time.Millisecond
		if *waiters >= 100 {
			*settle = time.Second
		}
	}
	client := &harness.Client{Base: *api, Key: *key, HTTP: &http.Client{
		Timeout:   (waitSeconds + 10) * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: *waiters + 8, DisableCompression: true},
	}}
	boxes, err := client.CreateInboxes(ctx, *waiters)
	defer func() { err = errors.Join(err, client.DeleteInboxes(context.WithoutCancel(ctx), boxes)) }()
	if err != nil {
		return err
	}
	b := &bench{client: client, boxes: boxes, last: make([]string, len(boxes)), body: harness.Prose(*size, "\r\n"), conns: make([]*harness.Sender, *senders)}
	defer b.close()
	var all harness.Times
	start, used := time.Now(), harness.CPU(*pid)
	for n := range *rounds {
		one, err := b.round(ctx, n)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		all = append(all, one...)
	}
	took, each := time.Since(start), (harness.CPU(*pid)-used)/time.Duration(max(1, len(all)))
	from := "MAIL on an open connection"
	if *connect {
		from = "opening the connection"
	}
	all = harness.Sorted(all)
	ms := func(p float64) float64 { return float64(all.At(p).Microseconds()) / 1000 }
	fmt.Printf("%d waiters, %d rounds, %d senders, messages of %d bytes, from %s to the end of the wait\n", *waiters, *rounds, *senders, *size, from)
	fmt.Printf("%d messages in %.1f s, 0 lost: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms\n", len(all), took.Seconds(), ms(0.50), ms(0.90), ms(0.99), ms(1))
	if *pid != 0 {
		fmt.Printf("CPU of the service, for a message and its wait: %d µs\n", each.Microseconds())
	}
	return nil
}
