package inbound

import (
	"context"
	"io"
	"log/slog"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/smtp"
)

// session is the transaction of one client, as the SMTP library drives it. The
// guard has checked each command before.
type session struct {
	guard *guard

	open   bool // after MAIL
	env    smtp.Envelope
	rcpts  int // accepted recipients
	to     []target
	chunks *chunks // nil before the first BDAT
}

var _ gosmtp.Session = (*session)(nil)

// Mail begins a transaction. It uses the path that the guard has parsed, because
// the library removes quotes.
func (s *session) Mail(_ string, opts *gosmtp.MailOptions) error {
	w := s.guard.wire
	w.begin()
	w.earn()
	s.open = true
	s.env = smtp.Envelope{
		MailFrom:   s.guard.mailbox,
		RemoteAddr: w.ip.String(),
		HELO:       s.guard.helo,
		TLS:        w.encrypted(),
		UTF8:       opts.UTF8,
	}
	return nil
}

// Rcpt looks up a recipient and adds it. Of a submission, any valid address will do.
func (s *session) Rcpt(string, *gosmtp.RcptOptions) (err error) {
	defer s.recoverPanic(&err)
	rcpt, server := s.guard.mailbox, s.guard.server
	if server.cfg.Submission == nil {
		ctx, cancel := context.WithTimeout(server.ctx, lookupTimeout)
		defer cancel()
		t, err := server.receiver.target(ctx, rcpt)
		if err == nil {
			err = server.receiver.hasRoom([]target{t})
		}
		if err != nil {
			r := s.refusal("look up recipient", err)
			if r == replyNoInbox && !server.unknownRcpts.allow(s.guard.wire.from) {
				r = replyGuessing
			}
			if r == replyInboxFull {
				server.log.LogAttrs(server.ctx, slog.LevelInfo, "recipient deferred: the inbox or its account is full",
					slog.String("inbox_id", t.inbox.ID), slog.String("remote_ip", s.env.RemoteAddr))
			}
			return engineError(r)
		}
		s.to = addTarget(s.to, t)
	} else if mail.ValidAddress(rcpt) != nil {
		return engineError(replyBadRecipient)
	}
	s.guard.wire.earn()
	s.rcpts++
	s.env.RcptTo = append(s.env.RcptTo, rcpt)
	return nil
}

// Data receives and stores the message. It does not use the library's reader,
// because the guard determines the end of the message.
func (s *session) Data(io.Reader) (err error) {
	defer s.Reset()
	defer s.recoverPanic(&err)
	s.guard.passed = endOfData
	var r *smtp.Reply
	if s.chunks != nil {
		r = s.endChunks()
	} else {
		r = s.receiveData()
	}
	if r != nil {
		return engineError(r)
	}
	return nil
}

// receiveData reads a message after DATA and stores it. It returns nil when it is
// stored.
func (s *session) receiveData() *smtp.Reply {
	receiver, ctx := s.guard.server.receiver, s.guard.server.ctx
	raw := receiver.NewSpool()
	defer receiver.close(ctx, raw)
	err := s.guard.wire.readData(s.newSink(raw))
	s.guard.over = s.guard.over || s.guard.wire.unread
	if err != nil {
		return s.refusal("read data", err)
	}
	return s.store(raw)
}

func (s *session) newSink(raw *Spool) *dataSink {
	cfg := &s.guard.server.cfg
	return &dataSink{spool: raw, limit: cfg.MaxSize, normalize: cfg.Normalize}
}

// store stores a complete message. It returns nil when it is stored.
func (s *session) store(raw *Spool) *smtp.Reply {
	server := s.guard.server
	if server.cfg.Submission != nil {
		return s.passOn(raw)
	}
	stored, err := server.receiver.deliver(server.ctx, s.env, s.to, raw, nil)
	if err != nil {
		return s.refusal("store", err)
	}
	s.guard.commandCounts = commandCounts{}
	s.guard.wire.earn()
	for i := range stored {
		m := &stored[i]
		server.log.LogAttrs(server.ctx, slog.LevelInfo, "mail received",
			slog.String("message_id", m.ID), slog.String("inbox_id", m.InboxID), slog.Int64("size", m.Size),
			slog.String("remote_ip", s.env.RemoteAddr), slog.Bool("tls", s.env.TLS))
	}
	return nil
}

// Reset ends the transaction.
func (s *session) Reset() {
	server := s.guard.server
	if s.chunks != nil {
		server.receiver.close(server.ctx, s.chunks.raw)
	}
	s.open, s.env, s.rcpts, s.to, s.chunks = false, smtp.Envelope{}, 0, nil, nil
	s.guard.wire.finish()
}

// Logout does nothing: Close of the guard ends the session.
func (s *session) Logout() error { return nil }

// recoverPanic turns a panic into the error that ends the session.
func (s *session) recoverPanic(err *error) {
	if v := recover(); v != nil {
		*err = engineError(s.guard.panicked(v))
	}
}

// refusal returns the reply for an error of the receive path, and logs the error
// if the fault is ours.
func (s *session) refusal(step string, err error) *smtp.Reply {
	r, ours := replyTo(err)
	if ours {
		server := s.guard.server
		server.faults.log(server.ctx, step, err, r.Code)
	}
	return r
}
