package inbound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/postroom/postroom/smtp"
)

// guard is the connection as the SMTP library sees it. The library keeps the
// state of the dialogue, calls the session and replies. The guard reads the
// network and passes on one checked command at a time, in canonical form:
//
//   - A line is passed on when all of it has arrived, ends with CRLF, and has no
//     control characters.
//   - A command in the wrong order, or with arguments that are malformed, is
//     refused here.
//   - The guard alone decides where a message ends, after DATA and in the chunks
//     of BDAT. Bytes of a message never reach the library.
//   - A client that sends too much, too slowly or too many errors is cut off.
//
// The library runs each connection in one goroutine, which is the only one that
// uses the guard.
type guard struct {
	net.Conn
	server  *Server
	wire    *wire
	session *session
	commandCounts
	login

	helo      string // the client's name in HELO or EHLO; "" before
	over      bool   // stop reading
	plainText bool   // TLS must start before the greeting

	passed    []byte      // the unread rest of the command that was passed on
	mailbox   string      // argument of the MAIL or RCPT that was passed on
	sender    string      // argument of the last MAIL that was passed on
	recipient string      // argument of the last RCPT after it
	success   *smtp.Reply // reply on success; nil keeps the library's
	silent    bool        // discard the library's 354 reply

	refused Refusal // what OnRefused gets; without a Count if nothing was refused
}

func newGuard(s *Server, w *wire) *guard {
	g := &guard{Conn: w.raw, server: s, wire: w, plainText: s.cfg.ImplicitTLS}
	if sub := s.cfg.Submission; sub != nil {
		g.submit = sub.Anonymous
	}
	g.session = &session{guard: g}
	g.success = reply(220, "", s.cfg.Hostname+" ESMTP")
	return g
}

// Read returns the next command, or io.EOF when the connection should be closed.
func (g *guard) Read(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			g.wire.say(g.panicked(v))
			n, err = 0, io.EOF
		}
	}()
	for len(g.passed) == 0 {
		if g.over {
			return 0, io.EOF
		}
		if g.challenged {
			g.readResponse()
		} else {
			g.readCommand()
		}
	}
	n = copy(p, g.passed)
	g.passed = g.passed[n:]
	return n, nil
}

// Write takes one line of a reply from the library, which flushes after each.
func (g *guard) Write(line []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			g.wire.say(g.panicked(v))
			n, err = 0, io.ErrClosedPipe
		}
	}()
	if g.plainText {
		g.plainText = false
		g.encrypt()
	}
	g.relay(bytes.TrimSuffix(line, smtp.CRLF))
	return len(line), nil
}

// Close ends the session. The library calls it once or twice.
func (g *guard) Close() error {
	if g.server == nil {
		return nil
	}
	g.over = true
	g.session.Reset()
	g.wire.close()
	if onRefused := g.server.cfg.OnRefused; onRefused != nil && g.refused.Count > 0 {
		g.refused.IP, g.refused.HELO = g.wire.ip.String(), g.helo
		onRefused(g.refused)
	}
	g.server.running.Done()
	g.server = nil
	return nil
}

// panicked ends this session alone and returns its last reply. The library does
// not recover from a panic while it reads or writes.
func (g *guard) panicked(v any) *smtp.Reply {
	g.server.log.ErrorContext(g.server.ctx, "panic in an SMTP session", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	g.over = true
	return replyPanic
}

// relay sends a line of the library to the client. A success is replaced with our
// own reply.
func (g *guard) relay(line []byte) {
	if g.silent && bytes.HasPrefix(line, []byte("354 ")) {
		g.silent = false
		return
	}
	if bytes.HasPrefix(line, []byte("250-Hello ")) { // EHLO
		g.wire.sayMore(g.server.cfg.Hostname)
		if g.server.cfg.TLS != nil && !g.wire.encrypted() && g.authenticated == nil {
			g.wire.sayMore("STARTTLS")
		}
		return
	}
	if bytes.HasPrefix(line, []byte("334 ")) {
		g.challenged = true
		g.wire.say(reply(334, "", string(line[4:])))
		return
	}
	code, err := strconv.Atoi(string(line[:min(3, len(line))]))
	if err != nil || len(line) < 5 {
		panic(fmt.Sprintf("malformed reply %q", line))
	}
	switch {
	case line[3] == '-':
		g.wire.sayMore(string(line[4:]))
	case code == replyGoAhead.Code:
		g.wire.say(replyGoAhead)
	case code < 400 && g.success != nil:
		g.reply(g.success)
	default:
		g.reply(reply(code, "", string(line[4:]))) // the text starts with the enhanced code
	}
}

// readLine reads one line, or ends the session.
func (g *guard) readLine() (line []byte, ok bool) {
	line, err := g.wire.readLine()
	switch {
	case errors.Is(err, errLineTooLong):
		g.hangUp(replyCommandLine)
	case err != nil:
		g.lose(err)
	}
	return line, err == nil
}

// readCommand reads one line and acts on it.
func (g *guard) readCommand() {
	line, ok := g.readLine()
	if !ok {
		return
	}
	cmd, fault := parseCommand(line)
	if fault == replyCommandEnd {
		g.hangUp(fault)
		return
	}
	if enough := g.countCommand(cmd); enough != nil {
		g.hangUp(enough)
		return
	}
	if fault != nil {
		g.reply(fault)
		return
	}
	g.do(cmd)
}

// do refuses a command or passes it on. Those that RFC 5321 section 4.5.1 requires
// are all here.
func (g *guard) do(cmd command) {
	switch cmd.verb {
	case "EHLO", "HELO":
		g.hello(cmd)
	case "MAIL":
		g.mail(cmd)
	case "RCPT":
		g.rcpt(cmd)
	case "DATA":
		g.data(cmd)
	case "BDAT":
		g.bdat(cmd)
	case "RSET", "NOOP":
		g.pass(cmd.verb, replyOK)
	case "VRFY":
		g.pass(cmd.verb, replyVerify)
	case "QUIT":
		g.over = true
		g.pass(cmd.verb, replyBye)
	case "HELP":
		g.reply(replyHelp)
	case "STARTTLS":
		g.startTLS(cmd)
	case "AUTH":
		g.auth(cmd)
	case "EXPN", "ETRN", "TURN", "SEND", "SOML", "SAML":
		g.reply(replyNotOffered)
	case "GET", "POST", "PUT", "CONNECT":
		g.hangUp(replyNotSMTP) // an HTTP request, as from a browser under attack
	default:
		g.reply(replyUnknown)
	}
}

// pass passes a command to the library. On success the client gets the given
// reply, or the library's if it is nil.
func (g *guard) pass(line string, success *smtp.Reply) {
	g.passed = append([]byte(line), smtp.CRLF...)
	g.success = success
}

// reply sends r. It counts errors, delays the reply to a client that continues
// to make them, and ends the session after too many.
func (g *guard) reply(r *smtp.Reply) {
	g.noteRefusal(r)
	if r.Code >= 500 {
		g.errors++
		if g.errors >= maxErrors {
			r = replyErrors
		}
		if g.errors >= slowErrors {
			g.server.rest(g.wire, errorPause)
		}
	}
	if r.Code == 421 {
		g.endWith(r)
		return
	}
	g.wire.say(r)
}

// noteRefusal remembers r for OnRefused, if it refuses a command.
func (g *guard) noteRefusal(r *smtp.Reply) {
	if r.Code < 400 {
		return
	}
	if g.refused.Count++; g.refused.Count == 1 {
		g.refused.Reply = r.Error()
		g.refused.From, g.refused.To = g.sender, g.recipient
	}
}

// hangUp sends r as the last reply, while the client may still be sending.
func (g *guard) hangUp(r *smtp.Reply) {
	g.noteRefusal(r)
	g.endWith(r)
}

func (g *guard) endWith(r *smtp.Reply) {
	g.over, g.wire.unread = true, true
	g.wire.say(r)
}

// lose ends the session after a failed read.
func (g *guard) lose(err error) {
	if r := lastWords(err); r != nil {
		g.wire.say(r)
	}
	g.over = true
}

// hello passes on EHLO and HELO, which both reset the transaction (RFC 5321
// section 4.1.4).
func (g *guard) hello(cmd command) {
	if cmd.args == "" || len(cmd.args) > smtp.MaxPath {
		g.reply(replySyntax)
		return
	}
	if g.helo == "" {
		g.wire.earn()
	}
	g.helo = cmd.args
	success := reply(250, "", g.server.cfg.Hostname)
	if cmd.verb == "EHLO" {
		success = nil // the reply has several lines
	}
	g.pass(cmd.verb+" "+cmd.args, success)
}

// startTLS encrypts the connection and forgets what came before (RFC 3207 section
// 4.2). The library learns of it with the EHLO that must follow.
func (g *guard) startTLS(cmd command) {
	switch {
	case g.server.cfg.TLS == nil || g.wire.encrypted():
		g.reply(replyNotOffered)
		return
	case cmd.args != "":
		g.reply(replySyntax)
		return
	case g.authenticated != nil: // the key may have been read on the way
		g.reply(replyAfterAuth)
		return
	}
	g.session.Reset()
	g.helo = ""
	g.wire.say(replyStartTLS)
	g.encrypt()
}

// encrypt starts TLS, or ends the session.
func (g *guard) encrypt() {
	if err := g.wire.encrypt(g.server.cfg.TLS); err != nil {
		g.lose(err)
		return
	}
	g.wire.earn()
}

// mail checks MAIL and passes it on without the parameters that are checked here.
func (g *guard) mail(cmd command) {
	path, utf8, fault := g.checkMail(cmd)
	if fault != nil {
		g.reply(fault)
		return
	}
	g.mailbox, g.sender, g.recipient = path, path, ""
	line := "MAIL FROM:<" + path + ">"
	if utf8 {
		line += " SMTPUTF8"
	}
	g.pass(line, replySender)
}

func (g *guard) checkMail(cmd command) (path string, utf8 bool, fault *smtp.Reply) {
	switch {
	case g.helo == "":
		return "", false, replyHelloFirst
	case g.session.chunks != nil:
		return "", false, replyInChunks
	case g.session.open:
		return "", false, replyNestedMail
	}
	if fault := g.checkLogin(); fault != nil {
		return "", false, fault
	}
	rest, ok := cmd.prefixed("FROM:")
	if !ok {
		return "", false, replySyntax
	}
	path, rest, ok = smtp.ParsePath(rest)
	if !ok {
		return "", false, replyBadSender
	}
	utf8, fault = g.mailParameters(rest)
	if fault == nil && !utf8 && !smtp.IsASCII(path) {
		fault = replyNeedsUTF8
	}
	return path, utf8, fault
}

// mailParameters checks the parameters of MAIL: SIZE (RFC 1870), BODY (RFC 6152)
// and SMTPUTF8 (RFC 6531).
func (g *guard) mailParameters(text string) (utf8 bool, fault *smtp.Reply) {
	params, ok := smtp.Parameters(text)
	if !ok {
		return false, replySyntax
	}
	for name, value := range params {
		switch name {
		case "SIZE":
			fault = g.checkSize(value)
		case "BODY":
			if v := strings.ToUpper(value); v != "7BIT" && v != "8BITMIME" {
				fault = replyParameter
			}
		case "AUTH": // RFC 4954 section 5; the value is not used
			if g.server.cfg.Submission == nil {
				fault = replyParameter
			}
		case "SMTPUTF8":
			utf8 = true
			if value != "" {
				fault = replySyntax
			}
		default:
			fault = replyParameter
		}
		if fault != nil {
			return false, fault
		}
	}
	return utf8, nil
}

// checkSize checks a declared size. A number beyond 63 bits is malformed.
func (g *guard) checkSize(value string) *smtp.Reply {
	n, err := strconv.ParseUint(value, 10, 63)
	switch {
	case err != nil:
		return replySyntax
	case n > uint64(g.server.cfg.MaxSize): //nolint:gosec // not negative
		return replyTooLarge
	}
	return nil
}

func (g *guard) rcpt(cmd command) {
	path, fault := g.checkRcpt(cmd)
	g.recipient = path
	if fault != nil {
		g.reply(fault)
		return
	}
	g.mailbox = path
	g.pass("RCPT TO:<"+path+">", replyRcpt)
}

func (g *guard) checkRcpt(cmd command) (path string, fault *smtp.Reply) {
	switch {
	case g.session.chunks != nil:
		return "", replyInChunks
	case !g.session.open:
		return "", replyMailFirst
	}
	rest, ok := cmd.prefixed("TO:")
	if !ok {
		return "", replySyntax
	}
	path, rest, ok = smtp.ParsePath(rest)
	switch {
	case !ok || path == "":
		return "", replyBadRecipient
	case strings.TrimSpace(rest) != "":
		return "", replyParameter
	case !g.session.env.UTF8 && !smtp.IsASCII(path):
		return "", replyNeedsUTF8
	}
	return path, nil
}

// data checks DATA and passes it on; Session.Data then reads the message.
func (g *guard) data(cmd command) {
	switch {
	case cmd.args != "":
		g.refuseData(replySyntax)
	case g.session.chunks != nil:
		g.refuseData(replyInChunks)
	case !g.session.open:
		g.refuseData(replyMailFirst)
	case g.session.rcpts == 0:
		g.refuseData(replyNoRecipients)
	default:
		g.pass(cmd.verb, replyStored)
	}
}

// refuseData refuses DATA. A client may pipeline nothing behind DATA (RFC 2920
// section 3.1): what is already there is the message of a client that did not
// wait, and must not be run as commands.
func (g *guard) refuseData(r *smtp.Reply) {
	if len(g.wire.pending()) > 0 {
		g.over, g.wire.unread = true, true
	}
	g.reply(r)
}
