package smtp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/postroom/postroom/store"
)

// lookupTimeout bounds the search for a recipient.
const lookupTimeout = 10 * time.Second

// session is the dialog with one client, from the greeting until it is gone. It
// is one goroutine: it reads a command, does it, and answers.
type session struct {
	server *Server
	wire   *wire
	conduct
	over bool // nothing more is read

	helo   string // what the client calls itself; "" before HELO or EHLO
	open   bool   // MAIL was accepted
	env    Envelope
	rcpts  int // recipients that were accepted
	to     []target
	chunks *chunks // nil before the first BDAT
}

// run serves the client until it or we have had enough.
func (s *session) run() {
	defer s.end()
	s.wire.sayLines("220", s.server.cfg.Hostname+" ESMTP")
	for !s.over {
		line, err := s.wire.readLine()
		switch {
		case errors.Is(err, errLineTooLong):
			s.hangUp(replyCommandLine)
		case err != nil:
			s.lose(err)
		default:
			s.take(line)
		}
	}
}

// end leaves nothing behind. A panic ends this session alone.
func (s *session) end() {
	if p := recover(); p != nil {
		s.server.log.ErrorContext(s.server.ctx, "panic in an SMTP session", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.wire.say(replyPanic)
	}
	s.reset()
	s.wire.close()
	s.server.running.Done()
}

// take does what one line says.
func (s *session) take(line []byte) {
	cmd, fault := parseCommand(line)
	if fault == replyCommandEnd {
		s.hangUp(fault)
		return
	}
	if enough := s.countCommand(cmd); enough != nil {
		s.hangUp(enough)
		return
	}
	if fault != nil {
		s.answer(fault)
		return
	}
	s.do(cmd)
}

// do finds the command. Those that RFC 5321 section 4.5.1 asks for are all here.
func (s *session) do(cmd command) {
	switch cmd.verb {
	case "EHLO", "HELO":
		s.hello(cmd)
	case "MAIL":
		s.answer(s.mail(cmd))
	case "RCPT":
		s.rcpt(cmd)
	case "DATA":
		s.data(cmd)
	case "BDAT":
		s.bdat(cmd)
	case "RSET":
		s.reset()
		s.answer(replyOK)
	case "NOOP":
		s.answer(replyOK)
	case "VRFY":
		s.answer(replyVerify)
	case "HELP":
		s.answer(replyHelp)
	case "QUIT":
		s.over = true
		s.wire.say(replyBye)
	case "STARTTLS":
		s.startTLS(cmd)
	case "EXPN", "AUTH", "ETRN", "TURN", "SEND", "SOML", "SAML":
		s.answer(replyNotOffered)
	case "GET", "POST", "PUT", "CONNECT":
		s.hangUp(replyNotSMTP) // a browser that was made to talk to us
	default:
		s.answer(replyUnknown)
	}
}

// answer says r. It counts what the client did wrong, takes its time with one
// that goes on doing so, and has enough of it at some point.
func (s *session) answer(r *Reply) {
	if r.Code >= 500 {
		s.errors++
		if s.errors >= maxErrors {
			r = replyErrors
		}
		if s.errors >= slowErrors {
			s.server.rest(s.wire, errorPause)
		}
	}
	if r.Code == 421 {
		s.hangUp(r)
		return
	}
	s.wire.say(r)
}

// hangUp says r as the last word, to a client that may have sent on.
func (s *session) hangUp(r *Reply) {
	s.over, s.wire.unread = true, true
	s.wire.say(r)
}

// lose ends the session after a read that failed.
func (s *session) lose(err error) {
	if r := lastWords(err); r != nil {
		s.wire.say(r)
	}
	s.over = true
}

// hello answers EHLO and HELO, which both begin anew (RFC 5321 section 4.1.4).
func (s *session) hello(cmd command) {
	if cmd.args == "" || len(cmd.args) > maxPath {
		s.answer(replySyntax)
		return
	}
	s.reset()
	if s.helo == "" {
		s.wire.earn()
	}
	s.helo = cmd.args
	cfg := &s.server.cfg
	if cmd.verb == "HELO" {
		s.wire.sayLines("250", cfg.Hostname)
		return
	}
	offers := []string{
		cfg.Hostname, "PIPELINING", "8BITMIME", "SMTPUTF8", "CHUNKING", "ENHANCEDSTATUSCODES",
		"SIZE " + strconv.FormatInt(cfg.MaxSize, 10), "LIMITS RCPTMAX=" + strconv.Itoa(cfg.MaxRecipients),
	}
	if cfg.TLS != nil && !s.wire.encrypted() {
		offers = append(offers, "STARTTLS")
	}
	s.wire.sayLines("250", offers...)
}

// startTLS begins a new session under encryption, of which nothing is known yet
// (RFC 3207 section 4.2).
func (s *session) startTLS(cmd command) {
	switch {
	case s.server.cfg.TLS == nil || s.wire.encrypted():
		s.answer(replyNotOffered)
		return
	case cmd.args != "":
		s.answer(replySyntax)
		return
	}
	s.reset()
	s.helo = ""
	s.wire.say(replyStartTLS)
	if err := s.wire.encrypt(s.server.cfg.TLS); err != nil {
		s.lose(err)
		return
	}
	s.wire.earn()
}

// reset ends the transaction.
func (s *session) reset() {
	if s.chunks != nil {
		s.server.receiver.close(s.server.ctx, s.chunks.raw)
	}
	s.open, s.env, s.rcpts, s.to, s.chunks = false, Envelope{}, 0, nil, nil
	s.wire.finish()
}

// refusal is the answer to an error of the receive path, which is logged when the
// fault is ours.
func (s *session) refusal(step string, err error) *Reply {
	answer, ours := replyTo(err)
	if ours {
		s.server.log.ErrorContext(s.server.ctx, "mail put off", "step", step, "error", err, "smtp_code", answer.Code)
	}
	return answer
}

// store stores a mail that has come in whole, and ends the transaction.
func (s *session) store(raw *Spool) *Reply {
	stored, err := s.server.receiver.deliver(s.server.ctx, s.env, s.to, raw, nil)
	if err != nil {
		return s.refusal("store", err)
	}
	s.conduct = conduct{}
	s.wire.earn()
	s.logStored(stored)
	return replyStored
}

// logStored notes what was accepted.
func (s *session) logStored(stored []store.Message) {
	for i := range stored {
		m := &stored[i]
		s.server.log.LogAttrs(s.server.ctx, slog.LevelInfo, "mail received",
			slog.String("message_id", m.ID), slog.String("inbox_id", m.InboxID), slog.Int64("size", m.Size),
			slog.String("remote_ip", s.env.RemoteAddr), slog.Bool("tls", s.env.TLS))
	}
}

// lookup finds whom mail for a recipient is for.
func (s *session) lookup(rcpt string) (target, error) {
	ctx, cancel := context.WithTimeout(s.server.ctx, lookupTimeout)
	defer cancel()
	return s.server.receiver.target(ctx, rcpt)
}
