package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// timeout is the time limit of a reply, with all that waits before it.
const timeout = time.Minute

// Dial connects to a server. The caller closes the connection.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// Sender is an SMTP client. It parses no more than it must, because it runs on the cores
// of the server.
type Sender struct {
	net.Conn
	r *bufio.Reader
}

// NewSender connects to an SMTP server and greets it.
func NewSender(ctx context.Context, address string) (*Sender, error) {
	conn, err := Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	s := &Sender{conn, bufio.NewReader(conn)}
	if err = s.Say(nil, 1); err == nil {
		err = s.Say([]byte("EHLO bench.localhost\r\n"), 1)
	}
	if err != nil {
		_ = conn.Close()
	}
	return s, err
}

// Say sends commands or a message and reads n replies. A refusal is an error.
func (s *Sender) Say(text []byte, n int) error {
	if err := s.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := s.Write(text); err != nil {
		return err
	}
	for n > 0 {
		line, err := s.r.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case len(line) < 4 || line[0] >= '4':
			return fmt.Errorf("refused: %s", strings.TrimSpace(string(line)))
		case line[3] == ' ':
			n--
		}
	}
	return nil
}

// Sink is go-smtp with nothing behind it: it counts messages and discards them. Its rate
// is what an SMTP server in Go can reach if it does nothing else, so the rate of a real
// server is best expressed as a share of it, measured in the same run.
type Sink struct {
	net.Listener
	server   *smtp.Server
	Messages atomic.Int64
	blocked  sync.RWMutex
}

// NewSink returns a sink that listens on a free port. Serve serves it.
func NewSink(ctx context.Context) (*Sink, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	s := &Sink{Listener: l}
	s.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return session{s}, nil }))
	s.server.Domain = "baseline.localhost"
	s.server.MaxRecipients = 100
	s.server.MaxMessageBytes = 50 << 20
	return s, err
}

// Serve accepts messages until Close.
func (s *Sink) Serve() error { return s.server.Serve(s.Listener) }

// Close disconnects all clients.
func (s *Sink) Close() error { return s.server.Close() }

// Block lets clients wait at MAIL, so that messages stay in their queue, until unblock.
func (s *Sink) Block() (unblock func()) {
	s.blocked.Lock()
	return sync.OnceFunc(s.blocked.Unlock)
}

type session struct{ *Sink }

// Mail implements smtp.Session.
func (s session) Mail(string, *smtp.MailOptions) error {
	s.blocked.RLock()
	defer s.blocked.RUnlock()
	return nil
}

// Rcpt implements smtp.Session.
func (session) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Data implements smtp.Session.
func (s session) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	s.Messages.Add(1)
	return err
}

// Reset implements smtp.Session.
func (session) Reset() {}

// Logout implements smtp.Session.
func (session) Logout() error { return nil }
