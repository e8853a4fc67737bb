package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func attempt(c store.Claimed, status store.RecipientStatus, edits ...func(*store.Attempt)) store.Attempt {
	a := store.Attempt{
		RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: status, Response: "the reply to " + c.Email,
	}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

func record(t *testing.T, s *store.Store, c store.Claimed, status store.RecipientStatus, edits ...func(*store.Attempt)) {
	t.Helper()
	if err := s.RecordAttempt(t.Context(), attempt(c, status, edits...)); err != nil {
		t.Fatal(err)
	}
}

// event is what an event of the database says.
type event struct{ Type, Recipient, Status string }

func events(t *testing.T, cfg store.Config, messageSeq int64) []event {
	t.Helper()
	var rows []struct {
		Type string `db:"type"`
		Data string `db:"data"`
	}
	db := openRaw(t, cfg)
	err := db.Select(&rows, `SELECT type, data FROM events WHERE message_seq = $1 ORDER BY seq`, messageSeq)
	if err = errors.Join(err, db.Close()); err != nil { // at once, because tests call this often
		t.Fatal(err)
	}
	var es []event
	for _, r := range rows {
		var d store.EventData
		if err := json.Unmarshal([]byte(r.Data), &d); err != nil {
			t.Fatal(err)
		}
		es = append(es, event{r.Type, d.Recipient, string(d.Status)})
	}
	return es
}

// The status of a message is the furthest that any recipient has reached.
func TestAttemptsMoveTheMessage(t *testing.T) {
	t.Parallel()
	const (
		queued, sent, delivered = store.RecipientQueued, store.RecipientSent, store.RecipientDelivered
		bounced, failed         = store.RecipientBounced, store.RecipientFailed
	)
	tests := []struct {
		outcomes []store.RecipientStatus
		want     store.MessageStatus
		sent     bool
		arrived  bool
	}{
		{[]store.RecipientStatus{delivered}, store.MessageDelivered, true, true},
		{[]store.RecipientStatus{sent}, store.MessageSent, true, false},
		{[]store.RecipientStatus{bounced}, store.MessageBounced, false, false},
		{[]store.RecipientStatus{failed}, store.MessageFailed, false, false},
		{[]store.RecipientStatus{queued}, store.MessageQueued, false, false},
		{[]store.RecipientStatus{bounced, queued}, store.MessageQueued, false, false},
		{[]store.RecipientStatus{bounced, sent}, store.MessageSent, true, false},
		{[]store.RecipientStatus{sent, delivered}, store.MessageDelivered, true, true},
		{[]store.RecipientStatus{delivered, bounced}, store.MessageDelivered, true, true},
		{[]store.RecipientStatus{delivered, queued}, store.MessageDelivered, true, true},
		{[]store.RecipientStatus{failed, bounced}, store.MessageBounced, false, false},
		{[]store.RecipientStatus{bounced, failed, sent, delivered, queued}, store.MessageDelivered, true, true},
	}
	eventsOf := map[store.RecipientStatus][]string{
		sent: {"message.sent"}, delivered: {"message.sent", "message.delivered"}, bounced: {"message.bounced"}, failed: {"message.failed"},
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		for _, tt := range tests {
			var to []string
			for i := range tt.outcomes {
				to = append(to, fmt.Sprintf("r%d@out.example", i))
			}
			m := storetest.Sent(t, s, in, to)
			want := []event{{"message.queued", "", "queued"}}
			wake := s.WakeInbox(in.Seq)
			later := store.NewTime(time.Now().Add(time.Hour))
			for i, c := range claim(t, s, 10, time.Minute) {
				record(t, s, c, tt.outcomes[i], func(a *store.Attempt) {
					if a.Status == queued {
						a.Next = &later
					}
				})
				for _, typ := range eventsOf[tt.outcomes[i]] {
					want = append(want, event{typ, c.Email, ""})
				}
			}
			got, err := s.Message(t.Context(), in.AccountID, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tt.want || (got.SentAt != nil) != tt.sent || (got.DeliveredAt != nil) != tt.arrived {
				t.Errorf("%v: the message is %s, sent %v, delivered %v", tt.outcomes, got.Status, got.SentAt, got.DeliveredAt)
			}
			for i, r := range got.Recipients {
				if r.Status != tt.outcomes[i] || *r.LastResponse != "the reply to "+r.Email || (r.NextAttemptAt != nil) != (r.Status == queued) {
					t.Errorf("%v: recipient %d is %+v", tt.outcomes, i, r)
				}
			}
			es := events(t, cfg, m.Seq)
			if len(es) > 1 && es[len(es)-1].Status != string(tt.want) {
				t.Errorf("%v: the last event says the message is %s", tt.outcomes, es[len(es)-1].Status)
			}
			for i := range es[1:] {
				es[i+1].Status = ""
			}
			if diff := cmp.Diff(want, es); diff != "" {
				t.Errorf("%v: events (-want +got):\n%s", tt.outcomes, diff)
			}
			if len(want) > 1 {
				<-wake.C // who waits for the outcome hears of it
			}
			wake.Stop()
			if _, err := openRaw(t, cfg).Exec(`UPDATE recipients SET next_attempt_at = NULL`); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTimesOfARecipientAreSetOnce(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"a@out.example", "b@out.example"})
		cs := claim(t, s, 2, time.Hour)
		clock.Add(time.Second)
		at := store.NewTime(clock.Now())
		record(t, s, cs[0], store.RecipientDelivered)
		clock.Add(time.Second)
		record(t, s, cs[1], store.RecipientDelivered)
		got, err := s.Message(t.Context(), in.AccountID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !got.SentAt.Equal(at.Time) || !got.DeliveredAt.Equal(at.Time) || !got.Recipients[0].DeliveredAt.Equal(at.Time) {
			t.Errorf("sent %v, delivered %v, want both at %v", got.SentAt, got.DeliveredAt, at)
		}
		if !got.Recipients[1].DeliveredAt.Equal(store.NewTime(clock.Now()).Time) {
			t.Errorf("the second was delivered at %v", got.Recipients[1].DeliveredAt)
		}
	})
}

// A node that slept through its lease may no longer record.
func TestStaleFenceIsRefused(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(begin)
			cfg := storetest.Config(t, e, storetest.WithNow(clock.Now))
			s := storetest.OpenConfig(t, cfg)
			in := storetest.Inbox(t, s)
			m := storetest.Sent(t, s, in, []string{"bob@out.example"})
			asleep := claim(t, s, 1, time.Minute)[0]
			clock.Add(time.Minute)
			awake := claim(t, s, 1, time.Minute)[0]

			if err := s.RecordAttempt(t.Context(), attempt(asleep, store.RecipientBounced)); !errors.Is(err, store.ErrState) {
				t.Errorf("the old claim: got %v, want ErrState", err)
			}
			record(t, s, awake, store.RecipientDelivered)
			if err := s.RecordAttempt(t.Context(), attempt(awake, store.RecipientBounced)); !errors.Is(err, store.ErrState) {
				t.Errorf("recorded twice: got %v, want ErrState", err)
			}
			got, err := s.Message(t.Context(), in.AccountID, m.ID)
			if err != nil || got.Status != store.MessageDelivered {
				t.Errorf("the message is %s, %v", got.Status, err)
			}
			if n := len(events(t, cfg, m.Seq)); n != 3 {
				t.Errorf("%d events, want queued, sent and delivered", n)
			}
		})
	}
}

func TestAttemptThatWouldLoseTheRecipientIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	storetest.Sent(t, s, in, []string{"bob@out.example"})
	c := claim(t, s, 1, time.Minute)[0]
	if err := s.RecordAttempt(t.Context(), attempt(c, store.RecipientQueued)); err == nil {
		t.Error("a recipient was queued for never")
	}
	later := store.NewTime(time.Now())
	if err := s.RecordAttempt(t.Context(), attempt(c, store.RecipientDelivered, func(a *store.Attempt) { a.Next = &later })); err == nil {
		t.Error("a delivered recipient was queued again")
	}
	record(t, s, c, store.RecipientDelivered)
}

// Another server may say anything.
func TestOddResponseIsKeptAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"bob@out.example"})
		odd := "550 \x00\xff" + strings.Repeat("ü", 2000) // cut within a character
		record(t, s, claim(t, s, 1, time.Minute)[0], store.RecipientBounced, func(a *store.Attempt) { a.Response = odd })
		got, err := s.Message(t.Context(), in.AccountID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		r := *got.Recipients[0].LastResponse
		if !utf8.ValidString(r) || len(r) > 1010 || !strings.HasPrefix(r, "550 \uFFFDü") {
			t.Errorf("kept %d bytes: %.20q", len(r), r)
		}
	})
}

func TestFirstSignatureIsKept(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"a@out.example", "b@out.example"})
		for i, c := range claim(t, s, 2, time.Minute) {
			record(t, s, c, store.RecipientDelivered, func(a *store.Attempt) { a.Signature = fmt.Sprintf("DKIM-Signature: %d\r\n", i) })
		}
		raw, err := s.Raw(t.Context(), m.Seq)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = raw.Close() }()
		if raw.Signature != "DKIM-Signature: 0\r\n" {
			t.Errorf("signature is %q, want the first", raw.Signature)
		}
	})
}

// Mail between our own inboxes arrives and is recorded in one transaction.
func TestLocalDeliveryArrivesOnce(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		from, to := storetest.Inbox(t, s), storetest.Inbox(t, s)
		m := storetest.Sent(t, s, from, []string{to.Address})
		c := claim(t, s, 1, time.Minute)[0]
		deliver := func() error {
			a := attempt(c, store.RecipientDelivered)
			_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(to)}, []*store.Attempt{&a})
			return err
		}
		var calls sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			calls.Go(func() { errs[i] = deliver() })
		}
		calls.Wait()
		passed := 0
		for _, err := range errs {
			if err == nil {
				passed++
			} else if !errors.Is(err, store.ErrState) {
				t.Errorf("got %v, want ErrState", err)
			}
		}
		if n := len(every(t, s, store.MessageFilter{InboxSeq: to.Seq}, 10)); n != 1 || passed != 1 {
			t.Errorf("%d calls passed and %d messages arrived, want 1", passed, n)
		}
		got, err := s.Message(t.Context(), from.AccountID, m.ID)
		if err != nil || got.Status != store.MessageDelivered {
			t.Errorf("the sent one is %s, %v", got.Status, err)
		}

		// An inbox that takes no mail leaves the recipient unchanged.
		storetest.Sent(t, s, from, []string{to.Address})
		c = claim(t, s, 1, time.Minute)[0]
		if _, err := s.DeleteInbox(t.Context(), to.AccountID, to.ID); err != nil {
			t.Fatal(err)
		}
		if err := deliver(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("to a deleted inbox: got %v, want ErrNotFound", err)
		}
		record(t, s, c, store.RecipientBounced)
	})
}

// Recipients of one message whose inboxes belong to different committers are
// delivered to at the same time: their transactions must not wait for each
// other in a ring.
func TestLocalDeliveriesOfOneMessageDoNotDeadlock(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		before := deadlocks(t, cfg)
		from := storetest.Inbox(t, s)
		var to []string
		inboxes := map[string]store.Inbox{}
		for range 16 {
			in := storetest.Inbox(t, s)
			to, inboxes[in.Address] = append(to, in.Address), in
		}
		for range 10 {
			m := storetest.Sent(t, s, from, to)
			var deliveries sync.WaitGroup
			for _, c := range claim(t, s, len(to), time.Hour) {
				deliveries.Go(func() {
					a := attempt(c, store.RecipientDelivered)
					if _, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(inboxes[c.Email])}, []*store.Attempt{&a}); err != nil {
						t.Error(err)
					}
				})
			}
			deliveries.Wait()
			got, err := s.Message(t.Context(), from.AccountID, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Recipients {
				if r.Status != store.RecipientDelivered {
					t.Errorf("%s is %s", r.Email, r.Status)
				}
			}
		}
		if n := deadlocks(t, cfg) - before; n > 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// deadlocks is how many PostgreSQL has broken in this database so far.
func deadlocks(t *testing.T, cfg store.Config) int {
	t.Helper()
	n := 0
	if strings.HasPrefix(cfg.Database, "postgres") {
		if err := openRaw(t, cfg).Get(&n, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A recipient that complains has received the message. Its times and events show that.
func TestComplaintSetsTheTimes(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		e := storetest.Email(t, s, storetest.Account(t, s).Seq, []string{"ann@out.example"})
		record(t, s, claim(t, s, 1, time.Minute)[0], store.RecipientComplained)
		got := email(t, s, e)
		if r := got.Recipients[0]; got.SentAt == nil || got.DeliveredAt == nil || r.SentAt == nil || r.DeliveredAt == nil {
			t.Errorf("sent at %v, delivered at %v; the recipient at %v, %v", got.SentAt, got.DeliveredAt, r.SentAt, r.DeliveredAt)
		}
	})
}

// A result is recorded once. A node that does not know what became of a commit records it
// again.
func TestAResultIsRecordedOnce(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		m := storetest.Sent(t, s, storetest.Inbox(t, s), []string{"ann@out.example"})
		c := claim(t, s, 1, time.Minute)[0]
		later := store.NewTime(clock.Now().Add(time.Hour))
		untried := attempt(c, store.RecipientQueued, func(a *store.Attempt) { a.Next, a.Untried, a.Response = &later, true, "" })
		if err := s.RecordAttempt(t.Context(), untried); err != nil {
			t.Fatal(err)
		}
		for _, again := range []store.Attempt{untried, attempt(c, store.RecipientDelivered)} {
			if err := s.RecordAttempt(t.Context(), again); !errors.Is(err, store.ErrState) {
				t.Errorf("recorded again as %s: %v", again.Status, err)
			}
		}
		got, err := s.Message(t.Context(), m.AccountID, m.ID)
		if err != nil || got.Recipients[0].Attempts != 0 || got.Recipients[0].Status != store.RecipientQueued {
			t.Errorf("%+v, %v", got.Recipients, err)
		}
	})
}
