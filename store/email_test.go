package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func tagged(name, value string) func(*store.NewEmail) {
	return func(e *store.NewEmail) { e.Tags.V = labels(name, value) }
}

func email(t *testing.T, s *store.Store, e store.Email) store.Email {
	t.Helper()
	got, err := s.Email(t.Context(), e.AccountID, nil, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEmailIsReadAsItWasAccepted(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		e := storetest.Email(t, s, account, []string{"ann@out.example", "bob@out.example"}, func(e *store.NewEmail) {
			e.Category = store.CategoryMarketing
			e.Tags.V = labels("flow", "receipt", "wave", "2")
			e.Metadata.V = json.RawMessage(`{"big":12345678901234567890,"list":[1,null]}`)
			e.Content.Body.V = store.Body{Text: "Hi", HTML: "<p>Hi</p>"}
		})
		if !strings.HasPrefix(e.ID, "em_") || e.Status != store.MessageQueued {
			t.Errorf("accepted as %s, %s", e.ID, e.Status)
		}
		got := email(t, s, e)
		e.Content.Raw = nil           // what has its body beside it is read without
		for i := range e.Recipients { // rows of the queue have a number
			e.Recipients[i].Seq = got.Recipients[i].Seq
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("-accepted +read:\n%s", d)
		}
		if l, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: account}, store.Page{Limit: 10}); err != nil || len(l.Rows) != 0 {
			t.Errorf("messages: %v, %v, want none", l.Rows, err)
		}
		if _, err := s.Message(t.Context(), account, e.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("as a message: %v", err)
		}
		if _, err := s.Email(t.Context(), storetest.Account(t, s).Seq, nil, e.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another account: %v", err)
		}
	}, storetest.WithNow(clock.Now))
}

func TestStatesOfAnEmail(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		e := storetest.Email(t, s, account, []string{"ann@out.example", "bob@out.example"})
		cs := claim(t, s, 10, time.Minute)
		if len(cs) != 2 || cs[0].From != "hello@"+storetest.Domain {
			t.Fatalf("claimed %+v", cs)
		}
		if got := email(t, s, e); got.Status != store.EmailSending || got.Recipients[1].Status != store.RecipientSending {
			t.Errorf("claimed: %s, %s", got.Status, got.Recipients[1].Status)
		}
		for i, status := range []store.RecipientStatus{store.RecipientBounced, store.RecipientClicked} {
			a := store.Attempt{RecipientSeq: cs[i].Seq, MessageSeq: cs[i].MessageSeq, Fence: cs[i].Fence, Status: status, Response: "250 ok"}
			if err := s.RecordAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		got := email(t, s, e)
		if got.Status != store.EmailClicked || got.OpenedAt == nil || got.DeliveredAt == nil || got.SentAt == nil {
			t.Errorf("in the end: %+v", got)
		}
	})
}

// The filter matches the status that an email shows, even if only some of its
// recipients have a final status.
func TestStatusFilterIsWhatIsShown(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		e := storetest.Email(t, s, storetest.Account(t, s).Seq, []string{"ann@out.example", "bob@out.example"})
		want := func(when string, status store.MessageStatus) {
			t.Helper()
			if got := email(t, s, e); got.Status != status {
				t.Errorf("%s: shown as %s, want %s", when, got.Status, status)
			}
			for _, f := range []store.MessageStatus{store.MessageQueued, store.EmailSending} {
				l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: e.AccountID, Status: f}, store.Page{Limit: 10})
				if err != nil || (len(l.Rows) == 1) != (f == status) {
					t.Errorf("%s: %d are %s, %v", when, len(l.Rows), f, err)
				}
			}
		}
		want("at first", store.MessageQueued)
		record(t, s, claim(t, s, 1, time.Minute)[0], store.RecipientBounced)
		want("one has bounced", store.MessageQueued)
		claim(t, s, 1, time.Minute)
		want("the other is tried", store.EmailSending)
	})
}

func TestEmailsAreListed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		in := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
		later := at(time.Now().Add(time.Hour))
		to := []string{"ann@out.example"}
		one := storetest.Email(t, s, account, to, tagged("flow", "a"))
		two := storetest.Email(t, s, account, to, tagged("flow", "b"), later)
		three := storetest.Email(t, s, account, to, tagged("flow", "a"), later)
		four := storetest.Email(t, s, account, to, func(e *store.NewEmail) { e.FromInbox = &in.Seq })
		b, err := s.EnqueueBatch(t.Context(), []*store.NewEmail{
			storetest.NewEmail(account, to, tagged("flow", "a")), storetest.NewEmail(account, to, tagged("flow", "b")),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		five, six := b.Emails[0], b.Emails[1]
		storetest.Email(t, s, storetest.Account(t, s).Seq, to, tagged("flow", "a"))
		tag := [][2]string{{"flow", "a"}}
		for name, tt := range map[string]struct {
			f    store.EmailFilter
			want []store.Email
		}{
			"all":             {store.EmailFilter{}, []store.Email{six, five, four, three, two, one}},
			"a tag":           {store.EmailFilter{Tags: tag}, []store.Email{five, three, one}},
			"one of tags":     {store.EmailFilter{Tags: [][2]string{{"flow", "a"}, {"flow", "none"}}}, []store.Email{five, three, one}},
			"a status":        {store.EmailFilter{Status: store.EmailScheduled}, []store.Email{three, two}},
			"queued":          {store.EmailFilter{Status: store.MessageQueued}, []store.Email{six, five, four, one}},
			"sending":         {store.EmailFilter{Status: store.EmailSending}, nil},
			"tag and status":  {store.EmailFilter{Tags: tag, Status: store.EmailScheduled}, []store.Email{three}},
			"a batch":         {store.EmailFilter{BatchID: b.ID}, []store.Email{six, five}},
			"batch and tag":   {store.EmailFilter{BatchID: b.ID, Tags: tag}, []store.Email{five}},
			"no such batch":   {store.EmailFilter{BatchID: "batch_none"}, nil},
			"of an inbox":     {store.EmailFilter{InboxIDs: []string{in.ID}}, []store.Email{four}},
			"of no inbox":     {store.EmailFilter{InboxIDs: []string{}}, nil},
			"inbox and state": {store.EmailFilter{InboxIDs: []string{in.ID}, Status: store.EmailCancelled}, nil},
		} {
			tt.f.AccountID = account
			for _, limit := range []int{1, 2, 3, 100} {
				var got []string
				for cursor, more := "", true; more; more = cursor != "" {
					l, err := s.ListEmails(t.Context(), tt.f, store.Page{Limit: limit, Cursor: cursor})
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range l.Rows {
						got = append(got, e.ID)
						if e.Content == nil || len(e.Recipients) != 1 {
							t.Errorf("%s: %s has no content or recipients", name, e.ID)
						}
					}
					cursor = l.Cursor
				}
				var want []string
				for _, e := range tt.want {
					want = append(want, e.ID)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, by %d: -want +got:\n%s", name, limit, d)
				}
			}
		}
		l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: account}, store.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		other := store.EmailFilter{AccountID: account, BatchID: b.ID}
		if _, err := s.ListEmails(t.Context(), other, store.Page{Limit: 1, Cursor: l.Cursor}); !errors.Is(err, store.ErrCursor) {
			t.Errorf("a cursor of another list: %v", err)
		}
	})
}

// A batch is stored completely, with its response, or not at all.
func TestBatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s)
		free := store.PlanFree
		if err := s.SetPlan(t.Context(), account.ID, &free); err != nil {
			t.Fatal(err)
		}
		batch := func(n int) []*store.NewEmail {
			var es []*store.NewEmail
			for i := range n {
				es = append(es, storetest.NewEmail(account.Seq, []string{fmt.Sprintf("r%d@out.example", i), "x@out.example"}))
			}
			return es
		}
		once := &store.Once{AccountID: account.Seq, Operation: "POST /v1/emails/batch", Key: "k", BodyHash: []byte("h"), Render: func(row any) (store.CachedResponse, error) {
			b := row.(store.Batch)
			return store.CachedResponse{Status: 201, Kind: "EmailBatch", Body: []byte(b.ID + fmt.Sprint(len(b.Emails)))}, nil
		}}
		b, err := s.EnqueueBatch(t.Context(), batch(60), once)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, e := range b.Emails {
			if ids[e.ID] = true; e.BatchID == nil || *e.BatchID != b.ID {
				t.Errorf("an email of batch %v", e.BatchID)
			}
		}
		if len(ids) != 60 || !strings.HasPrefix(b.ID, "batch_") {
			t.Errorf("%d emails of %s", len(ids), b.ID)
		}
		ans, err := s.CachedResponse(t.Context(), account.Seq, once.Operation, once.Key)
		if err != nil || string(ans.Body) != b.ID+"60" {
			t.Errorf("cached response %q, %v", ans.Body, err)
		}
		if _, err := s.EnqueueBatch(t.Context(), batch(1), once); !errors.Is(err, store.ErrIdempotencyRaced) {
			t.Errorf("under the same key: %v", err)
		}
		var limit *store.LimitError
		if _, err := s.EnqueueBatch(t.Context(), batch(41), nil); !errors.As(err, &limit) { // 120 of 200 a day are taken
			t.Errorf("past the plan: %v", err)
		}
		l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: account.Seq}, store.Page{Limit: 100})
		if err != nil || len(l.Rows) != 60 || !slices.ContainsFunc(l.Rows, func(e store.Email) bool { return e.ID == b.Emails[59].ID }) {
			t.Errorf("%d emails, %v, want 60", len(l.Rows), err)
		}
	})
}

// The content of emails goes after some time, and the rest RecordTTL later;
// nothing goes of what is still to be sent.
func TestEmailsExpire(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		account := storetest.Account(t, s).Seq
		key, _, err := s.PutBlob(t.Context(), strings.NewReader("a large mail"), 12)
		if err != nil {
			t.Fatal(err)
		}
		to := []string{"ann@out.example"}
		sent := storetest.Email(t, s, account, to, func(e *store.NewEmail) {
			e.Content.BlobKey, e.Content.Raw = &key, nil
			e.Tags.V = labels("flow", "receipt", "n", "1")
		})
		record(t, s, claim(t, s, 1, time.Minute)[0], store.RecipientDelivered)
		waiting := storetest.Email(t, s, account, to)
		due := store.NewTime(clock.Now().Add(29 * day))
		scheduled := storetest.Email(t, s, account, to, func(e *store.NewEmail) { e.ScheduledAt = &due })
		expire := func() store.Removed {
			gone := toTheEnd(t, func() (store.Removed, error) { return s.ExpireEmails(t.Context(), 7*day, store.Time{}) })
			gone.Add(toTheEnd(t, func() (store.Removed, error) { return s.ExpireRecords(t.Context()) }))
			return gone
		}
		clock.Add(7*day - time.Minute)
		wantRemoved(t, expire(), store.Removed{})
		clock.Add(time.Hour)
		wantRemoved(t, expire(), store.Removed{Contents: 1, Blobs: 1})
		for _, e := range []store.Email{sent, waiting, scheduled} {
			got, err := s.Email(t.Context(), account, nil, e.ID)
			if gone := e.ID == sent.ID; err != nil || (got.ExpiredAt != nil) != gone || (got.Content == nil || got.Content.Body == nil) != gone {
				t.Errorf("%s: expired at %v, content %v, %v", e.Status, got.ExpiredAt, got.Content, err)
			}
		}
		clock.Add(store.RecordTTL)
		wantRemoved(t, expire(), store.Removed{Records: 1})
		if _, err := s.Email(t.Context(), account, nil, sent.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the record: %v", err)
		}
		l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: account, Tags: [][2]string{{"flow", "receipt"}}}, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 0 {
			t.Errorf("by its tag: %+v, %v", l.Rows, err)
		}
	})
}

// labels returns labels with text values, of names and texts by turns.
func labels(pairs ...string) store.Labels {
	out := store.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = json.RawMessage(strconv.Quote(pairs[i+1]))
	}
	return out
}

// Emails and sent messages are found by a recipient and by time, on every page. Half of
// the emails have the long ids of former releases.
func TestSentIsFoundByRecipientAndTime(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
		account := storetest.Account(t, s).Seq
		in := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
		times := map[int]store.Time{}
		number := map[string]int{}
		for i := range 6 {
			times[i] = store.NewTime(clock.Now())
			to := []string{fmt.Sprintf("Reader%d@out.example", i%3), "all@out.example"}
			id := storetest.Email(t, s, account, to, tagged("flow", "a")).ID
			if i < 3 {
				long := store.NewLongID("em_", clock.Now())
				db.MustExec(`UPDATE messages SET id = $1 WHERE id = $2`, long, id)
				id = long
			}
			number[id] = i
			number[storetest.Sent(t, s, in, to).ID] = i
			storetest.Received(t, s, in)
			clock.Add(time.Hour)
		}
		at := func(i int) *store.Time { return new(times[i]) }
		for _, tt := range []struct {
			name         string
			like         string
			since, until *store.Time
			want         string
		}{
			{"all", "", nil, nil, "[5 4 3 2 1 0]"},
			{"an address", "reader1@out.example", nil, nil, "[4 1]"},
			{"a pattern", "reader_@out.%", nil, nil, "[5 4 3 2 1 0]"},
			{"an underscore", `reader\_@out.%`, nil, nil, "[]"},
			{"an unknown address", "none@out.example", nil, nil, "[]"},
			{"a NUL", "a\x00b", nil, nil, "[]"},
			{"since", "", at(4), nil, "[5 4]"},
			{"until", "", nil, at(2), "[1 0]"},
			{"between", "", at(1), at(4), "[3 2 1]"},
			{"later", "", new(store.NewTime(clock.Now())), nil, "[]"},
			{"before all", "", nil, at(0), "[]"},
			{"since long ago", "", new(store.NewTime(time.Time{})), nil, "[5 4 3 2 1 0]"},
			{"until long ago", "", nil, new(store.NewTime(time.Time{})), "[]"},
			{"both", "reader1@out.example", at(2), nil, "[4]"},
		} {
			for _, limit := range []int{1, 2, 10} {
				lists := map[string]func(p store.Page) (ids []string, cursor string, err error){
					"emails": func(p store.Page) (ids []string, cursor string, err error) {
						l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: account, ToLike: tt.like, Since: tt.since, Until: tt.until}, p)
						for _, e := range l.Rows {
							ids = append(ids, e.ID)
						}
						return ids, l.Cursor, err
					},
					"tagged emails": func(p store.Page) (ids []string, cursor string, err error) {
						l, err := s.ListEmails(t.Context(), store.EmailFilter{AccountID: account, ToLike: tt.like, Since: tt.since, Until: tt.until, Tags: [][2]string{{"flow", "a"}}}, p)
						for _, e := range l.Rows {
							ids = append(ids, e.ID)
						}
						return ids, l.Cursor, err
					},
					"messages": func(p store.Page) (ids []string, cursor string, err error) {
						l, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: account, Direction: store.DirectionOut, ToLike: tt.like, Since: tt.since, Until: tt.until}, p)
						for _, m := range l.Rows {
							ids = append(ids, m.ID)
						}
						return ids, l.Cursor, err
					},
				}
				for list, of := range lists {
					var found []string
					for cursor, more := "", true; more; more = cursor != "" {
						ids, next, err := of(store.Page{Limit: limit, Cursor: cursor})
						if err != nil {
							t.Fatal(err)
						}
						found, cursor = append(found, ids...), next
					}
					got := []int{}
					for _, id := range found {
						got = append(got, number[id])
					}
					if fmt.Sprint(got) != tt.want {
						t.Errorf("%s, %s by %d: got %v, want %s", list, tt.name, limit, got, tt.want)
					}
				}
			}
		}
	})
}
