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

// sink is an SMTP server that counts mails and throws them away. While it is
// held it answers nothing, as a server does that is slow: mail waits in the
// queue of whoever has it.
type sink struct {
	l     net.Listener
	mails atomic.Int64
	conns sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	held   chan struct{} // closed by release; nil while it is not held
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
	s.release()
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.conns.Wait()
}

// keep notes a connection, to be closed with the sink.
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

func (s *sink) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

func (s *sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		close(s.held)
		s.held = nil
	}
}

// pause waits while the sink is held.
func (s *sink) pause() {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (s *sink) reset() { s.mails.Store(0) }

// wait waits until n mails have come. More than that are an error: a mail was
// sent twice.
func (s *sink) wait(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.mails.Load() < int64(n) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d mails have come: %w", s.mails.Load(), n, ctx.Err())
		}
	}
	if have := s.mails.Load(); have > int64(n) {
		return fmt.Errorf("%d mails have come, of %d", have, n)
	}
	return nil
}

// serve speaks as much SMTP as a client needs that makes no mistakes.
func (s *sink) serve(conn net.Conn) {
	defer s.forget(conn)
	if !s.keep(conn) {
		return
	}
	r, w := bufio.NewReaderSize(conn, 32<<10), bufio.NewWriter(conn)
	s.pause()
	_, _ = w.WriteString("220 sink.localhost ESMTP\r\n") // Flush has the error
	for {
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		answer, end := s.answer(line, r, w)
		_, _ = w.WriteString(answer)
		if end {
			_ = w.Flush()
			return
		}
	}
}

// answer answers a command, and takes the mail after DATA.
func (s *sink) answer(line []byte, r *bufio.Reader, w *bufio.Writer) (answer string, end bool) {
	s.pause()
	switch verb := string(bytes.ToUpper(line[:min(4, len(line))])); verb {
	case "EHLO":
		return "250-sink.localhost\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 50000000\r\n", false
	case "DATA":
		_, _ = w.WriteString("354 go on\r\n")
		if w.Flush() != nil || discard(r) != nil {
			return "", true
		}
		s.mails.Add(1)
	case "QUIT":
		return "221 bye\r\n", true
	}
	return "250 2.0.0 ok\r\n", false
}

// discard reads a mail up to the line with the dot.
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
