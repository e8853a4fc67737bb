package faults_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"time"
)

// sender is the sender of messages from outside.
const sender = "ann@out.example"

// step is a point of an SMTP transaction at which a fault may strike.
type step int

const (
	beforeMail step = iota
	goAhead         // DATA got 354
	halfSent        // of the data
	dotSent         // all of the data
	replied         // the reply to the data was read
)

// smtpClient is one connection to the SMTP server. It considers a message accepted
// only when it has read 250.
type smtpClient struct {
	conn net.Conn
	text *textproto.Reader
	said string // text of the last reply
	// at, when not nil, is called at every step.
	at func(step)
}

// dialSMTP connects and says EHLO.
func dialSMTP(ctx context.Context, addr string) (*smtpClient, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &smtpClient{conn: conn, text: textproto.NewReader(bufio.NewReader(conn)), at: func(step) {}}
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	err = c.reply()
	if err == nil {
		_, err = fmt.Fprint(conn, "EHLO client.example\r\n")
	}
	if err == nil {
		err = c.reply()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// logIn logs in with the first key.
func (c *smtpClient) logIn() error {
	response := base64.StdEncoding.EncodeToString([]byte("\x00api\x00" + firstKey))
	if _, err := fmt.Fprintf(c.conn, "AUTH PLAIN %s\r\n", response); err != nil {
		return err
	}
	return c.reply()
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

func (c *smtpClient) close() { _ = c.conn.Close() }

// refusal is a negative reply.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.code, r.text) }

// reply reads one reply. A negative reply is returned as a *refusal.
func (c *smtpClient) reply() error {
	code, text, err := c.text.ReadResponse(0)
	c.said = text
	if err == nil && code >= 400 {
		err = &refusal{code, text}
	}
	return err
}

// send offers m and returns the outcome. After an error the connection must not be
// used again.
func (c *smtpClient) send(m testMessage) (outcome, error) {
	if err := c.conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		return refused, err
	}
	c.at(beforeMail)
	if err := c.envelope(m); err != nil {
		return refused, err
	}
	c.at(goAhead)
	half := len(m.raw) / 2
	if _, err := c.conn.Write(m.raw[:half]); err != nil {
		return refused, err
	}
	c.at(halfSent)
	// From here on only the server knows the outcome, until it replies.
	if _, err := c.conn.Write(slices.Concat(m.raw[half:], []byte(".\r\n"))); err != nil {
		return unknown, err
	}
	c.at(dotSent)
	err := c.reply()
	if _, no := errors.AsType[*refusal](err); no {
		return refused, err
	}
	if err != nil {
		return unknown, err
	}
	c.at(replied)
	return accepted, nil
}

// envelope sends all commands in one write, as PIPELINING allows (RFC 2920). It
// returns nil when all recipients are accepted and the server asks for the data, and
// otherwise the first refusal.
func (c *smtpClient) envelope(m testMessage) error {
	commands := fmt.Appendf(nil, "MAIL FROM:<%s>\r\n", m.from)
	for _, rcpt := range m.to {
		commands = fmt.Appendf(commands, "RCPT TO:<%s>\r\n", rcpt)
	}
	commands = append(commands, "DATA\r\n"...)
	if _, err := c.conn.Write(commands); err != nil {
		return err
	}
	var first error
	for range len(m.to) + 2 {
		err := c.reply()
		if first == nil {
			first = err
		}
		if no, ok := errors.AsType[*refusal](err); err != nil && !ok || ok && no.code == 421 {
			break // there is nothing more to read
		}
	}
	return first
}
