package inbound

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestSessionSurvivesAPanic(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	var log lockedBuffer
	r := newReceiver(t, s)
	_, addr := serve(t, r, func(c *ServerConfig) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	r.cfg.Now = func() time.Time { panic("a fault") } // asked for while an expiring inbox is looked up
	expiring := storetest.Inbox(t, s, func(in *store.Inbox) { in.ExpiresAt = new(store.NewTime(time.Now().Add(time.Hour))) })

	c := hello(t, addr)
	c.cmd("250", "MAIL FROM:<a@out.example>")
	c.cmd("421 4.0.0", "RCPT TO:<%s>", expiring.Address)
	c.wantClosed()
	waittest.Until(t, "the panic is in the log", func() bool { // go-smtp writes it after its reply
		return strings.Contains(log.String(), "a fault") && strings.Contains(log.String(), "level=ERROR")
	})

	r.cfg.Now = time.Now
	c = hello(t, addr)
	c.begin("a@out.example", in.Address)
	c.send(rawMail("Hi.") + ".\r\n")
	c.want("250")
}

// The library recovers only from panics in commands.
func TestServerSurvivesAPanicOutsideOfCommands(t *testing.T) {
	t.Parallel()
	fails := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { panic("a fault") }}
	for name, edit := range map[string]func(*ServerConfig){
		"STARTTLS":   func(c *ServerConfig) { c.TLS = fails },
		"TLS":        func(c *ServerConfig) { c.TLS, c.ImplicitTLS = fails, true },
		"a callback": func(c *ServerConfig) { c.OnRefused = func(Refusal) { panic("a fault") } },
	} {
		var log lockedBuffer
		srv := newServer(t, newReceiver(t, storetest.OpenSQLite(t)), edit, func(c *ServerConfig) { c.Log = textLog(&log) })
		c := dial(t, start(t, srv))
		if name != "TLS" {
			c.want("220")
			c.cmd("501", "EHLO")
			c.send("STARTTLS\r\n")
			c.want("")
		}
		if name == "a callback" {
			_ = c.conn.Close()
		} else if err := tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Errorf("%s: the handshake succeeds", name)
		}
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "a fault") || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("%s: the panic is not in the log: %s", name, log.String())
		}
	}
}

// A message whose client no longer gets replies is not stored: the client sends it again.
func TestNothingIsStoredAfterALostReply(t *testing.T) {
	t.Parallel()
	srv, k := keeping(t)
	raw := &deafConn{scriptConn{in: strings.NewReader(
		"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\n" + rawMail("Hi.") + ".\r\n"), closed: make(chan struct{})}}
	run(t, srv, newConn(srv, raw))
	<-raw.closed
	if len(k.kept) > 0 {
		t.Errorf("stored %q", k.kept)
	}
}

// deafConn is a connection whose client gets only the greeting.
type deafConn struct{ scriptConn }

func (c *deafConn) Write(b []byte) (int, error) {
	if c.out.Len() > 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return c.out.Write(b)
}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
