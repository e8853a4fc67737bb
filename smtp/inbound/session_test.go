package inbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestSessionReceivesMail(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		_, addr := serve(t, newReceiver(t, s))
		c := hello(t, addr)
		raw := rawMail("..", ".a", "", "Your code is 482913.")

		c.begin("ann@out.example", strings.Replace(in.Address, "@", "+x@", 1))
		c.send(strings.ReplaceAll(raw, "\r\n.", "\r\n..") + ".\r\n")
		c.want("250 2.0.0")
		m := only(t, s, in)
		if got := readRaw(t, s, m); got != raw {
			t.Errorf("raw is %q, want %q", got, raw)
		}
		if m.Tag == nil || *m.Tag != "x" || m.Automated {
			t.Errorf("tag %v, automated %t", m.Tag, m.Automated)
		}

		c.begin("", in.Address)
		c.send(rawMail("Undeliverable.") + ".\r\n")
		c.want("250")
		if m := list(t, s, in)[0]; !m.Automated {
			t.Error("mail with the null reverse-path is not automated")
		}
		c.cmd("221", "QUIT")
		c.wantClosed()
	})
}

func TestSessionOffers(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, storetest.OpenSQLite(t))
	for _, withTLS := range []bool{false, true} {
		_, addr := serve(t, r, func(c *ServerConfig) {
			if withTLS {
				c.TLS = tlsConfig(t)
			}
		})
		c := dial(t, addr)
		c.want("220 mx.in.example ")
		got := c.cmd("250", "EHLO client.example")
		want := []string{"PIPELINING", "8BITMIME", "SMTPUTF8", "CHUNKING", "ENHANCEDSTATUSCODES", "SIZE 26214400", "LIMITS RCPTMAX=100"}
		if withTLS {
			want = append(want, "STARTTLS")
		}
		var offers []string
		for line := range strings.Lines(got) {
			offers = append(offers, strings.TrimSpace(line[4:]))
		}
		slices.Sort(want)
		slices.Sort(offers[1:])
		if !slices.Equal(offers[1:], want) {
			t.Errorf("offers %q, want %q", offers[1:], want)
		}
	}
}

// go-smtp alone takes the end of the connection for the end of the chunk.
func TestSessionNeverStoresAnIncompleteMessage(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	for _, say := range []string{"DATA\r\nSubject: half\r\n", "BDAT 100 LAST\r\nSubject: half\r\n", "BDAT 6\r\nA: b\r\nBDAT 3 LAST\r\na"} {
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		c.cmd("250", "RCPT TO:<%s>", in.Address)
		c.send(say)
		if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(c.r)
		if err != nil || !strings.HasSuffix(string(rest), "421 4.4.2 Message transfer was cut short, closing connection\r\n") {
			t.Errorf("reply to %q: %q, %v", say, rest, err)
		}
	}
	if n := len(list(t, s, in)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestSessionPipelining(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	c := hello(t, addr)
	const rounds = 20
	for i := range rounds {
		c.send(fmt.Sprintf("RSET\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<missing@in.example>\r\nRCPT TO:<%s>\r\nDATA\r\n", in.Address))
		for _, want := range []string{"250", "250", "550", "250", "354"} {
			c.want(want)
		}
		c.send(rawMail("Mail "+fmt.Sprint(i)) + ".\r\nNOOP\r\nMAIL FROM:<b@out.example>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "250", "503"} {
			c.want(want)
		}
	}
	if n := len(list(t, s, in)); n != rounds {
		t.Errorf("%d messages, want %d", n, rounds)
	}
}

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
	c.cmd("421 4.3.0", "RCPT TO:<%s>", expiring.Address)
	c.wantClosed()
	if !strings.Contains(log.String(), "a fault") || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the panic is not in the log: %s", log.String())
	}

	r.cfg.Now = time.Now
	c = hello(t, addr)
	c.begin("a@out.example", in.Address)
	c.send(rawMail("Hi.") + ".\r\n")
	c.want("250")
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

func TestSessionContextEndsWithTheServer(t *testing.T) {
	t.Parallel()
	srv, _ := serve(t, newReceiver(t, storetest.OpenSQLite(t)))
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(srv.ctx.Err(), context.Canceled) {
		t.Error("the context of the sessions is not cancelled")
	}
}
