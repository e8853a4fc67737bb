package inbound

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp"
)

// conn is the connection that go-smtp reads and writes. It does what the library has no
// setting for:
//
//   - It sets the deadlines, requires a minimum rate of data, and counts bytes, commands
//     and errors. At a limit it ends the session.
//   - It gives the library one line at a time. A command must end with CRLF and have no
//     control characters.
//   - It starts TLS itself, so that it sees the plain text of what follows, and nothing
//     that came before TLS is left in a buffer of the library (RFC 3207 section 4.2).
//   - It leaves CHUNKING out of the reply to EHLO, and refuses BDAT: the library stores a
//     chunk that was cut short.
//
// One goroutine uses a conn; only stop, drop and idleSince may be called by others.
type conn struct {
	net.Conn          // TCP, or TLS over it
	raw      net.Conn // TCP
	server   *Server
	ip       netip.Addr
	from     netip.Prefix // the network of ip
	session  *session
	in       *bufio.Reader
	line     []byte // the rest of the line that the library reads
	end      error  // what the library reads after it, if the session ends

	helo     string // of EHLO or HELO, in this TLS state
	mode     mode   // what the client sends
	body     int64  // bytes of the message so far
	nul      bool   // the message has a NUL
	commands int    // since the last accepted message
	errors   int    // likewise
	verb     string // of the last command

	began    time.Time // when the server began to wait for the command or the message
	deadline time.Time // of the transaction; zero outside
	useful   time.Time // when the client last did useful work, or paid for its time with data
	refused  Refusal
	closing  sync.Once

	mu      sync.Mutex // guards the fields below and the deadline of a waiting read
	idle    time.Time  // since when the server waits for useful work, or zero while it works
	inData  bool       // it waits for the rest of a message
	ending  bool       // the next wait for a command ends at once
	leaving bool       // the connection is closed to make room
}

// mode is what a client sends at a time.
type mode int

const (
	sendsCommand  mode = iota
	sendsResponse      // to a challenge of AUTH
	sendsMessage
)

func newConn(s *Server, raw net.Conn) *conn {
	client, _ := netip.ParseAddrPort(raw.RemoteAddr().String()) // the address of a TCP connection
	ip := netguard.PlainIP(client.Addr())
	c := &conn{Conn: raw, raw: raw, server: s, ip: ip, from: netguard.ClientNetwork(ip), useful: time.Now()}
	c.in = bufio.NewReaderSize(input{c}, readBuffer)
	c.session = &session{conn: c}
	if sub := s.cfg.Submission; sub != nil {
		c.session.submit = sub.Anonymous
	}
	return c
}

// Read returns the next line or, of a longer line in a message, a part of it. After an
// error it returns nothing more: the library reads on after some errors.
func (c *conn) Read(p []byte) (n int, err error) {
	defer c.recovered(&err)
	for len(c.line) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		if c.line, err = c.next(); err != nil {
			c.end = cmp.Or(c.end, err)
		}
	}
	n = copy(p, c.line)
	c.line = c.line[n:]
	return n, nil
}

// recovered ends the session after a panic, as the library does after one in a command.
func (c *conn) recovered(err *error) {
	if p := recover(); p != nil {
		c.server.engine.ErrorLog.Printf("panic serving %v: %v\n%s", c.ip, p, debug.Stack())
		c.line, c.end, *err = nil, io.EOF, io.EOF
	}
}

// next reads a line for the library. It returns nothing if the line needs no more
// attention.
func (c *conn) next() ([]byte, error) {
	if c.mode == sendsMessage {
		return c.data()
	}
	c.began = time.Now()
	c.mu.Lock()
	ends := c.leaving || c.ending
	c.mu.Unlock()
	if ends { // even if the command is here already
		return nil, os.ErrDeadlineExceeded
	}
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxCommandLine:
		return nil, c.hangUp(replyCommandLine)
	case err != nil:
		return nil, err // an unfinished command is not run
	case !bytes.HasSuffix(line, smtp.CRLF):
		return nil, c.hangUp(replyCommandEnd)
	}
	if c.commands++; c.commands > maxCommands {
		return nil, c.hangUp(replyCommands)
	}
	if c.mode == sendsResponse {
		c.mode = sendsCommand
		return line, nil
	}
	return c.command(line)
}

// data reads a line of a message, or a part of a long one. It turns a bare CR into LF: the
// library loses one after a dot, and misses the end of a message after one. To normalize
// CR CR LF, which broken clients send, it turns the first CR into NUL, which is not stored.
func (c *conn) data() ([]byte, error) {
	p, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		if err = nil; p[len(p)-1] == '\r' { // what follows it decides
			p, err = p[:len(p)-1], c.in.UnreadByte()
		}
	}
	if err != nil {
		return nil, err // an unfinished line is not the end of the message
	}
	c.nul = c.nul || bytes.IndexByte(p, 0) >= 0
	for i := bytes.IndexByte(p, '\r'); i >= 0 && i < len(p); i++ {
		if p[i] != '\r' || bytes.HasPrefix(p[i+1:], []byte("\n")) {
			continue
		}
		if p[i] = '\n'; c.server.cfg.Normalize && bytes.HasPrefix(p[i+1:], smtp.CRLF) {
			p[i] = 0
		}
	}
	return p, nil
}

// command returns a command for the library, unless it is handled here.
func (c *conn) command(line []byte) ([]byte, error) {
	text := string(line[:len(line)-2])
	if strings.ContainsFunc(text, isControl) {
		return nil, c.say(replyControl)
	}
	verb, args, _ := strings.Cut(text, " ")
	switch c.verb = strings.ToUpper(verb); c.verb {
	case "EHLO", "HELO":
		if len(args) > maxName {
			return nil, c.say(replyLongName)
		}
		name, _, _ := strings.Cut(strings.TrimSpace(args), " ")
		c.helo = cmp.Or(name, c.helo)
	case "STARTTLS":
		if c.server.cfg.TLS == nil || c.encrypted() {
			break // the library refuses it
		}
		if c.session.authenticated { // the key may have been read on the way
			return nil, c.say(replyAfterAuth)
		}
		if err := c.say(replyStartTLS); err != nil {
			return nil, err
		}
		return nil, c.startTLS()
	case "BDAT":
		size, _, _ := strings.Cut(strings.TrimSpace(args), " ")
		n, err := strconv.ParseUint(size, 10, 31)
		if err != nil || n > overrun {
			return nil, c.hangUp(replyNotOffered)
		}
		if _, err := c.in.Discard(int(n)); err != nil { // it must not be run as commands
			return nil, err
		}
		return nil, c.say(replyNotOffered)
	}
	return line, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// Write takes one line of a reply from the library, which flushes after each.
func (c *conn) Write(line []byte) (n int, err error) {
	defer c.recovered(&err)
	if c.server.cfg.ImplicitTLS && !c.encrypted() {
		if err := c.startTLS(); err != nil {
			return 0, err
		}
	}
	out := line
	switch text := string(line); {
	case text == "250-CHUNKING\r\n":
		if out = nil; c.server.cfg.TLS != nil && !c.encrypted() && !c.session.authenticated {
			out = []byte("250-STARTTLS\r\n")
		}
	case text == "250-SIZE\r\n":
		out = []byte("250-SIZE " + strconv.FormatInt(c.server.cfg.MaxSize, 10) + "\r\n")
	case strings.HasPrefix(text, "334 "):
		c.mode = sendsResponse
	case strings.HasPrefix(text, "354 "):
		c.mode, c.body, c.nul, c.began = sendsMessage, int64(c.in.Buffered()), false, time.Now()
	case len(text) > 3 && text[3] == ' ':
		return len(line), c.reply(line)
	}
	return len(line), c.write(out)
}

// reply sends the last line of a reply, and ends the session after too many errors.
func (c *conn) reply(line []byte) error {
	// What follows a refused DATA is the message of a client that did not wait (RFC 2920
	// section 3.1). It must not be run as commands.
	text := strings.TrimSuffix(string(line), "\r\n")
	unwanted := c.verb == "DATA" && c.mode == sendsCommand && text >= "4" && c.in.Buffered() > 0
	if c.mode == sendsMessage {
		c.mode = sendsCommand
	}
	if text >= "4" {
		if c.refused.Count++; c.refused.Count == 1 {
			c.refused.Reply, c.refused.From, c.refused.To = text, c.session.env.MailFrom, c.session.tried
		}
	}
	if text >= "5" {
		c.errors++
	}
	if c.errors >= maxErrors {
		text = replyErrors.Error()
	}
	if unwanted || strings.HasPrefix(text, "421 ") {
		c.end = io.EOF
	}
	return c.write([]byte(text + "\r\n"))
}

// write sends b. If it fails, the server runs no further command of the client.
func (c *conn) write(b []byte) error {
	err := c.raw.SetWriteDeadline(time.Now().Add(c.server.cfg.WriteTimeout))
	if err == nil && len(b) > 0 {
		_, err = c.Conn.Write(b)
	}
	if err != nil {
		c.end = io.EOF
	}
	return err
}

// say sends a reply of our own.
func (c *conn) say(r *smtp.Reply) error { return c.reply([]byte(r.Error())) }

// hangUp sends a last reply.
func (c *conn) hangUp(r *smtp.Reply) error {
	c.end = io.EOF
	return c.say(r)
}

// startTLS encrypts the connection, and forgets what came before.
func (c *conn) startTLS() error {
	if err := c.await(c.server.cfg.CommandTimeout); err != nil {
		return err
	}
	defer c.awaited()
	encrypted := tls.Server(c.raw, c.server.cfg.TLS)
	if err := encrypted.HandshakeContext(c.server.ctx); err != nil {
		c.end = io.EOF // a reply in plain text would be useless
		return c.end
	}
	c.Conn = encrypted
	c.in.Reset(input{c})
	c.session.Reset()
	c.helo, c.useful = "", time.Now()
	return nil
}

func (c *conn) encrypted() bool { return c.Conn != c.raw }

// input reads from the client, with a deadline for each read.
type input struct{ *conn }

func (i input) Read(p []byte) (int, error) {
	c := i.conn
	cfg, took := &c.server.cfg, time.Since(c.began)
	wait := cfg.CommandTimeout - took
	if c.mode == sendsMessage {
		paid := time.Duration(c.body) * time.Second / time.Duration(cfg.MinRate)
		if until := c.began.Add(min(took, paid)); until.After(c.useful) {
			c.useful = until
		}
		wait = max(paid, cfg.RateGrace) - took
	}
	if !c.deadline.IsZero() {
		wait = min(wait, time.Until(c.deadline))
	}
	if err := c.await(wait); err != nil {
		return 0, err
	}
	defer c.awaited()
	n, err := c.Conn.Read(p)
	c.body += int64(n)
	if netErr, ok := errors.AsType[net.Error](err); err != nil && (!ok || !netErr.Timeout()) {
		err = io.EOF // the client is gone
	}
	return n, err
}

// await sets the deadline of a read, unless the session shall end. It is also that of
// what TLS writes meanwhile.
func (c *conn) await(wait time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.ending && c.mode != sendsMessage {
		return os.ErrDeadlineExceeded
	}
	c.inData, c.idle = c.mode == sendsMessage, c.useful
	if !c.deadline.IsZero() {
		c.idle = c.idle.Add(c.server.conns.mailGrace)
	}
	return c.raw.SetDeadline(time.Now().Add(wait))
}

func (c *conn) awaited() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = time.Time{}
}

// stop ends the current or the next wait for a command. A message that is arriving may
// finish.
func (c *conn) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if !c.idle.IsZero() && !c.inData {
		c.wake()
	}
}

// drop ends the wait for a client.
func (c *conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	c.wake()
}

// idleSince returns since when the server waits for useful work of the client. ok is
// false while the server works.
func (c *conn) idleSince() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle, !c.idle.IsZero()
}

// wake ends a read. If the connection is closed, the read has ended.
func (c *conn) wake() { _ = c.raw.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the session. The library calls it once or twice.
func (c *conn) Close() (err error) {
	c.closing.Do(func() {
		defer c.recovered(&err)
		c.end = io.EOF
		c.session.Reset()
		c.server.conns.leave(c) // before the client can notice the free place
		err = c.Conn.Close()
		if onRefused := c.server.cfg.OnRefused; onRefused != nil && c.refused.Count > 0 {
			c.refused.IP, c.refused.HELO = c.ip.String(), c.helo
			onRefused(c.refused)
		}
	})
	return err
}
