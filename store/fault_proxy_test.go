package store_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// cutAt is where a proxy breaks the connection of a commit.
type cutAt int32

const (
	cutNowhere cutAt = iota
	cutBeforeCommit
	cutAfterCommit
)

// proxy stands between a store and its PostgreSQL and breaks the connection of
// the next COMMIT.
type proxy struct {
	listener net.Listener
	server   string // its Unix socket
	cut      atomic.Int32
}

// newProxy returns a proxy and cfg with the way through it.
func newProxy(t *testing.T, cfg store.Config) (*proxy, store.Config) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	p := &proxy{listener: l, server: q.Get("host") + "/.s.PGSQL.5432"}
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	cfg.Database = u.String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return p, cfg
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var swallow atomic.Bool
	var replies sync.WaitGroup
	replies.Go(func() {
		defer func() { _ = client.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || swallow.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	defer replies.Wait()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = server.Close()
			return
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			switch cutAt(p.cut.Swap(int32(cutNowhere))) {
			case cutBeforeCommit:
				_ = server.Close()
				return
			case cutAfterCommit:
				swallow.Store(true)
			}
		}
		if _, err := server.Write(buf[:n]); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			return
		}
	}
}

// If the reply to a commit is lost, the caller still gets the correct result.
func TestCommitWhoseReplyIsLost(t *testing.T) {
	t.Parallel()
	direct := storetest.Config(t, storetest.PostgreSQL)
	p, cfg := newProxy(t, direct)
	if cfg.Database == direct.Database {
		t.Fatal("the store does not go through the proxy")
	}
	s := storetest.OpenConfig(t, cfg)
	for name, tt := range map[string]struct {
		cut  cutAt
		want int
	}{
		"not cut": {cutNowhere, 1}, "before the commit": {cutBeforeCommit, 0}, "after the commit": {cutAfterCommit, 1},
	} {
		for range 5 {
			in := storetest.Inbox(t, s)
			p.cut.Store(int32(tt.cut))
			_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
			if p.cut.Load() != int32(cutNowhere) {
				t.Fatalf("%s: the proxy saw no commit", name)
			}
			if (err == nil) != (tt.want == 1) || err != nil && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: got %v", name, err)
			}
			if n := len(every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 10)); n != tt.want {
				t.Errorf("%s: stored %d times, want %d", name, n, tt.want)
			}
		}
	}
}
