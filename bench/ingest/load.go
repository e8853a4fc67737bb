package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// target is a server under measurement.
type target struct {
	name, addr string
	pid        int
	results    []result
}

// result is the result of one round.
type result struct {
	times          harness.Times
	took           time.Duration
	generator, cpu float64 // cores in use by the generator and the server (0: unknown)
}

func (r result) rate() float64 { return float64(len(r.times)) / r.took.Seconds() }

var numbers atomic.Int64 // makes all messages different

// measure sends messages over all connections for one round: n, or as many as possible.
func (t *target) measure(ctx context.Context, rcpts []string, n int64, d time.Duration) (result, error) {
	senders := make([]*harness.Sender, *conns)
	defer func() {
		for _, s := range senders {
			if s != nil {
				_ = s.Close()
			}
		}
	}()
	for i := range senders {
		var err error
		if senders[i], err = harness.NewSender(ctx, t.addr); err != nil {
			return result{}, err
		}
	}
	var left atomic.Int64
	if left.Store(n); n == 0 {
		left.Store(1 << 62)
	}
	times := make([]harness.Times, len(senders))
	mine, theirs := harness.CPU(os.Getpid()), harness.CPU(t.pid)
	start := time.Now()
	err := harness.Parallel(len(senders), func(i int) error {
		m := newMessage(int(size))
		for begin := time.Now(); (n > 0 || begin.Sub(start) < d) && ctx.Err() == nil && left.Add(-1) >= 0; {
			number := numbers.Add(1)
			if err := send(senders[i], rcpts[int(number)%len(rcpts)], m.number(number)); err != nil {
				return err
			}
			end := time.Now()
			times[i] = append(times[i], end.Sub(begin))
			begin = end
		}
		return nil
	})
	r := result{took: time.Since(start)}
	r.generator = (harness.CPU(os.Getpid()) - mine).Seconds() / r.took.Seconds()
	r.cpu = (harness.CPU(t.pid) - theirs).Seconds() / r.took.Seconds()
	r.times = harness.Sorted(times...)
	return r, err
}

func send(s *harness.Sender, rcpt string, message []byte) error {
	from, to, data := "MAIL FROM:<sender@bench.localhost>\r\n", "RCPT TO:<"+rcpt+">\r\n", "DATA\r\n"
	var err error
	if *pipeline {
		err = s.Say([]byte(from+to+data), 3)
	} else {
		err = errors.Join(s.Say([]byte(from), 1), s.Say([]byte(to), 1), s.Say([]byte(data), 1))
	}
	if err != nil {
		return err
	}
	return s.Say(message, 1)
}

// digits mark the place of a message's number.
const digits = "000000000000"

// message is a text message with dot-stuffing and the final dot, and with places for a
// number that makes it different from all others.
type message struct {
	bytes  []byte
	places []int
}

// newMessage creates a message of about size bytes, like those of programs: with a
// code, a link, and prose.
func newMessage(size int) *message {
	text := "Received: from app.bench.localhost (app.bench.localhost [192.0.2.7])\r\n" +
		"\tby out.bench.localhost with ESMTPS id " + digits + "; Tue, 2 Jan 2024 03:04:05 +0000\r\n" +
		"From: Bench Service <sender@bench.localhost>\r\nTo: Reader <reader@bench.localhost>\r\n" +
		"Subject: Your sign-in code, request " + digits + "\r\nDate: Tue, 2 Jan 2024 03:04:05 +0000\r\n" +
		"Message-ID: <" + digits + "@bench.localhost>\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" +
		"Hello,\r\n\r\nyour code is 482913. It is valid for 15 minutes.\r\n\r\n" +
		"Or follow this link: https://bench.localhost/verify?request=" + digits + "\r\n\r\n"
	text += harness.Prose(size-len(text), "\r\n") + ".\r\n"
	m := &message{bytes: []byte(text)}
	for at := strings.Index(text, digits); at >= 0; {
		m.places = append(m.places, at)
		next := strings.Index(text[at+len(digits):], digits)
		if next < 0 {
			break
		}
		at += len(digits) + next
	}
	return m
}

// number returns the message with this number.
func (m *message) number(n int64) []byte {
	text := fmt.Sprintf("%0*d", len(digits), n)
	for _, at := range m.places {
		copy(m.bytes[at:], text)
	}
	return m.bytes
}
