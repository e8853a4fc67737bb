//go:build unix

package faults_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// freezeGrace is how long a frozen node may block the others.
	freezeGrace = 6 * time.Second
	// hotInboxes is how many inboxes the load of these tests goes to. They are few, so
	// that a frozen node has locked one of them.
	hotInboxes = 4
)

// threeNodes runs three nodes on one PostgreSQL database. Their connections are named
// node0 to node2.
func threeNodes(t *testing.T, settings ...string) []*installation {
	t.Helper()
	database := testpg.Schema(t)
	nodes := make([]*installation, 3)
	for i := range nodes {
		in := installationAt(t, storetest.PostgreSQL, t.TempDir(), database+"&application_name=node"+string(rune('0'+i)))
		in.settings = append([]string{"POSTROOM_SECRET=" + strings.Repeat("the same on all nodes ", 2)}, settings...)
		in.start()
		nodes[i] = in
	}
	return nodes
}

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

// rate returns how many messages a second are accepted in that time.
func (l *hotLoad) rate(ctx context.Context, d time.Duration) float64 {
	was, began := l.book.count(accepted), time.Now()
	pause(ctx, d)
	return float64(l.book.count(accepted)-was) / time.Since(began).Seconds()
}

// silence records the longest time between two events of a stream.
type silence struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

func (s *silence) follow(ctx context.Context, stream *eventStream) {
	stop := context.AfterFunc(ctx, stream.close)
	defer stop()
	s.note()
	for {
		if _, err := stream.next(); err != nil {
			return
		}
		s.note()
	}
}

func (s *silence) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() {
		s.last = now
	} else {
		s.longest, s.last = max(s.longest, now.Sub(s.last)), now
	}
}

// end returns the longest silence until now.
func (s *silence) end() time.Duration {
	s.note()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest
}

// freezeInTransaction stops a node at a moment when it has locks in the database, and
// returns when its sessions are idle.
func freezeInTransaction(t *testing.T, in *installation, name string) {
	t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing was written
	const q = `SELECT count(*) FROM pg_stat_activity
		WHERE application_name = $1 AND datname = current_database() AND state LIKE 'idle in transaction%' AND backend_xid IS NOT NULL`
	rng := randomness(t)
	process := in.current().cmd.Process
	for range 200 {
		pause(t.Context(), upTo(rng, 20*time.Millisecond))
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		// By now the server has processed what the node sent before it stopped.
		pause(t.Context(), 50*time.Millisecond)
		n := 0
		if err := db.QueryRowContext(t.Context(), q, name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the node was never stopped in the middle of a transaction")
}

// TestOtherNodesGoOnWhileOneIsFrozen stops one of three nodes in the middle of a
// transaction that the others wait for. The others continue within a few seconds, no
// event stream is silent for longer than that, and the node serves again when it is
// resumed. Row N1 of docs/testing.md.
func TestOtherNodesGoOnWhileOneIsFrozen(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	names := []string{"hot0", "hot1", "hot2", "hot3"}
	l := &hotLoad{book: newLedger("hot"), boxes: nodes[0].createInboxes(names[:hotInboxes]...)}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var working sync.WaitGroup
	defer working.Wait()
	defer done()
	silences := make([]*silence, 2)
	for i := range silences {
		stream, err := nodes[i].current().listen(ctx, firstKey, "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer stream.close()
		silences[i] = &silence{}
		working.Go(func() { silences[i].follow(ctx, stream) })
	}
	for i := range 2 {
		for c := range clients {
			working.Go(func() { l.run(ctx, nodes[i], c) })
		}
	}
	// The disk of a shared machine syncs at a rate that changes by a third within
	// seconds. So the usual rate is taken for long, before and after.
	usual := pick(3*time.Second, 30*time.Second)
	before := l.rate(ctx, usual) // of the two nodes that keep running
	third, thaw := context.WithCancel(ctx)
	for c := range clients {
		working.Go(func() { l.run(third, nodes[2], c) })
	}
	l.rate(ctx, time.Second)
	freezeInTransaction(t, nodes[2], "node2")
	thaw() // its clients leave
	t.Cleanup(func() { _ = nodes[2].current().cmd.Process.Signal(syscall.SIGCONT) })
	first := l.rate(ctx, freezeGrace)
	after := l.rate(ctx, pick(4*time.Second, 54*time.Second))
	var silent time.Duration
	for _, s := range silences {
		silent = max(silent, s.end())
	}
	longest := time.Duration(l.longest.Load())
	if most := pick(2*freezeGrace, freezeGrace); silent > most {
		t.Errorf("a stream was silent for %v, want at most %v", silent, most)
	}
	if err := nodes[2].current().cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the node serves again", func() bool {
		return errors.Is(l.one(t, nodes[2]), nil)
	})
	again := l.rate(ctx, usual)
	share := after / ((before + again) / 2)
	t.Logf("two of three nodes received %.0f messages/s, %.0f/s in the first %v after the third froze, then %.0f/s, and %.0f/s "+
		"after it resumed: they kept %.0f %% of their rate; the longest reply took %.1f s, the longest silence of a stream %.1f s",
		before, first, freezeGrace, after, again, 100*share, longest.Seconds(), silent.Seconds())
	if share < pick(0.4, 0.8) {
		t.Errorf("the other nodes kept %.0f %% of their rate", 100*share)
	}
	done()
	working.Wait()
	// What was refused while the node stood still may have been stored by it.
	l.book.audit(t, nodes[0].messages("in"), byAddress(l.boxes...), true)
	t.Logf("%s", l.book)
}

// one sends one message.
func (l *hotLoad) one(t *testing.T, in *installation) error {
	t.Helper()
	c, err := dialSMTP(t.Context(), in.current().smtp)
	if err != nil {
		return err
	}
	defer c.close()
	m := newMessage(l.book.next(), 2<<10, l.boxes[0].Address)
	o, err := c.send(m)
	l.book.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	return err
}
