package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// sink is an SMTP server that counts messages and discards them. While it is blocked
// it does not reply, like a slow server, and messages stay in the sender's queue.
type sink struct {
	l        net.Listener
	messages atomic.Int64
	conns    sync.WaitGroup

	mu      sync.Mutex
	open    map[net.Conn]struct{}
	closed  bool
	blocked chan struct{} // closed by unblock; nil while the sink is not blocked
}

func newSink(ctx context.Context) (*sink, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{l: l, open: map[net.Conn]struct{}{}}
	s.conns.Go(s.accept)
	return s, nil
}

func (s *sink) addr() string { return s.l.Addr().String() }

func (s *sink) accept() {
	for {
		conn, err := s.l.Accept()
		if err != nil {
			return
		}
		s.conns.Go(func() { s.serve(conn) })
	}
}

func (s *sink) close() {
	_ = s.l.Close()
	s.unblock()
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.conns.Wait()
}

// keep records a connection, to be closed with the sink.
func (s *sink) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = struct{}{}
	return !s.closed
}

func (s *sink) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	_ = conn.Close()
}

func (s *sink) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = make(chan struct{})
}

func (s *sink) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked != nil {
		close(s.blocked)
		s.blocked = nil
	}
}

// pause waits while the sink is blocked.
func (s *sink) pause() {
	s.mu.Lock()
	blocked := s.blocked
	s.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
}

func (s *sink) reset() { s.messages.Store(0) }

// wait waits until n messages have arrived. More are an error, because a message was
// sent twice.
func (s *sink) wait(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.messages.Load() < int64(n) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages have arrived: %w", s.messages.Load(), n, ctx.Err())
		}
	}
	if have := s.messages.Load(); have > int64(n) {
		return fmt.Errorf("%d messages have arrived, want %d", have, n)
	}
	return nil
}

// serve supports as much SMTP as a client needs that makes no mistakes.
func (s *sink) serve(conn net.Conn) {
	defer s.forget(conn)
	if !s.keep(conn) {
		return
	}
	r, w := bufio.NewReaderSize(conn, 32<<10), bufio.NewWriter(conn)
	s.pause()
	_, _ = w.WriteString("220 sink.localhost ESMTP\r\n") // Flush returns the error
	for {
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		text, end := s.reply(line, r, w)
		_, _ = w.WriteString(text)
		if end {
			_ = w.Flush()
			return
		}
	}
}

// reply returns the reply to a command, and reads the message after DATA.
func (s *sink) reply(line []byte, r *bufio.Reader, w *bufio.Writer) (text string, end bool) {
	s.pause()
	switch verb := string(bytes.ToUpper(line[:min(4, len(line))])); verb {
	case "EHLO":
		return "250-sink.localhost\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 50000000\r\n", false
	case "DATA":
		_, _ = w.WriteString("354 go on\r\n")
		if w.Flush() != nil || discard(r) != nil {
			return "", true
		}
		s.messages.Add(1)
	case "QUIT":
		return "221 bye\r\n", true
	}
	return "250 2.0.0 ok\r\n", false
}

// discard reads a message up to the line with the dot.
func discard(r *bufio.Reader) error {
	for begins := true; ; {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if begins && string(piece) == ".\r\n" {
			return nil
		}
		begins = err == nil
	}
}
