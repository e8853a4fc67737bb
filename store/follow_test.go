package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// writeElsewhere begins a transaction in another database of the server, which has
// written and goes on for as long as the test.
func writeElsewhere(t *testing.T) {
	t.Helper()
	db := openRaw(t, storetest.EmptyConfig(t, storetest.PostgreSQL))
	db.MustExec(`CREATE TABLE busy (n bigint)`)
	tx := db.MustBegin()
	t.Cleanup(func() { _ = tx.Rollback() })
	tx.MustExec(`INSERT INTO busy VALUES (1)`)
}

// A transaction in another database of the server, however long it takes, does
// not make a node wake its waiting calls repeatedly.
func TestWorkInAnotherDatabaseWakesNoOne(t *testing.T) {
	t.Parallel()
	a, b, _ := nodes(t)
	writeElsewhere(t)
	quiet, busy := storetest.Inbox(t, a), storetest.Inbox(t, a)
	first := b.WakeInbox(quiet.Seq)
	storetest.Received(t, a, quiet)
	select {
	case <-first.C:
	case <-time.After(tooLong):
		t.Fatal("the inbox was not woken")
	}
	first.Stop()

	wake := b.WakeInbox(quiet.Seq)
	defer wake.Stop()
	f := store.MessageFilter{InboxSeq: busy.Seq}
	woken := 0
	for begin := time.Now(); time.Since(begin) < 3*time.Second; { // some looks of the node
		other := b.WakeInbox(busy.Seq)
		storetest.Received(t, a, busy)
		m := wait(t, b, other, f)
		f.After = m.Place()
		other.Stop()
		select {
		case <-wake.C:
			woken++
		default:
		}
	}
	if woken > 1 { // the look that had begun before it subscribed
		t.Errorf("an inbox that got no mail was woken %d times", woken)
	}
}

// When a standby takes over that lacks the end of the log, the numbers of events
// go back. The tail starts again, and other nodes hear of what comes.
func TestTailRestartsWhenNumbersGoBack(t *testing.T) {
	t.Parallel()
	a, b, cfg := nodes(t)
	in := storetest.Inbox(t, a)
	for range 20 {
		storetest.Received(t, a, in)
	}
	tail := b.TailEvents()
	before, _ := settled(t, tail)
	db := openRaw(t, cfg)
	db.MustExec(`DELETE FROM events WHERE seq > 5`)
	db.MustExec(`SELECT setval(pg_get_serial_sequence('events', 'seq'), 5)`)
	after, _ := settled(t, tail)
	if after >= before || tail.Epoch() != 1 {
		t.Errorf("settled up to %d, and then %d, epoch %d", before, after, tail.Epoch())
	}
	f := store.MessageFilter{InboxSeq: in.Seq}
	for _, m := range every(t, b, store.MessageFilter{InboxSeq: in.Seq}, 100) {
		if f.After == nil || m.Seq > f.After.Seq {
			f.After = m.Place()
		}
	}
	wake := b.WakeInbox(in.Seq)
	defer wake.Stop()
	storetest.Received(t, a, in)
	wait(t, b, wake, f)
	if seq, _ := settled(t, tail); seq != 6 {
		t.Errorf("settled up to %d, want 6", seq)
	}
}

// Whoever waits on one node for mail hears when the inbox is deleted on another.
func TestAnotherNodeIsWokenWhenTheInboxIsDeleted(t *testing.T) {
	t.Parallel()
	a, b, _ := nodes(t)
	in := storetest.Inbox(t, a)
	storetest.Received(t, a, in)
	tail := b.TailEvents()
	settled(t, tail)
	for range 3 { // until the node has seen what was before
		wake := b.WakeInbox(in.Seq)
		storetest.Received(t, a, in)
		<-wake.C
		wake.Stop()
	}
	wake := b.WakeInbox(in.Seq)
	defer wake.Stop()
	if _, err := a.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(tooLong)
	for {
		select {
		case <-wake.C:
		case <-deadline:
			t.Fatal("nothing woke the other node")
		}
		if _, err := b.NewestIn(t.Context(), in.Seq); errors.Is(err, store.ErrNotFound) {
			return
		}
	}
}
