package inbound

import (
	"context"
	"io"
	"log/slog"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
)

// session is the transaction of one client.
type session struct {
	conn *conn
	login
	open  bool // after MAIL
	env   smtp.Envelope
	tried string // the recipient of the last RCPT
	to    []target
}

var _ gosmtp.AuthSession = (*session)(nil)

// Mail begins a transaction.
func (s *session) Mail(from string, opts *gosmtp.MailOptions) error {
	from = smtp.QuoteMailbox(from)
	switch {
	case s.conn.helo == "":
		return smtpError(replyHelloFirst)
	case s.open:
		return smtpError(replyNestedMail)
	case opts.Size > s.conn.server.cfg.MaxSize:
		return smtpError(replyTooLarge)
	case from != "" && !smtp.IsMailbox(from):
		return smtpError(replyBadSender)
	case !opts.UTF8 && !smtp.IsASCII(from):
		return smtpError(replyNeedsUTF8)
	}
	if r := s.checkLogin(); r != nil {
		return smtpError(r)
	}
	s.conn.useful = time.Now()
	s.conn.deadline = s.conn.useful.Add(s.conn.server.cfg.TransactionTimeout)
	s.open = true
	s.env = smtp.Envelope{
		MailFrom: from, RemoteAddr: s.conn.ip.String(), HELO: s.conn.helo, TLS: s.conn.encrypted(), UTF8: opts.UTF8,
	}
	return nil
}

// Rcpt looks up a recipient and adds it. Of a submission, any valid address will do.
func (s *session) Rcpt(rcpt string, _ *gosmtp.RcptOptions) error {
	rcpt = smtp.QuoteMailbox(rcpt)
	s.tried = rcpt
	server := s.conn.server
	switch {
	case !s.open:
		return smtpError(replyMailFirst)
	case !smtp.IsMailbox(rcpt), server.cfg.Submission != nil && mail.ValidAddress(rcpt) != nil:
		return smtpError(replyBadRecipient)
	case !s.env.UTF8 && !smtp.IsASCII(rcpt):
		return smtpError(replyNeedsUTF8)
	}
	if server.cfg.Submission == nil {
		ctx, cancel := context.WithTimeout(server.ctx, lookupTimeout)
		defer cancel()
		t, err := server.receiver.target(ctx, rcpt)
		if err == nil {
			err = server.receiver.hasRoom([]target{t})
		}
		if err != nil {
			r := s.refusal("look up recipient", err)
			if r == replyNoInbox && !server.unknownRcpts.allow(s.conn.from) {
				r = replyGuessing
			}
			if r == replyInboxFull {
				server.cfg.Log.LogAttrs(server.ctx, slog.LevelInfo, "recipient deferred: the inbox or its account is full",
					slog.String("inbox_id", t.inbox.ID), slog.String("remote_ip", s.env.RemoteAddr))
			}
			return smtpError(r)
		}
		s.to = addTarget(s.to, t)
	}
	s.conn.useful = time.Now()
	s.env.RcptTo = append(s.env.RcptTo, rcpt)
	return nil
}

// Data receives and stores a message. The library ends the session if it panics.
func (s *session) Data(r io.Reader) error {
	if len(s.env.RcptTo) == 0 { // the library remembers recipients from before STARTTLS
		return smtpError(replyMailFirst)
	}
	server := s.conn.server
	raw := server.receiver.NewSpool()
	defer server.receiver.close(server.ctx, raw)
	sink := &crlf{to: raw, limit: server.cfg.MaxSize, normalize: server.cfg.Normalize}
	most := server.cfg.MaxSize + overrun
	n, err := io.CopyBuffer(sink, io.LimitReader(r, most), make([]byte, 4<<10)) // io.Copy allocates 32 KiB for each message
	switch {
	case err != nil:
		sink.fail(replyUnfinished)
	case n == most:
		sink.fail(replyTooLarge)
		s.conn.end = io.EOF // the library reads on to the end of the message
	case s.conn.nul:
		sink.fail(replyNUL)
	}
	var text string
	if err = sink.fault; err == nil {
		text, err = s.store(raw)
	}
	if err != nil {
		return smtpError(s.refusal("store", err))
	}
	s.conn.commands, s.conn.errors, s.conn.useful = 0, 0, time.Now()
	return smtpError(reply(250, "2.0.0", text)) // the library sends it as the reply
}

// store stores or submits a complete message, and returns the text of the reply.
func (s *session) store(raw *spool.Spool) (string, error) {
	server := s.conn.server
	if server.cfg.Submission != nil {
		text, err := s.submit(server.ctx, s.env, raw)
		if err == nil {
			s.logMail("mail submitted", slog.String("result", text), slog.Int64("size", raw.Size()))
		}
		return text, err
	}
	stored, err := server.receiver.deliver(server.ctx, s.env, s.to, raw, nil)
	for i := range stored {
		m := &stored[i]
		s.logMail("mail received", slog.String("message_id", m.ID), slog.String("inbox_id", m.InboxID), slog.Int64("size", m.Size))
	}
	return "Message stored", err
}

func (s *session) logMail(what string, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("remote_ip", s.env.RemoteAddr), slog.Bool("tls", s.env.TLS))
	s.conn.server.cfg.Log.LogAttrs(s.conn.server.ctx, slog.LevelInfo, what, attrs...)
}

// Reset ends the transaction.
func (s *session) Reset() {
	s.open, s.env, s.tried, s.to = false, smtp.Envelope{}, "", nil
	s.conn.deadline = time.Time{}
}

// Logout does nothing: closing the connection ends the session.
func (s *session) Logout() error { return nil }

// refusal returns the reply for an error of the receive path. If the fault is ours, such
// as an outage that lets every message fail, it is logged at most once a second.
func (s *session) refusal(step string, err error) *smtp.Reply {
	r, ours := replyTo(err)
	server := s.conn.server
	logged, _ := server.faults.Load(step)
	if at, _ := logged.(time.Time); ours && time.Since(at) >= time.Second {
		server.faults.Store(step, time.Now())
		server.cfg.Log.WarnContext(server.ctx, "messages refused for now", "step", step, "error", err, "smtp_code", r.Code)
	}
	return r
}
