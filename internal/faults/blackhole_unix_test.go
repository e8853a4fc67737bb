//go:build unix && faults

package faults_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// mostToRespond is how long a client may wait for a response while the network
	// between the node and its database is down.
	mostToRespond = 35 * time.Second
	// mostToServe is how long after the database can be reached again mail may be
	// refused.
	mostToServe = 10 * time.Second
	// mostOfOther is how long the other node may take to respond.
	mostOfOther = 12 * time.Second
)

// hotLoad sends mail to a few inboxes over some nodes, until its context ends.
type hotLoad struct {
	book    *ledger
	boxes   []inbox
	longest atomic.Int64 // that a response took, in nanoseconds
}

// run sends from one client to one node. After a deferral it sends the next message.
func (l *hotLoad) run(ctx context.Context, in *installation, seed int) {
	for i := seed; ctx.Err() == nil; {
		c, err := dialSMTP(ctx, in.current().smtp)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, c.close)
		for ctx.Err() == nil && err == nil {
			i++
			m := newMessage(l.book.next(), 2<<10, l.boxes[i%len(l.boxes)].Address)
			var o outcome
			began := time.Now()
			o, err = c.send(m)
			if ctx.Err() == nil {
				l.longest.Store(max(l.longest.Load(), int64(time.Since(began))))
			}
			l.book.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
		}
		stop()
		c.close()
	}
}

// blackHole is a network between a node and its database that can stop forwarding
// without closing any connection.
type blackHole struct {
	listener net.Listener
	server   string // the Unix socket of the database

	mu    sync.Mutex
	lost  bool                       // for new connections
	conns map[net.Conn]chan struct{} // closed: forwarding has stopped
}

// newBlackHole starts a black hole in front of a database and returns the address
// to connect to.
func newBlackHole(t *testing.T, database string) (*blackHole, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	h := &blackHole{listener: l, server: q.Get("host") + "/.s.PGSQL.5432", conns: map[net.Conn]chan struct{}{}}
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return h, u.String()
}

func (h *blackHole) serve(client net.Conn) {
	server, err := net.Dial("unix", h.server)
	if err != nil {
		_ = client.Close()
		return
	}
	silent := make(chan struct{})
	h.mu.Lock()
	if h.lost {
		close(silent)
	} else {
		h.conns[client] = silent
	}
	h.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { forward(server, client, silent) })
	both.Go(func() { forward(client, server, silent) })
	both.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, client)
}

// forward copies bytes until a connection closes. Once silent is closed, it drops
// what it reads.
func forward(to, from net.Conn, silent <-chan struct{}) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-silent:
		default:
			if err == nil {
				_, err = to.Write(buf[:n])
			}
		}
		if err != nil {
			_ = errors.Join(to.Close(), from.Close())
			return
		}
	}
}

// swallow stops the existing connections and, with alsoNew, those made from now on.
func (h *blackHole) swallow(alsoNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = alsoNew
	for c, silent := range h.conns {
		close(silent)
		delete(h.conns, c)
	}
}

func (h *blackHole) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = false
}

// TestNodeRecoversFromSilentNetworkLoss interrupts the connections of one of two
// nodes to the database without closing them: first the existing ones, then all of
// them for a minute. Every client gets a response in time, the node reports itself
// unhealthy and serves again soon after, and the other node is not affected.
// Row N3 of docs/testing.md.
func TestNodeRecoversFromSilentNetworkLoss(t *testing.T) {
	t.Parallel()
	database := testpg.Schema(t)
	secret := "POSTROOM_SECRET=the same on both nodes, the same on both nodes"
	h, through := newBlackHole(t, database)
	a := installationAt(t, storetest.PostgreSQL, filepath.Join(t.TempDir(), "a"), through)
	b := installationAt(t, storetest.PostgreSQL, filepath.Join(t.TempDir(), "b"), database)
	for _, in := range []*installation{b, a} {
		in.settings = []string{secret}
		in.start()
	}
	l := &hotLoad{book: newLedger("lost"), boxes: b.createInboxes("hot0", "hot1", "hot2", "hot3")}
	other := &hotLoad{book: newLedger("other"), boxes: b.createInboxes("other0", "other1")}
	ctx, done := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer done()
	for c := range clients {
		working.Go(func() { l.run(ctx, a, c) })
		working.Go(func() { other.run(ctx, b, c) })
	}
	waittest.Until(t, "both nodes accept mail", func() bool { return l.book.count(accepted) > 0 && other.book.count(accepted) > 0 })

	for _, loss := range []struct {
		name    string
		alsoNew bool
		lasts   time.Duration
	}{{"the existing connections", false, 0}, {"all", true, time.Minute}} {
		h.swallow(loss.alsoNew)
		lost := time.Now()
		unhealthy := a.awaitHealth(t, http.StatusServiceUnavailable)
		pause(ctx, loss.lasts-time.Since(lost))
		h.open()
		back, before := time.Now(), l.book.count(accepted)
		if !loss.alsoNew {
			back = lost.Add(20 * time.Second) // the database is reachable, but the node cannot know earlier
		}
		waittest.Until(t, "the node accepts mail again", func() bool { return l.book.count(accepted) > before })
		served := time.Since(back)
		healthy := a.awaitHealth(t, http.StatusOK)
		t.Logf("lost: %s; unhealthy after %s, mail again after %s, healthy after %s more; longest response %s, of the other node %s", loss.name,
			seconds(unhealthy), seconds(time.Since(lost)), seconds(healthy),
			seconds(time.Duration(l.longest.Load())), seconds(time.Duration(other.longest.Load())))
		if served > mostToServe {
			t.Errorf("lost: %s; mail was accepted only %v after the database was back", loss.name, served)
		}
	}
	done()
	working.Wait()
	if longest := time.Duration(l.longest.Load()); longest > mostToRespond {
		t.Errorf("a response took %v, want at most %v", longest, mostToRespond)
	}
	if longest := time.Duration(other.longest.Load()); longest > mostOfOther {
		t.Errorf("a response of the other node took %v", longest)
	}
	stored := slices.DeleteFunc(b.messages("in"), func(m message) bool { return other.book.has(m.Subject) })
	l.book.audit(t, stored, byAddress(l.boxes...), true)
}

// awaitHealth waits until the node's /health has that status, and returns how long
// that took.
func (in *installation) awaitHealth(t *testing.T, status int) time.Duration {
	t.Helper()
	c := in.current().caller()
	defer c.close()
	began := time.Now()
	waittest.Until(t, "the node reports the expected health", func() bool {
		a, err := c.do(t.Context(), http.MethodGet, "/health", nil)
		return err == nil && a.status == status
	})
	return time.Since(began)
}
