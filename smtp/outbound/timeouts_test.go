package outbound

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// timedConn is a server that replies to each line in turn, and records the
// deadline of each line and reply.
type timedConn struct {
	net.Conn
	replies  []string
	deadline time.Time

	wrote map[string]time.Duration // by the beginning of what was written
	read  map[string]time.Duration // by the reply
}

func (c *timedConn) SetDeadline(t time.Time) error { c.deadline = t; return nil }
func (c *timedConn) Close() error                  { return nil }

func (c *timedConn) Write(b []byte) (int, error) {
	c.wrote[strings.Fields(string(b))[0]] = time.Until(c.deadline)
	return len(b), nil
}

func (c *timedConn) Read(b []byte) (int, error) {
	if len(c.replies) == 0 {
		return 0, io.EOF
	}
	c.read[c.replies[0]] = time.Until(c.deadline)
	n := copy(b, c.replies[0]+"\r\n")
	c.replies = c.replies[1:]
	return n, nil
}

// Every step has the time that RFC 5321 section 4.5.3.2 asks for (O3).
func TestStepsHaveTheTimeOfTheRFC(t *testing.T) {
	t.Parallel()
	c := &timedConn{
		replies: []string{"220 banner", "250 ehlo", "250 mail", "250 rcpt", "550 rcpt", "354 data", "250 done", "250 rset"},
		wrote:   map[string]time.Duration{}, read: map[string]time.Duration{},
	}
	p := newPeer(Endpoint{Host: "mx.example"}, c, Timeouts{}.OrDefault())
	if err := p.greet("client.example"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Envelope(Transaction{From: "a@in.example", To: []string{"b@out.example", "c@out.example"}}); err != nil {
		t.Fatal(err)
	}
	mail := strings.NewReader("Subject: s\r\n\r\n" + strings.Repeat("a line of the mail\r\n", 1000)) // several pieces
	if r, err := p.Data(mail, func() error { return nil }); err != nil || !r.Positive() {
		t.Fatal(r, err)
	}
	if err := p.Reset(); err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got > want || got < want-30*time.Second {
			t.Errorf("%s has %v, want %v", what, got, want)
		}
	}
	for reply, want := range map[string]time.Duration{
		"220 banner": 5 * time.Minute, "250 ehlo": 5 * time.Minute, "250 mail": 5 * time.Minute, "250 rcpt": 5 * time.Minute,
		"550 rcpt": 5 * time.Minute, "354 data": 2 * time.Minute, "250 done": 10 * time.Minute,
	} {
		near(reply, c.read[reply], want)
	}
	for word, got := range c.wrote {
		near("sending "+word, got, 3*time.Minute)
	}
	if c.read["250 rset"] > time.Minute {
		t.Errorf("an idle server has %v to reply to RSET", c.read["250 rset"])
	}
	if d := (Timeouts{}).OrDefault().Connect; d != 30*time.Second {
		t.Errorf("a connection has %v", d)
	}
}
