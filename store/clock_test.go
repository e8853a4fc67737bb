package store_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A step of a node's clock does not change what it takes for now, not even before the
// difference is measured again.
func TestAStepOfTheNodesClock(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	var ahead atomic.Int64
	cfg.Now, cfg.TrustNow = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }, false
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Email(t, s, in.AccountID, []string{"late@out.example"}, at(time.Now().Add(3*time.Hour)))
	ahead.Store(int64(200 * time.Hour))
	if n, err := s.ReleaseScheduled(t.Context(), dueRules); n != 0 || err != nil {
		t.Errorf("%d emails that are due in 3 hours were queued, %v", n, err)
	}
	if m := storetest.Received(t, s, in); time.Until(m.CreatedAt.Time).Abs() > time.Minute {
		t.Errorf("a message was received %v from now", time.Until(m.CreatedAt.Time))
	}
}

// nodeAhead opens a further node whose clock is ahead of that of the server.
func nodeAhead(t *testing.T, cfg store.Config, ahead time.Duration) *store.Store {
	t.Helper()
	cfg.Now, cfg.TrustNow = func() time.Time { return time.Now().Add(ahead) }, false
	return storetest.OpenConfig(t, cfg)
}

// A node with a wrong clock serves, and what it stores has the right time, but it
// neither deletes nor claims, and says so.
func TestNodeWithAWrongClockNeitherDeletesNorClaims(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	right := nodeAhead(t, cfg, 0)
	in := storetest.Inbox(t, right)
	for range 30 {
		storetest.Received(t, right, in)
	}
	storetest.Sent(t, right, in, []string{"bob@out.example"})
	for _, ahead := range []time.Duration{200 * time.Hour, -200 * time.Hour, 40 * time.Second} {
		var log bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		wrong := nodeAhead(t, cfg, ahead)
		gone, err := wrong.ExpireInbox(t.Context(), in.Seq, store.Time{})
		if err != nil || !gone.Nothing() {
			t.Errorf("%v ahead: deleted %+v, %v", ahead, gone, err)
		}
		if due, _, err := wrong.InboxesToExpire(t.Context(), 0); err != nil || len(due) > 0 {
			t.Errorf("%v ahead: inboxes %v are to expire, %v", ahead, due, err)
		}
		if n, err := wrong.Sweep(t.Context(), "events"); err != nil || n > 0 {
			t.Errorf("%v ahead: swept %d events, %v", ahead, n, err)
		}
		if claimed, err := wrong.ClaimRecipients(t.Context(), 10, time.Minute, nil); err != nil || len(claimed) > 0 {
			t.Errorf("%v ahead: claimed %v, %v", ahead, claimed, err)
		}
		if why := wrong.Paused(); !slices.Equal(why, []string{store.PausedClock}) {
			t.Errorf("%v ahead: paused for %v", ahead, why)
		}
		if off := wrong.ClockAhead() - ahead; off.Abs() > 5*time.Second {
			t.Errorf("%v ahead: it says %v", ahead, wrong.ClockAhead())
		}
		if m := storetest.Received(t, wrong, in); time.Since(m.CreatedAt.Time).Abs() > 5*time.Second {
			t.Errorf("%v ahead: a message is of %v", ahead, m.CreatedAt)
		}
		if n := strings.Count(log.String(), "neither claims nor deletes"); n != 1 {
			t.Errorf("%v ahead: logged %d times:\n%s", ahead, n, log.String())
		}
	}
	if why := right.Paused(); why != nil {
		t.Errorf("the node with the right clock is paused for %v", why)
	}
	waittest.Until(t, "the node with the right clock claims", func() bool {
		claimed, err := right.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		return err == nil && len(claimed) == 1
	})
}

// Leases are written and compared with the clock of the server: a node whose
// clock is off takes nothing from another, and holds nothing for longer.
func TestLeasesGoByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	ahead, behind := nodeAhead(t, cfg, 25*time.Second), nodeAhead(t, cfg, -25*time.Second)
	in := storetest.Inbox(t, ahead)
	storetest.Sent(t, ahead, in, []string{"bob@out.example"})
	const lease = 40 * time.Second // less than the clocks differ
	left := func(r store.Recipient) time.Duration { return time.Until(r.NextAttemptAt.Time) }

	var claimed []store.Claimed
	waittest.Until(t, "claimed the recipient", func() bool { // it is due by the server's clock, as the first node measured it
		var err error
		if claimed, err = behind.ClaimRecipients(t.Context(), 10, lease, nil); err != nil {
			t.Fatal(err)
		}
		return len(claimed) == 1
	})
	if d := left(claimed[0].Recipient) - lease; d.Abs() > 5*time.Second {
		t.Errorf("the lease ends %v too late", d)
	}
	again, err := ahead.ClaimRecipients(t.Context(), 10, lease, nil)
	if err != nil || len(again) != 0 {
		t.Errorf("the other node claimed it too: %v, %v", again, err)
	}
	lost, err := behind.RenewLeases(t.Context(), store.WorkRecipients, leases(claimed...), lease)
	if err != nil || len(lost) != 0 {
		t.Errorf("lost %v, %v", lost, err)
	}
	if again, err = ahead.ClaimRecipients(t.Context(), 10, lease, nil); err != nil || len(again) != 0 {
		t.Errorf("the other node claimed it after a renewal: %v, %v", again, err)
	}
}

// The leases of webhook deliveries go by it too.
func TestWebhookLeasesGoByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	ahead, behind := nodeAhead(t, cfg, 25*time.Second), nodeAhead(t, cfg, -25*time.Second)
	in := storetest.Inbox(t, ahead)
	newHook(t, ahead, in.AccountID)
	storetest.Received(t, ahead, in)
	const lease = 40 * time.Second
	var claimed []store.ClaimedDelivery
	waittest.Until(t, "claimed the delivery", func() bool { // it is due by the server's clock, as the first node measured it
		var err error
		if claimed, err = behind.ClaimDeliveries(t.Context(), 10, lease, nil); err != nil {
			t.Fatal(err)
		}
		return len(claimed) == 1
	})
	if d := time.Until(claimed[0].NextAttemptAt.Time) - lease; d.Abs() > 5*time.Second {
		t.Errorf("the lease ends %v too late", d)
	}
	if again, err := ahead.ClaimDeliveries(t.Context(), 10, lease, nil); err != nil || len(again) != 0 {
		t.Errorf("the other node claimed it too: %v, %v", again, err)
	}
}

// A program that is older than the schema stops to claim and to delete.
func TestNodeOlderThanTheSchemaIsPaused(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Sent(t, s, in, []string{"bob@out.example"})
	s.LookAtSchema(t.Context())
	if why := s.Paused(); why != nil {
		t.Fatalf("paused for %v", why)
	}
	db.MustExec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	s.LookAtSchema(t.Context())
	if why := s.Paused(); !slices.Equal(why, []string{store.PausedSchema}) {
		t.Errorf("paused for %v", why)
	}
	if claimed, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil); err != nil || len(claimed) != 0 {
		t.Errorf("claimed %v, %v", claimed, err)
	}
	storetest.Received(t, s, in) // it still receives
	db.MustExec(`DELETE FROM goose_db_version WHERE version_id = 99999`)
	s.LookAtSchema(t.Context())
	if claimed, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil); err != nil || len(claimed) != 1 {
		t.Errorf("claimed %v, %v, want one again", claimed, err)
	}
}

// guarded is a store on SQLite with clocks that a test moves.
type guarded struct {
	*store.Store
	wall *storetest.Clock
	mu   sync.Mutex
	mono time.Duration
	in   store.Inbox
}

func openGuarded(t *testing.T, cfg store.Config, wall *storetest.Clock) *guarded {
	t.Helper()
	cfg.Now, cfg.TrustNow = wall.Now, false
	g := &guarded{Store: storetest.OpenConfig(t, cfg), wall: wall}
	g.SetMono(func() time.Duration {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.mono
	})
	return g
}

// pass lets time pass for both clocks, in steps with a round of deletion each.
func (g *guarded) pass(t *testing.T, d time.Duration) {
	t.Helper()
	const step = 30 * time.Minute
	for ; d > 0; d -= step {
		g.wall.Add(step)
		g.mu.Lock()
		g.mono += step
		g.mu.Unlock()
		g.expire(t)
	}
}

func (g *guarded) expire(t *testing.T) int {
	t.Helper()
	gone, err := g.ExpireInbox(t.Context(), g.in.Seq, store.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return gone.Contents
}

func (g *guarded) held(t *testing.T) bool {
	t.Helper()
	until, err := g.DeletionsPaused(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return until != nil
}

// On SQLite nothing is deleted after the clock has jumped, before a day has
// passed or someone has confirmed the clock.
func TestDeletionsWaitAfterTheClockHasJumped(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	wall := storetest.NewClock(time.Now())
	g := openGuarded(t, cfg, wall)
	g.in = storetest.Inbox(t, g.Store, func(in *store.Inbox) { in.RetentionDays = 1 })
	storetest.Received(t, g.Store, g.in)
	g.pass(t, 20*time.Hour)
	if g.held(t) {
		t.Fatal("deletions are held although the clock runs as it should")
	}
	wall.Add(200 * time.Hour)
	if n := g.expire(t); n != 0 || !g.held(t) {
		t.Errorf("%d messages were deleted right after a jump; held: %v", n, g.held(t))
	}
	wall.Add(-200 * time.Hour) // it was a mistake
	if n := g.expire(t); n != 0 || !g.held(t) {
		t.Errorf("%d messages were deleted after the clock went back", n)
	}
	if held, err := g.ConfirmClock(t.Context()); !held || err != nil {
		t.Errorf("confirmed: %v, %v", held, err)
	}
	if n := g.expire(t); n != 0 || g.held(t) {
		t.Errorf("%d messages were deleted that are not due; held: %v", n, g.held(t))
	}
	g.pass(t, 5*time.Hour)
	if ms := every(t, g.Store, store.MessageFilter{InboxSeq: g.in.Seq}, 10); len(ms) != 1 || ms[0].ExpiredAt == nil {
		t.Errorf("the message was not deleted in time: %v", ms)
	}
	storetest.Received(t, g.Store, g.in)
	wall.Add(48 * time.Hour) // no one confirms
	if n := g.expire(t); n != 0 || !g.held(t) {
		t.Errorf("%d messages were deleted right after a jump", n)
	}
	g.pass(t, 23*time.Hour)
	if !g.held(t) {
		t.Error("deletions went on before a day had passed")
	}
	g.pass(t, 2*time.Hour)
	if ms := every(t, g.Store, store.MessageFilter{InboxSeq: g.in.Seq}, 10); g.held(t) || slices.ContainsFunc(ms, func(m store.Message) bool { return m.ExpiredAt == nil }) {
		t.Errorf("after a day nothing was deleted; held: %v", g.held(t))
	}
}

// The same holds when the program starts long after it last deleted anything.
func TestDeletionsWaitAfterALongTimeWithout(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	wall := storetest.NewClock(time.Now())
	first := openGuarded(t, cfg, wall)
	first.in = storetest.Inbox(t, first.Store, func(in *store.Inbox) { in.RetentionDays = 1 })
	storetest.Received(t, first.Store, first.in)
	first.expire(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wall.Add(23 * time.Hour)
	second := openGuarded(t, cfg, wall)
	second.in = first.in
	if second.expire(t); second.held(t) {
		t.Error("held after less than a day")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	wall.Add(25 * time.Hour)
	third := openGuarded(t, cfg, wall)
	third.in = first.in
	if n := third.expire(t); n != 0 || !third.held(t) {
		t.Errorf("%d messages were deleted after more than a day", n)
	}
	if _, err := third.ConfirmClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := third.expire(t); n != 1 {
		t.Errorf("%d messages were deleted after the confirmation, want 1", n)
	}
}
