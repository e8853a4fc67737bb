package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// waiting is a store with queued messages, messages claimed by a node, a
// scheduled email and pending webhooks, and the numbers of held ones.
type waiting struct {
	s         *store.Store
	clock     *storetest.Clock
	hook      store.Webhook
	claimed   store.Claimed
	waits     store.Message
	scheduled store.Email
}

func holdWaiting(t *testing.T, s *store.Store, clock *storetest.Clock) *waiting {
	t.Helper()
	w := &waiting{s: s, clock: clock}
	in := storetest.Inbox(t, s)
	w.hook, _ = newHook(t, s, in.AccountID)
	storetest.Sent(t, s, in, []string{"hand@out.example"})
	w.claimed = claim(t, s, 1, time.Minute)[0]
	w.waits = storetest.Sent(t, s, in, []string{"ann@out.example", "bob@out.example"})
	w.scheduled = storetest.Email(t, s, in.AccountID, []string{"late@out.example"}, at(begin.Add(time.Hour)))
	if err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *waiting) wantHeld(t *testing.T, want store.Held) {
	t.Helper()
	got, err := w.s.Held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("held: -want +got:\n%s", diff)
	}
}

// due claims what is due and returns the numbers of recipients and deliveries.
func (w *waiting) due(t *testing.T) (recipients, posts int) {
	t.Helper()
	release(t, w.s)
	recipients = len(claim(t, w.s, 100, time.Millisecond))
	return recipients, len(claimQueues(t, w.s, w.hook))
}

// allHeld is what holdWaiting holds: three recipients, an email, and an event of
// each of the three messages.
var allHeld = store.Held{Recipients: 3, Scheduled: 1, Deliveries: 3}

func runHeld(t *testing.T, test func(t *testing.T, w *waiting)) {
	t.Helper()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		test(t, holdWaiting(t, storetest.OpenConfig(t, cfg), clock))
	})
}

// Held recipients and deliveries are never due; later ones are (C12).
func TestHeldIsNotSent(t *testing.T) {
	t.Parallel()
	runHeld(t, func(t *testing.T, w *waiting) {
		w.wantHeld(t, allHeld)
		w.clock.Add(48 * time.Hour)
		if recipients, posts := w.due(t); recipients != 0 || posts != 0 {
			t.Errorf("%d recipients and %d deliveries are due", recipients, posts)
		}
		next := store.NewTime(w.clock.Now())
		a := store.Attempt{RecipientSeq: w.claimed.Seq, MessageSeq: w.claimed.MessageSeq, Fence: w.claimed.Fence, Status: store.RecipientQueued, Next: &next}
		if err := w.s.RecordAttempt(t.Context(), a); !errors.Is(err, store.ErrState) {
			t.Errorf("an attempt from before the hold is recorded: %v", err)
		}
		if n, err := w.s.ReleaseLeases(t.Context(), store.WorkRecipients); err != nil || n != 0 {
			t.Errorf("%d leases released, %v", n, err)
		}
		storetest.Sent(t, w.s, storetest.Inbox(t, w.s), []string{"new@out.example"})
		if recipients, _ := w.due(t); recipients != 1 {
			t.Errorf("%d recipients of new mail are due, want 1", recipients)
		}
		w.wantHeld(t, allHeld)
	})
}

// ReleaseHeld with a time releases only what was not due at that time, and so was
// not sent by the old installation (C12).
func TestReleaseHeld(t *testing.T) {
	t.Parallel()
	runHeld(t, func(t *testing.T, w *waiting) {
		w.clock.Add(10 * time.Minute)
		got, err := w.s.ReleaseHeld(t.Context(), w.clock.Now())
		if want := (store.Held{Scheduled: 1}); err != nil || got != want {
			t.Fatalf("released %+v, %v, want %+v", got, err, want)
		}
		if recipients, posts := w.due(t); recipients != 0 || posts != 0 {
			t.Errorf("%d recipients and %d deliveries are due before their time", recipients, posts)
		}
		got, err = w.s.ReleaseHeld(t.Context(), time.Time{})
		if want := (store.Held{Recipients: 3, Deliveries: 3}); err != nil || got != want {
			t.Fatalf("released %+v, %v, want %+v", got, err, want)
		}
		if recipients, posts := w.due(t); recipients != 3 || posts != 3 {
			t.Errorf("%d recipients and %d deliveries are due, want 3 and 3", recipients, posts)
		}
		w.wantHeld(t, store.Held{})
		w.clock.Add(time.Hour)
		if recipients, _ := w.due(t); recipients != 4 { // the claims are over too
			t.Errorf("%d recipients are due, want 4 with the one of the scheduled email", recipients)
		}
	})
}

func TestDiscardHeld(t *testing.T) {
	t.Parallel()
	runHeld(t, func(t *testing.T, w *waiting) {
		got, err := w.s.DiscardHeld(t.Context(), "discarded")
		if err != nil || got != allHeld {
			t.Fatalf("discarded %+v, %v, want %+v", got, err, allHeld)
		}
		w.wantHeld(t, store.Held{})
		if m, err := w.s.Message(t.Context(), w.waits.AccountID, w.waits.ID); err != nil || m.Status != store.MessageFailed {
			t.Errorf("the message is %s, %v", m.Status, err)
		}
		if e := email(t, w.s, w.scheduled); e.Status != store.EmailCancelled {
			t.Errorf("the scheduled email is %s", e.Status)
		}
		w.clock.Add(2 * time.Hour)
		recipients, posts := w.due(t)
		if want := 4; recipients != 0 || posts != want { // three recipients failed, an email was cancelled
			t.Errorf("%d recipients and %d deliveries are due, want none and the %d of what was discarded", recipients, posts, want)
		}
		if failed := hookDeliveries(t, w.s, w.hook, store.DeliveryFilter{Status: store.DeliveryFailed}); len(failed) != 3 || *failed[0].LastError != "discarded" {
			t.Errorf("%d deliveries have failed", len(failed))
		}
	})
}

// A single held recipient, email or delivery can be changed while it is held.
func TestHeldOneByOne(t *testing.T) {
	t.Parallel()
	runHeld(t, func(t *testing.T, w *waiting) {
		d := hookDeliveries(t, w.s, w.hook, store.DeliveryFilter{})[0]
		if err := w.s.RescheduleEmail(t.Context(), w.scheduled.AccountID, w.scheduled.ID, store.NewTime(begin), dueRules); !errors.Is(err, store.ErrState) {
			t.Errorf("an email that may have been sent was rescheduled: %v", err)
		}
		if err := w.s.CancelEmail(t.Context(), w.scheduled.AccountID, w.scheduled.ID); err != nil {
			t.Error(err)
		}
		if _, err := w.s.RetryDelivery(t.Context(), w.hook, d.ID); err != nil {
			t.Error(err)
		}
		report := store.Report{RecipientSeq: w.claimed.Seq, MessageSeq: w.claimed.MessageSeq, Status: store.RecipientBounced, Response: "550 No such user"}
		if err := w.s.RecordReport(t.Context(), report); err != nil { // the old installation had sent it
			t.Error(err)
		}
		w.wantHeld(t, store.Held{Recipients: 2, Deliveries: 2})
		if recipients, _ := w.due(t); recipients != 0 {
			t.Errorf("%d recipients are due", recipients)
		}
	})
}

// A blob is not deleted while a backup is made of it, and goes afterwards (C12).
func TestBlobsAreKeptForABackup(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now().Add(2 * time.Hour)) // what is written now is old
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		key, err := cfg.Blobs.Put(t.Context(), bytes.NewReader([]byte("mail")), 4)
		if err != nil {
			t.Fatal(err)
		}
		m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.Raw, m.Content.BlobKey = nil, &key })
		if err := s.KeepBlobs(t.Context(), "a backup", clock.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteMessage(t.Context(), in.AccountID, m.ID); err != nil {
			t.Fatal(err)
		}
		if n, err := s.SweepBlobs(t.Context()); err != nil || n != 0 {
			t.Errorf("%d blobs swept, %v", n, err)
		}
		clock.Add(25 * time.Hour)
		if n, err := s.SweepBlobs(t.Context()); err != nil || n != 1 {
			t.Errorf("%d blobs swept after the backup, %v", n, err)
		}
	})
}
