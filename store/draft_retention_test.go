package store_test

import (
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// What a draft says goes when its inbox keeps it no longer, which is decided
// when it is deleted, not when it was looked for.
func TestDraftIsDeletedAfterTheRetentionOfItsInbox(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s, keeping(2))
		d, err := s.CreateDraft(t.Context(), storetest.NewDraft(in), nil)
		if err != nil {
			t.Fatal(err)
		}
		keep := func(days int) {
			if _, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error { in.RetentionDays = days; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		wantRemoved(t, expire(t, s), store.Removed{})
		clock.Add(3 * day)
		if due, _, err := s.InboxesToExpire(t.Context(), 0); err != nil || len(due) != 1 || due[0] != in.Seq {
			t.Errorf("inboxes with old content: %v, error %v, want %d", due, err, in.Seq)
		}
		keep(30)
		gone, err := s.ExpireInbox(t.Context(), in.Seq, store.Time{})
		if err != nil {
			t.Fatal(err)
		}
		wantRemoved(t, gone, store.Removed{})
		keep(2)
		wantRemoved(t, expire(t, s), store.Removed{Drafts: 1})
		if d, err = s.Draft(t.Context(), in.AccountID, d.ID); err != nil || d.Content != nil || d.ExpiredAt == nil {
			t.Errorf("the draft has content %v, error %v", d.Content, err)
		}
		wantRemoved(t, expire(t, s), store.Removed{})
	})
}

// However many drafts are kept, only those that are due are checked.
func TestDueDraftsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		wantByIndex(t, s, "drafts_kept", []string{"inbox_seq=", "content_at<"}, store.DueDrafts, 1, 1, 1)
	})
}
