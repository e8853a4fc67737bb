// Command peers receives the same messages with Postroom, with Mailpit if it is installed,
// and with a bare go-smtp server that discards them, in turn. It prints a table of the
// medians, and can write them as JSON.
//
//	go run ./bench/peers -json peers.json
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// options are the command-line flags.
type options struct {
	service, json string
	rounds        int
	duration      time.Duration
}

// shape is how the messages are sent.
type shape struct {
	Connections, Bytes int
}

var shapes = []shape{{1, 4096}, {8, 4096}, {64, 4096}, {8, 51200}}

// median is one line of what the command ingest writes.
type median struct {
	Server string `json:"server"`
	shapeOf
	Rate float64 `json:"messages_a_second"`
}

type shapeOf struct {
	Connections int `json:"connections"`
	Bytes       int `json:"bytes"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.service, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flag.StringVar(&o.json, "json", "", "file to write the medians to, as JSON lines")
	flag.IntVar(&o.rounds, "rounds", 3, "number of rounds; the medians are printed")
	flag.DurationVar(&o.duration, "d", 4*time.Second, "length of a round")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "postroom-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := harness.New(ctx, o.service, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	smtp, err := harness.FreeAddress(ctx)
	if err != nil {
		return err
	}
	service, err := p.Start(ctx, "POSTROOM_SMTP="+smtp, "POSTROOM_SMTP_MAX_CONNS_PER_IP=100")
	if err != nil {
		return err
	}
	defer service.Stop()
	args := []string{
		"run", "./bench/ingest", "-addr", smtp, "-api", "http://" + service.Address, "-key", harness.Key, "-baseline",
		"-rounds", strconv.Itoa(o.rounds), "-d", o.duration.String(), "-json", filepath.Join(dir, "medians"),
	}
	mailpit, err := startMailpit(ctx, dir)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(os.Stderr, "peers: left out:", err)
	case err != nil:
		return err
	default:
		defer mailpit.stop()
		args = append(args, "-peer", mailpit.name+"="+mailpit.address)
	}
	for _, s := range shapes {
		cmd := exec.CommandContext(ctx, "go", append(args, "-c", strconv.Itoa(s.Connections), "-size", strconv.Itoa(s.Bytes))...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("measure: %w", err)
		}
	}
	return report(o, filepath.Join(dir, "medians"))
}

// report prints and writes the medians.
func report(o options, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all []median
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var m median
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		m.Server = titles[m.Server]
		all = append(all, m)
	}
	printTable(all)
	if o.json != "" {
		err = os.WriteFile(o.json, raw, 0o644)
	}
	return err
}

// titles are the names of the servers in the table, by those in the options of ingest.
var titles = map[string]string{"service": "Postroom", "baseline": "bare go-smtp", "mailpit": "Mailpit"}

// peer is another server that runs for the measurement.
type peer struct {
	name, address string
	cmd           *exec.Cmd
}

func (p *peer) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // the exit status after SIGTERM does not matter
}
