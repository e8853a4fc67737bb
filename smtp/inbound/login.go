package inbound

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

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
type Submit func(ctx context.Context, env smtp.Envelope, raw *Spool) (text string, err error)

// login is the state of AUTH in a session (RFC 4954).
type login struct {
	submit        Submit // nil before a client may submit
	authenticated Submit // submit, once AUTH succeeded
	challenged    bool   // the next line is a response to a challenge
	failed        int    // failed logins
	elsewhere     bool   // the client tried AUTH on a server for receiving
}

var mechanisms = []string{sasl.Plain, sasl.Login}

// mayAuth reports whether a key may be sent on this connection: it is encrypted,
// or stays on this host.
func (g *guard) mayAuth() bool { return g.wire.encrypted() || g.server.sameHost(g.wire) }

// onLoopback reports whether the connection has loopback addresses on both sides.
func (w *wire) onLoopback() bool {
	local, ok := w.raw.LocalAddr().(*net.TCPAddr)
	return ok && local.IP.IsLoopback() && w.ip.IsLoopback()
}

// auth checks AUTH and passes it on. A server for receiving says where
// submissions go.
func (g *guard) auth(cmd command) {
	cfg := &g.server.cfg
	words := strings.Fields(cmd.args)
	switch {
	case cfg.Submission == nil && cfg.SubmitAt == "":
		g.reply(replyNotOffered)
	case cfg.Submission == nil:
		g.elsewhere = true
		g.reply(g.replyElsewhere(502, "5.5.1"))
	case g.helo == "":
		g.reply(replyHelloFirst)
	case !g.mayAuth():
		g.reply(replyAuthTLS)
	case g.authenticated != nil:
		g.reply(replyLoggedIn)
	case g.session.open:
		g.reply(replyAuthInMail)
	case len(words) == 0 || len(words) > 2 || len(words) == 2 && !isResponse(words[1]):
		g.reply(replySyntax)
	case !isMechanism(words[0]):
		g.reply(replyMechanism)
	default:
		g.pass("AUTH "+strings.Join(words, " "), replyLogin)
	}
}

func (g *guard) replyElsewhere(code int, enhanced string) *smtp.Reply {
	return &smtp.Reply{Code: code, Enhanced: enhanced, Text: "This port only receives mail. To submit mail, use " + g.server.cfg.SubmitAt}
}

func isMechanism(name string) bool {
	return strings.EqualFold(name, sasl.Plain) || strings.EqualFold(name, sasl.Login)
}

// isResponse reports whether text is a response in base64; "=" is an empty one.
func isResponse(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return text == "=" || err == nil
}

// readResponse reads a client's response to a challenge and passes it on. A
// malformed one cancels AUTH, as "*" does.
func (g *guard) readResponse() {
	g.challenged = false
	line, ok := g.readLine()
	if !ok {
		return
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok {
		g.hangUp(replyCommandEnd)
		return
	}
	if !isResponse(text) {
		text = "*"
	}
	if enough := g.countCommand(command{verb: "AUTH"}); enough != nil {
		g.hangUp(enough)
		return
	}
	g.passed = append([]byte(text), smtp.CRLF...)
}

// checkLogin returns the refusal of MAIL by a client that has to log in first, or
// elsewhere.
func (g *guard) checkLogin() *smtp.Reply {
	switch {
	case g.elsewhere:
		return g.replyElsewhere(530, "5.7.0")
	case g.server.cfg.Submission == nil || g.submit != nil:
		return nil
	case !g.mayAuth():
		return replyNeedsTLS
	}
	return replyNeedsLogin
}

var _ gosmtp.AuthSession = (*session)(nil)

// AuthMechanisms implements gosmtp.AuthSession. A server for receiving offers AUTH
// too if there is another for submission: a client with a password would otherwise
// not notice that it uses the wrong port.
func (s *session) AuthMechanisms() []string {
	g := s.guard
	if cfg := &g.server.cfg; cfg.Submission == nil && cfg.SubmitAt == "" || !g.mayAuth() || g.authenticated != nil {
		return nil
	}
	return mechanisms
}

func (s *session) Auth(mechanism string) (sasl.Server, error) {
	if strings.EqualFold(mechanism, sasl.Login) {
		return &loginServer{login: s.logIn}, nil
	}
	plain := sasl.NewPlainServer(func(_, _, password string) error { return s.logIn(password) })
	return plainServer{plain}, nil
}

func (s *session) logIn(key string) (err error) {
	defer s.recoverPanic(&err)
	g := s.guard
	server := g.server
	ctx, cancel := context.WithTimeout(server.ctx, lookupTimeout)
	defer cancel()
	submit, err := server.cfg.Submission.Login(ctx, key, g.wire.ip)
	if err == nil {
		g.submit, g.authenticated = submit, submit
		g.wire.earn()
		return nil
	}
	r := s.refusal("log in", err)
	if g.failed++; g.failed >= maxLogins && r.Code != 421 {
		// The client reads why the last login failed, then the connection ends.
		g.over = true
	}
	server.log.LogAttrs(server.ctx, slog.LevelInfo, "login refused",
		slog.String("remote_ip", g.wire.ip.String()), slog.Int("smtp_code", r.Code))
	return engineError(r)
}

// plainServer gives a malformed response the reply of RFC 4954.
type plainServer struct{ sasl.Server }

func (p plainServer) Next(response []byte) (challenge []byte, done bool, err error) {
	challenge, done, err = p.Server.Next(response)
	if _, isReply := errors.AsType[*gosmtp.SMTPError](err); err != nil && !isReply {
		err = engineError(replyBadResponse)
	}
	return challenge, done, err
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

// passOn submits a complete message. It returns nil when that succeeded.
func (s *session) passOn(raw *Spool) *smtp.Reply {
	g := s.guard
	text, err := g.submit(g.server.ctx, s.env, raw)
	if err != nil {
		return s.refusal("submit", err)
	}
	g.success = reply(250, "2.0.0", text)
	g.commandCounts = commandCounts{}
	g.wire.earn()
	g.server.log.LogAttrs(g.server.ctx, slog.LevelInfo, "mail submitted",
		slog.String("result", text), slog.Int64("size", raw.Size()), slog.String("remote_ip", s.env.RemoteAddr), slog.Bool("tls", s.env.TLS))
	return nil
}
