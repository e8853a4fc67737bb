package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// target is a server under measurement.
type target struct {
	name, addr string
	rcpts      []string
	pid        int
	results    []result
}

// result is the result of one round.
type result struct {
	messages       int
	took           time.Duration
	p50, p99, max  time.Duration
	generator, cpu float64 // cores in use by the generator and the server (0: unknown)
}

func (r result) rate() float64 { return float64(r.messages) / r.took.Seconds() }

var numbers atomic.Int64 // makes all messages different

// measure sends messages to t over all connections for one round.
func measure(ctx context.Context, o options, t *target) (result, error) {
	workers := make([]*worker, o.conns)
	defer func() {
		for _, w := range workers {
			if w != nil {
				_ = w.conn.Close()
			}
		}
	}()
	for i := range workers {
		w, err := newWorker(ctx, o, t)
		if err != nil {
			return result{}, err
		}
		workers[i] = w
	}
	var left atomic.Int64
	if left.Store(o.messages); o.messages == 0 {
		left.Store(1 << 62)
	}
	mine, theirs := harness.CPU(os.Getpid()), harness.CPU(t.pid)
	start := time.Now()
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.run(ctx, &left, start.Add(o.duration), o.messages > 0) })
	}
	wg.Wait()
	r := result{took: time.Since(start)}
	r.generator = (harness.CPU(os.Getpid()) - mine).Seconds() / r.took.Seconds()
	r.cpu = (harness.CPU(t.pid) - theirs).Seconds() / r.took.Seconds()
	r.addLatencies(workers)
	return r, errors.Join(errs...)
}

func (r *result) addLatencies(workers []*worker) {
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.took...)
	}
	if r.messages = len(all); r.messages == 0 {
		return
	}
	slices.Sort(all)
	r.p50, r.p99, r.max = all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
}

// worker is one connection. Everything that it sends is prepared in advance, except for
// the digits that make messages different.
type worker struct {
	conn     net.Conn
	in       []byte
	rcpts    [][]byte
	message  *message
	pipeline bool
	took     []time.Duration
}

const timeout = 30 * time.Second // for a round beyond its length, and for the greeting

func newWorker(ctx context.Context, o options, t *target) (*worker, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	w := &worker{conn: conn, in: make([]byte, 4<<10), message: newMessage(int(o.size)), pipeline: o.pipeline}
	w.took = make([]time.Duration, 0, 1<<14)
	for _, rcpt := range t.rcpts {
		w.rcpts = append(w.rcpts, []byte("RCPT TO:<"+rcpt+">\r\n"))
	}
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return w, err
	}
	if err := w.reply(1); err != nil {
		return w, err
	}
	return w, w.say([]byte("EHLO bench.localhost\r\n"))
}

// run sends messages until deadline, or until none are left.
func (w *worker) run(ctx context.Context, left *atomic.Int64, deadline time.Time, all bool) error {
	if err := w.conn.SetDeadline(deadline.Add(timeout)); err != nil {
		return err
	}
	if all {
		deadline = deadline.Add(timeout)
	}
	from := []byte("MAIL FROM:<sender@bench.localhost>\r\n")
	var head []byte
	for begin := time.Now(); begin.Before(deadline) && ctx.Err() == nil && left.Add(-1) >= 0; {
		n := numbers.Add(1)
		rcpt := w.rcpts[int(n)%len(w.rcpts)]
		var err error
		if w.pipeline {
			head = append(append(append(head[:0], from...), rcpt...), "DATA\r\n"...)
			err = w.sayAll(head, 3)
		} else {
			err = errors.Join(w.say(from), w.say(rcpt), w.say([]byte("DATA\r\n")))
		}
		if err != nil {
			return err
		}
		if err := w.say(w.message.number(n)); err != nil {
			return err
		}
		end := time.Now()
		w.took = append(w.took, end.Sub(begin))
		begin = end
	}
	return nil
}

func (w *worker) say(b []byte) error { return w.sayAll(b, 1) }

// sayAll sends commands and reads the last lines of n replies.
func (w *worker) sayAll(b []byte, n int) error {
	if _, err := w.conn.Write(b); err != nil {
		return err
	}
	return w.reply(n)
}

// reply reads n replies and returns an error for a refusal.
func (w *worker) reply(n int) error {
	for have := 0; ; {
		read, err := w.conn.Read(w.in[have:])
		if err != nil {
			return err
		}
		have += read
		lines := bytes.SplitAfter(w.in[:have], []byte("\n"))
		last := 0
		for _, line := range lines {
			if len(line) > 3 && line[0] >= '4' {
				return fmt.Errorf("refused: %s", bytes.TrimSpace(line))
			}
			if len(line) > 4 && line[3] == ' ' && line[len(line)-1] == '\n' {
				last++
			}
		}
		if last >= n {
			return nil
		}
	}
}
