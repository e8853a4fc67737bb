package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const undoTime = 10 * time.Second

// approved is a draft of the inbox that was approved, with a message that waits for delay.
func approved(t *testing.T, s *store.Store, in store.Inbox, delay time.Duration) (store.Draft, store.Message) {
	t.Helper()
	d, err := s.CreateDraft(t.Context(), storetest.NewDraft(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := storetest.NewSent(in, []string{"ann@out.example"}, func(n *store.NewMessage) { n.Delay = delay })
	sent, err := s.SendDraft(t.Context(), m, approvalOf(d), once(in.AccountID, d.ID))
	if err != nil {
		t.Fatal(err)
	}
	return draft(t, s, d), sent
}

func approvalOf(d store.Draft) store.Approval {
	return store.Approval{DraftSeq: d.Seq, DraftID: d.ID, Version: d.Version, By: "key_1"}
}

func draft(t *testing.T, s *store.Store, d store.Draft) store.Draft {
	t.Helper()
	d, err := s.Draft(t.Context(), d.AccountID, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A message that a node has claimed may be on its way: its approval stays.
func TestUndoIsRefusedOnceTheMessageIsClaimed(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		d, _ := approved(t, s, storetest.Inbox(t, s), time.Second)
		clock.Add(time.Second)
		if n := len(claim(t, s, 10, time.Minute)); n != 1 {
			t.Fatalf("claimed %d, want 1", n)
		}
		if _, err := s.UndoDraft(t.Context(), d, undoTime); !errors.Is(err, store.ErrState) {
			t.Errorf("got %v, want ErrState", err)
		}
		if got := draft(t, s, d); got.Status != store.DraftSent {
			t.Errorf("the draft is %s", got.Status)
		}
	})
}

// An undo that has to wait for a lock excludes a claim by another node: one of them
// succeeds, and not both.
func TestUndoAndClaimExcludeEachOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lock    string // that the undo waits for
		claimed int
		undone  error
		status  store.DraftStatus
	}{
		"a claim while the undo waits for the message": {`SELECT seq FROM messages WHERE seq = $1 FOR UPDATE`, 1, store.ErrState, store.DraftSent},
		"a claim while the undo waits for the inbox":   {`SELECT i.seq FROM inboxes i JOIN messages m ON m.inbox_seq = i.seq WHERE m.seq = $1 FOR UPDATE OF i`, 0, nil, store.DraftPending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(begin)
			cfg := storetest.Config(t, storetest.PostgreSQL, storetest.WithNow(clock.Now))
			s, other, db := storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg), openRaw(t, cfg)
			d, m := approved(t, s, storetest.Inbox(t, s), time.Second)
			held := db.MustBegin()
			defer func() { _ = held.Rollback() }() // it was only read
			held.MustExec(tt.lock, m.Seq)
			undone := make(chan error, 1)
			go func() {
				_, err := s.UndoDraft(t.Context(), d, undoTime)
				undone <- err
			}()
			blocked(t, db)
			clock.Add(time.Second)
			if n := len(claim(t, other, 10, time.Minute)); n != tt.claimed {
				t.Errorf("claimed %d, want %d", n, tt.claimed)
			}
			if err := held.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-undone; !errors.Is(err, tt.undone) {
				t.Errorf("undo: got %v, want %v", err, tt.undone)
			}
			if got := draft(t, s, d); got.Status != tt.status {
				t.Errorf("the draft is %s, want %s", got.Status, tt.status)
			}
		})
	}
}

// The cached response of an approval outlives its undo, as long as the draft has content.
func TestUndoneApprovalKeepsItsCachedResponse(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		d, _ := approved(t, s, in, undoTime+store.UndoMargin)
		approve := func() error {
			_, err := s.SendDraft(t.Context(), storetest.NewSent(in, []string{"ann@out.example"}), approvalOf(d), once(in.AccountID, d.ID))
			return err
		}
		d, err := s.UndoDraft(t.Context(), d, undoTime)
		if err != nil {
			t.Fatal(err)
		}
		if err := approve(); !errors.Is(err, store.ErrIdempotencyRaced) {
			t.Errorf("a repeated approval: got %v, want ErrIdempotencyRaced", err)
		}
		if got := draft(t, s, d); got.Status != store.DraftPending {
			t.Errorf("the draft is %s", got.Status)
		}
		if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CachedResponse(t.Context(), in.AccountID, operation, d.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after the inbox is deleted: got %v, want ErrNotFound", err)
		}
	})
}
