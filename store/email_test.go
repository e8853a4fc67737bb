package store_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

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
