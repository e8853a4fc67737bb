package smtp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/store"
)

const (
	// lookupTimeout bounds the search for a recipient.
	lookupTimeout = 10 * time.Second
	// maxRefused is how many recipients a client may try in vain between two
	// accepted mails.
	maxRefused = 50
)

// session is what one client says between EHLO and QUIT. All its errors are
// *gosmtp.SMTPError: go-smtp would show others to the client.
//
// go-smtp calls Data from a goroutine of its own when the mail comes by BDAT, so
// that Reset may run beside it.
type session struct {
	server *Server
	wire   *wire
	conn   *gosmtp.Conn

	mu      sync.Mutex
	open    bool // MAIL was accepted
	env     Envelope
	to      []target
	refused int // recipients since the last accepted mail
}

var _ gosmtp.Session = (*session)(nil)

// Mail implements gosmtp.Session. go-smtp would keep the recipients of a
// transaction that a second MAIL begins anew.
func (s *session) Mail(from string, opts *gosmtp.MailOptions) (err error) {
	defer s.recover(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return replyNestedMail
	}
	if strings.ContainsFunc(from, isControl) || len(from) > maxPath {
		return replyBadSender
	}
	s.wire.begin()
	s.open = true
	s.env = Envelope{
		MailFrom:   from,
		RemoteAddr: s.wire.ip.String(),
		HELO:       s.conn.Hostname(),
		TLS:        s.wire.conn != s.wire.raw,
		UTF8:       opts.UTF8,
	}
	return nil
}

// maxPath is the longest reverse-path, in bytes (RFC 5321 section 4.5.3.1.3).
const maxPath = 254

// Rcpt implements gosmtp.Session.
func (s *session) Rcpt(rcpt string, _ *gosmtp.RcptOptions) (err error) {
	defer s.recover(&err)
	ctx, cancel := context.WithTimeout(s.server.ctx, lookupTimeout)
	defer cancel()
	in, tag, err := s.server.cfg.Receiver.Resolve(ctx, rcpt)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.refused++; s.refused > maxRefused {
			s.wire.ended.Store(true)
			return replyTooManyRcpts
		}
		return s.answer("look up recipient", err)
	}
	s.env.RcptTo = append(s.env.RcptTo, rcpt)
	s.to = addTarget(s.to, target{rcpt, in, tag})
	return nil
}

// Data implements gosmtp.Session. It returns nil only when the mail is stored.
func (s *session) Data(r io.Reader) (err error) {
	defer s.recover(&err)
	s.server.running.Add(1)
	defer s.server.running.Done()
	s.mu.Lock()
	env, to := s.env, s.to
	s.mu.Unlock()

	receiver := s.server.cfg.Receiver
	raw := receiver.NewSpool()
	defer receiver.close(s.server.ctx, raw)
	if err := s.read(r, raw); err != nil {
		return s.answer("read data", err)
	}
	stored, err := receiver.deliver(s.server.ctx, env, to, raw, nil)
	if err != nil {
		return s.answer("store", err)
	}
	s.mu.Lock()
	s.refused = 0
	s.mu.Unlock()
	s.wire.watch = commandWatch{}
	s.logStored(env, stored)
	return nil
}

// read spools the data: of DATA straight from the connection, of BDAT through
// the pipe in which go-smtp joins the chunks.
func (s *session) read(r io.Reader, raw *Spool) error {
	pipe, ok := r.(*io.PipeReader)
	if !ok {
		return s.wire.readData(raw)
	}
	d := &dataSink{spool: raw, limit: s.server.cfg.MaxSize}
	if _, err := io.Copy(d, pipe); err != nil { // in pieces of the client's chunks
		return err
	}
	return d.finish()
}

// Reset implements gosmtp.Session.
func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.env, s.to = false, Envelope{}, nil
	s.wire.finish()
}

// Logout implements gosmtp.Session.
func (s *session) Logout() error { return nil }

// answer turns an error of the receive path into what the client is told, and
// logs it when the fault is ours.
func (s *session) answer(step string, err error) error {
	answer, ours := replyTo(err)
	if ours {
		s.server.log.ErrorContext(s.server.ctx, "mail put off", "step", step, "error", err, "smtp_code", answer.Code)
	}
	return answer
}

// logStored notes what was accepted.
func (s *session) logStored(env Envelope, stored []store.Message) {
	for i := range stored {
		m := &stored[i]
		s.server.log.LogAttrs(s.server.ctx, slog.LevelInfo, "mail received",
			slog.String("message_id", m.ID), slog.String("inbox_id", m.InboxID), slog.Int64("size", m.Size),
			slog.String("remote_ip", env.RemoteAddr), slog.Bool("tls", env.TLS))
	}
}

// recover turns a panic into an answer that ends this session alone.
func (s *session) recover(err *error) {
	if p := recover(); p != nil {
		s.server.log.ErrorContext(s.server.ctx, "panic in an SMTP session", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.wire.ended.Store(true)
		*err = replyPanic
	}
}
