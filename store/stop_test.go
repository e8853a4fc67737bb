package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// stopAll stops an account, so that claims leave its mail.
func stopAll(t *testing.T, s *store.Store, account int64) {
	t.Helper()
	if _, err := s.Stop(t.Context(), account, store.StopAccount); err != nil {
		t.Fatal(err)
	}
	if cs := claim(t, s, 100, time.Minute); len(cs) != 0 {
		t.Fatalf("claimed %d of a stopped account", len(cs))
	}
}

func resumeAll(t *testing.T, s *store.Store, account int64) {
	t.Helper()
	if _, err := s.Resume(t.Context(), account, store.StopAccount); err != nil {
		t.Fatal(err)
	}
}

// Retention keeps what waits for a person to resume sending, also that of a deleted inbox.
// The time for retries begins when sending is resumed.
func TestStoppedMailIsKept(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in, deleted := storetest.Inbox(t, s), storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@out.example"})
		storetest.Email(t, s, in.AccountID, []string{"eve@out.example"})
		storetest.Sent(t, s, deleted, []string{"ann@out.example"})
		for _, account := range []int64{in.AccountID, deleted.AccountID} {
			if _, err := s.Stop(t.Context(), account, store.StopAccount); err != nil {
				t.Fatal(err)
			}
		}
		stopAll(t, s, in.AccountID)
		if _, err := s.DeleteInbox(t.Context(), deleted.AccountID, deleted.ID); err != nil {
			t.Fatal(err)
		}
		clock.Add(31 * 24 * time.Hour)
		for _, expire := range []func() (store.Removed, error){
			func() (store.Removed, error) { return s.ExpireInbox(t.Context(), in.Seq, store.Time{}) },
			func() (store.Removed, error) { return s.ExpireInbox(t.Context(), deleted.Seq, store.Time{}) },
			func() (store.Removed, error) {
				return s.ExpireEmails(t.Context(), store.DefaultEmailRetention, store.Time{})
			},
		} {
			if gone, err := expire(); err != nil || gone.Contents+gone.Records > 0 {
				t.Errorf("deleted %+v, %v", gone, err)
			}
		}
		resumeAll(t, s, in.AccountID)
		resumeAll(t, s, deleted.AccountID)
		if _, err := s.ReleaseResumed(t.Context()); err != nil {
			t.Fatal(err)
		}
		due := claim(t, s, 10, time.Minute)
		if len(due) != 3 {
			t.Errorf("%d recipients are due, want 3", len(due))
		}
		for _, c := range due {
			if _, err := s.Raw(t.Context(), c.MessageSeq); err != nil {
				t.Errorf("%s: %v", c.Email, err)
			}
			if now := store.NewTime(clock.Now()); c.CreatedAt != now {
				t.Errorf("the retries of %s began %s, want %s", c.Email, c.CreatedAt, now)
			}
		}
	})
}

// A message that comes back while its sender is stopped is not sent again.
func TestBouncedWhileStopped(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@out.example"})
		c := claim(t, s, 1, time.Minute)[0]
		next := store.NewTime(clock.Now().Add(5 * time.Minute))
		err := s.RecordAttempt(t.Context(), store.Attempt{
			RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence,
			Status: store.RecipientQueued, Next: &next, Response: "451 4.4.2 no reply after the message",
		})
		if err != nil {
			t.Fatal(err)
		}
		clock.Add(10 * time.Minute)
		stopAll(t, s, in.AccountID)
		err = s.RecordReport(t.Context(), store.Report{
			RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Status: store.RecipientBounced, Soft: true, Response: "452 4.2.2 full",
		})
		if err != nil {
			t.Fatal(err)
		}
		resumeAll(t, s, in.AccountID)
		if again := claim(t, s, 10, time.Minute); len(again) > 0 {
			t.Errorf("%s is %s and was claimed again", again[0].Email, again[0].Status)
		}
	})
}

// After a restore, what was stopped waits for the operator too: it may have been resumed
// and sent after the backup.
func TestStoppedMailIsHeld(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		cfg.Now = storetest.NewClock(begin).Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@out.example"})
		stopAll(t, s, in.AccountID)
		if err := s.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h, err := s.Held(t.Context()); err != nil || h.Recipients != 1 {
			t.Errorf("held %+v, %v", h, err)
		}
		resumeAll(t, s, in.AccountID)
		if cs := claim(t, s, 10, time.Minute); len(cs) != 0 {
			t.Errorf("claimed %d before they were released", len(cs))
		}
		if _, err := s.ReleaseHeld(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 {
			t.Errorf("claimed %d after they were released, want 1", len(cs))
		}
	})
}

// Much mail becomes due in many transactions, on whichever node is there. What another
// stop covers stays stopped.
func TestResumeOfMuchMail(t *testing.T) {
	t.Parallel()
	const recipients = 1200
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		cfg.Now = storetest.NewClock(begin).Now
		s := storetest.OpenConfig(t, cfg)
		db := openRaw(t, cfg)
		in := storetest.Inbox(t, s)
		stillStopped := storetest.Inbox(t, s, func(other *store.Inbox) { other.AccountID = in.AccountID })
		m := storetest.Sent(t, s, in, []string{"bob@out.example"})
		storetest.Sent(t, s, stillStopped, []string{"eve@out.example"})
		if _, err := s.Stop(t.Context(), in.AccountID, stillStopped.ID); err != nil {
			t.Fatal(err)
		}
		stopAll(t, s, in.AccountID)
		for i := range recipients {
			db.MustExec(db.Rebind(`INSERT INTO recipients (account_id, message_seq, email, domain, kind, status, attempts, fence, created_at, stopped_due)
				VALUES (?, ?, 'a' || cast(? AS text) || '@out.example', 'out.example', 'to', 'queued', 0, 1, 1, 1)`), in.AccountID, m.Seq, i)
		}
		resumeAll(t, s, in.AccountID)
		for range 2 {
			if n, err := s.ReleaseResumed(t.Context()); err != nil || n == 0 {
				t.Errorf("released %d, %v", n, err)
			}
		}
		for {
			n, err := s.ReleaseResumed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		due := 0
		for {
			cs, err := s.ClaimRecipients(context.Background(), 500, time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(cs) == 0 {
				break
			}
			due += len(cs)
		}
		if due != recipients+1 {
			t.Errorf("%d recipients are due, want %d", due, recipients+1)
		}
		if _, err := s.Resume(t.Context(), in.AccountID, stillStopped.ID); err != nil {
			t.Fatal(err)
		}
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 || cs[0].Email != "eve@out.example" {
			t.Errorf("claimed %v of the other stop", cs)
		}
	})
}

// What was stopped is found at once when sending is resumed, although the queue has just
// been searched.
func TestResumedMailIsDueAtOnce(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in, other := storetest.Inbox(t, s), storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@out.example"})
		stopAll(t, s, in.AccountID)
		clock.Add(time.Hour)
		storetest.Sent(t, s, other, []string{"eve@out.example"})
		if _, err := s.NextDue(t.Context(), store.WorkRecipients, nil); err != nil { // searches the whole queue
			t.Fatal(err)
		}
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 {
			t.Fatalf("claimed %d, want 1", len(cs))
		}
		resumeAll(t, s, in.AccountID)
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 || cs[0].Email != "bob@out.example" {
			t.Errorf("claimed %v after resuming", cs)
		}
	})
}

// A node that is older than the schema does not release what was stopped. Another one does.
func TestPausedNodeReleasesNothing(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Sent(t, s, in, []string{"bob@out.example"})
	stopAll(t, s, in.AccountID)
	db.MustExec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	s.LookAtSchema(t.Context())
	resumeAll(t, s, in.AccountID)
	if n := count(t, cfg, "recipients WHERE stopped_due IS NOT NULL"); n != 1 {
		t.Errorf("%d recipients wait for the stop, want 1", n)
	}
	db.MustExec(`DELETE FROM goose_db_version WHERE version_id = 99999`)
	s.LookAtSchema(t.Context())
	if n, err := s.ReleaseResumed(t.Context()); err != nil || n != 1 {
		t.Errorf("released %d, %v, want 1", n, err)
	}
}

// Two nodes claim at the same time although an account is stopped.
func TestAStopDoesNotSerializeClaims(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	stopped, busy := storetest.Inbox(t, s), storetest.Inbox(t, s)
	storetest.Sent(t, s, stopped, []string{"bob@out.example"})
	storetest.Sent(t, s, busy, []string{"eve@out.example"})
	if _, err := s.Stop(t.Context(), stopped.AccountID, store.StopAccount); err != nil {
		t.Fatal(err)
	}
	frozen := db.MustBegin() // in the middle of a claim
	defer func() { _ = frozen.Rollback() }()
	frozen.MustExec(`SELECT account_id, scope FROM stops FOR KEY SHARE`)
	if cs := claim(t, s, 10, time.Minute); len(cs) != 1 || cs[0].Email != "eve@out.example" {
		t.Errorf("claimed %v", cs)
	}
}
