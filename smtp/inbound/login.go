package inbound

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
)

// Submission accepts messages of clients that log in with an API key.
type Submission struct {
	// Login returns the function that submits messages with an API key. Its error
	// is a *smtp.Reply or internal.
	Login func(ctx context.Context, key string, from netip.Addr) (Submit, error)
	// Anonymous, if not nil, submits messages of clients that do not log in. It is
	// for development.
	Anonymous Submit
}

// Submit submits a message and returns the text of the reply. Its error is a
// *smtp.Reply or internal. The spool is valid until Submit returns.
type Submit func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (text string, err error)

// login is the state of AUTH in a session (RFC 4954).
type login struct {
	submit        Submit // nil before a client may submit
	authenticated bool   // AUTH succeeded
	failed        int    // failed logins
}

// mayAuth reports whether a key may be sent on this connection: it is encrypted,
// stays on this host, or is not needed.
func (s *session) mayAuth() bool {
	server := s.conn.server
	return s.conn.encrypted() || server.sameHost(s.conn.ip) || server.cfg.Submission != nil && server.cfg.Submission.Anonymous != nil
}

// AuthMechanisms returns what is offered.
func (s *session) AuthMechanisms() []string {
	if s.conn.server.cfg.Submission == nil || !s.mayAuth() || s.authenticated {
		return nil
	}
	return []string{sasl.Plain, sasl.Login}
}

// Auth begins a login.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	switch {
	case s.conn.server.cfg.Submission == nil:
		return nil, smtpError(replyNotOffered)
	case s.conn.helo == "":
		return nil, smtpError(replyHelloFirst)
	case !s.mayAuth():
		return nil, smtpError(replyAuthTLS)
	}
	switch mechanism {
	case sasl.Plain:
		return sasl.NewPlainServer(func(_, _, password string) error { return s.logIn(password) }), nil
	case sasl.Login:
		return &loginServer{login: s.logIn}, nil
	}
	return nil, gosmtp.ErrAuthUnknownMechanism
}

// checkLogin returns the refusal of MAIL by a client that has to log in first.
func (s *session) checkLogin() *smtp.Reply {
	switch {
	case s.conn.server.cfg.Submission == nil || s.submit != nil:
		return nil
	case !s.mayAuth():
		return replyNeedsTLS
	}
	return replyNeedsLogin
}

func (s *session) logIn(key string) error {
	server := s.conn.server
	ctx, cancel := context.WithTimeout(server.ctx, lookupTimeout)
	defer cancel()
	submit, err := server.cfg.Submission.Login(ctx, key, s.conn.ip)
	if err == nil {
		s.submit, s.authenticated = submit, true
		s.conn.useful = time.Now()
		return nil
	}
	r := s.refusal("log in", err)
	if s.failed++; s.failed >= maxLogins {
		s.conn.end = io.EOF // the client reads why the last login failed, then the connection ends
	}
	server.cfg.Log.LogAttrs(server.ctx, slog.LevelInfo, "login refused",
		slog.String("remote_ip", s.conn.ip.String()), slog.Int("smtp_code", r.Code))
	return smtpError(r)
}

// loginServer is the mechanism LOGIN, which the library only has for clients. The
// user name is not used.
type loginServer struct {
	login func(password string) error
	asked int // challenges sent
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response == nil && l.asked == 0 {
		l.asked++
		return []byte("Username:"), false, nil
	}
	if l.asked < 2 {
		l.asked = 2
		return []byte("Password:"), false, nil
	}
	return nil, true, l.login(string(response))
}
