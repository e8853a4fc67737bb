package httpserver

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// limitedClient is one connection of a test.
type limitedClient struct {
	net.Conn
	in *bufio.Reader
}

// TestConnectionsAreLimited opens connections from several addresses: at a limit, the
// one that has had no request for the longest time is closed.
func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	conns := NewConns(Limits{Total: 5, PerNetwork: 2, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}, log)
	d := &door{l: listen(t), served: make(chan error, 1)}
	d.Server = New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
	}), conns, nil, log)
	go func() { d.served <- d.Serve(d.l) }()
	from := func(ip string) limitedClient { return d.dialFrom(t, ip) }
	// serve makes a request, after which so many connections are idle.
	serve := func(c limitedClient, idle int) {
		t.Helper()
		c.send(t, "/")
		c.receive(t)
		waittest.Until(t, "the connections are as wanted", func() bool { conns.mu.Lock(); defer conns.mu.Unlock(); return conns.idle.Len() == idle })
	}

	first, second := from("127.0.0.2"), from("127.0.0.2")
	serve(first, 2)
	serve(second, 2)
	serve(first, 2)
	third := from("127.0.0.2")
	second.wantClosed(t) // idle for longer than the first
	serve(third, 2)

	for _, c := range []limitedClient{first, third} {
		c.send(t, "/wait")
		<-entered
	}
	from("127.0.0.2").wantClosed(t) // both have a request
	proxy := from("127.0.0.9")      // which has many clients
	serve(proxy, 1)
	serve(from("127.0.0.9"), 2)
	serve(from("127.0.0.9"), 3)
	close(leave)
	first.receive(t)
	third.receive(t)
	waittest.Until(t, "the connections are as wanted", func() bool { conns.mu.Lock(); defer conns.mu.Unlock(); return conns.idle.Len() == 5 })
	serve(first, 5)
	serve(from("127.0.0.3"), 5)
	proxy.wantClosed(t)
	_ = first.Close()
	waittest.Until(t, "the connections are as wanted", func() bool {
		conns.mu.Lock()
		defer conns.mu.Unlock()
		return conns.open == 4 && len(conns.networks) == 3
	})
	slow := from("127.0.0.4")
	if _, err := io.WriteString(slow, "POST /wait HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n1"); err != nil {
		t.Fatal(err)
	}
	<-entered
	from("127.0.0.4")
	from("127.0.0.4")
	if answer, err := io.ReadAll(slow.in); len(answer) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a request whose body has not come in full keeps its connection: %q %v", answer, err)
	}
}

// TestUnreadResponsesMakeRoom fills the server with clients that ask for a response and read
// none of it. Another client gets in before their responses are ended.
func TestUnreadResponsesMakeRoom(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	d := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			begun <- struct{}{}
			_, _ = w.Write(make([]byte, 24<<20))
		}
	})
	d.limited.mu.Lock()
	d.limited.limits.Total = 2
	d.limited.mu.Unlock()
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		d.dialFrom(t, ip).send(t, "/large")
		<-begun
	}
	waittest.Until(t, "the connections are as wanted", func() bool { d.limited.mu.Lock(); defer d.limited.mu.Unlock(); return d.limited.idle.Len() == 2 })
	honest := d.dialFrom(t, "127.0.0.4")
	honest.send(t, "/")
	honest.receive(t)
}

// A client that reads nothing of a response is disconnected. One that reads slowly gets all
// of it, though that takes much longer.
func TestUnreadResponsesAreEnded(t *testing.T) {
	t.Parallel()
	const size, stall = 24 << 20, 300 * time.Millisecond
	sent := make(chan error, 1)
	d := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/once" {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stall))
		}
		_, err := w.Write(make([]byte, size))
		sent <- err
	})
	d.limited.stall = stall
	ask := func(path string) limitedClient {
		c := d.dialFrom(t, "127.0.0.1")
		must(t, c.Conn.(*net.TCPConn).SetReadBuffer(32<<10))
		c.send(t, path)
		return c
	}
	for _, path := range []string{"/", "/once"} {
		began := time.Now()
		ask(path)
		select {
		case err := <-sent:
			if err == nil || time.Since(began) < stall {
				t.Errorf("%s: an unread response ended after %v with %v", path, time.Since(began), err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: an unread response is still there after 10 s", path)
		}
	}
	slow, began := ask("/"), time.Now()
	must(t, slow.SetDeadline(time.Now().Add(time.Minute)))
	for piece := int64(256 << 10); ; time.Sleep(10 * time.Millisecond) {
		if n, err := io.CopyN(io.Discard, slow.in, piece); err != nil || n < piece {
			t.Fatal(err)
		}
		select {
		case err := <-sent:
			if took := time.Since(began); err != nil || took < 2*stall {
				t.Errorf("a slow client read for %v: %v", took, err)
			}
			return
		default:
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (d *door) dialFrom(t *testing.T, ip string) limitedClient {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := dialer.DialContext(t.Context(), "tcp", d.l.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return limitedClient{c, bufio.NewReader(c)}
}

func (c limitedClient) send(t *testing.T, path string) {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

func (c limitedClient) receive(t *testing.T) {
	t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	must(t, err)
	_ = res.Body.Close() // it is empty
}

func (c limitedClient) wantClosed(t *testing.T) {
	t.Helper()
	if _, err := c.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open: %v", err)
	}
}
