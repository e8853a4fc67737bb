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
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// The flags.
var (
	addr          = flag.String("addr", "127.0.0.1:2525", "address of the SMTP server")
	rcpt          = flag.String("rcpt", "", "recipients, separated by commas (default: new inboxes)")
	api           = flag.String("api", "http://127.0.0.1:8080", "URL of the API")
	key           = flag.String("key", os.Getenv("KEY"), "a full-access key; KEY in the environment by default")
	inboxes       = flag.Int("inboxes", 100, "number of inboxes to create")
	conns         = flag.Int("c", 64, "connections")
	messages      = flag.Int64("n", 0, "messages in a round (default: as many as -d allows)")
	duration      = flag.Duration("d", 5*time.Second, "length of a round")
	warm          = flag.Duration("warm", time.Second, "length of the warm-up round")
	rounds        = flag.Int("rounds", 3, "number of rounds; the medians are printed")
	pipeline      = flag.Bool("pipeline", false, "send MAIL, RCPT and DATA at once (RFC 2920)")
	baseline      = flag.Bool("baseline", false, "also measure a server that discards messages")
	pid           = flag.Int("pid", 0, "process id of the service, to print its CPU time (Linux)")
	jsonFile      = flag.String("json", "", "file to add the medians to, as JSON lines")
	serveBaseline = flag.Bool("serve-baseline", false, "run as that server; used by -baseline")
	size          = bytes(4 << 10)
	peers         []*target
)

// bytes is a number of bytes, such as 4096, 4k or 1m.
type bytes int

// String implements flag.Value.
func (b *bytes) String() string { return strconv.Itoa(int(*b)) }

// Set implements flag.Value.
func (b *bytes) Set(v string) error {
	number := strings.TrimRight(strings.ToLower(v), "km")
	n, err := strconv.Atoi(number)
	unit, known := map[string]int{"": 1, "k": 1 << 10, "m": 1 << 20}[strings.ToLower(v[len(number):])]
	if err != nil || n < 1 || !known {
		return errors.New("use a number of bytes, such as 4096, 4k or 1m")
	}
	*b = bytes(n * unit)
	return nil
}

func main() {
	flag.Var(&size, "size", "bytes of a message, such as 4096 or 4k")
	flag.Func("peer", "another server to measure, as name=address; may be repeated", func(v string) error {
		name, address, ok := strings.Cut(v, "=")
		if peers = append(peers, &target{name: name, addr: address}); !ok {
			return errors.New("use name=address")
		}
		return nil
	})
	harness.Main("ingest", run)
}

// run runs all rounds and prints the results.
func run(ctx context.Context) (failed error) {
	if *serveBaseline {
		return serve(ctx)
	}
	rcpts := strings.Split(*rcpt, ",")
	if *rcpt == "" {
		client := &harness.Client{Base: *api, Key: *key, HTTP: http.DefaultClient}
		boxes, err := client.CreateInboxes(ctx, *inboxes)
		defer func() { failed = errors.Join(failed, client.DeleteInboxes(context.WithoutCancel(ctx), boxes)) }()
		if err != nil {
			return err
		}
		rcpts = nil
		for _, in := range boxes {
			rcpts = append(rcpts, in.Address)
		}
	}
	targets := []*target{{name: "service", addr: *addr, pid: *pid}}
	if *baseline {
		// A process of its own, like the service: in this one it would share the scheduler
		// and the garbage collector with the load.
		self, err := os.Executable()
		if err != nil {
			return err
		}
		child, err := harness.StartProcess(exec.CommandContext(ctx, self, "-serve-baseline"), true)
		if err != nil {
			return err
		}
		defer child.Stop()
		targets = append(targets, &target{name: "baseline", addr: child.Line, pid: child.PID()})
	}
	targets = append(targets, peers...)
	for _, t := range targets {
		if _, err := t.measure(ctx, rcpts, 0, *warm); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	printHead()
	for range *rounds {
		for _, t := range targets {
			r, err := t.measure(ctx, rcpts, *messages, *duration)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.results = append(t.results, r)
			r.print(t.name)
		}
	}
	return summarize(targets)
}

// serve runs in the child process: it prints its address and serves.
func serve(ctx context.Context) error {
	sink, err := harness.NewSink(ctx)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = sink.Close() })
	fmt.Println(sink.Addr())
	return sink.Serve()
}
