package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Of those whose attempts end permanently, each is put on the list of the sending
// account once, in the transaction that ends them.
func TestAttemptsSuppress(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account, other := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		for range 3 {
			storetest.Email(t, s, account, []string{"Gone@out.example", "angry@out.example"})
		}
		due, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		if err != nil || len(due) != 6 {
			t.Fatal(len(due), err)
		}
		for _, c := range due {
			status, reason, fold := store.RecipientBounced, store.SuppressedHardBounce, "gone@out.example"
			if c.Email == "angry@out.example" {
				status, reason, fold = store.RecipientComplained, store.SuppressedComplaint, c.Email
			}
			record(t, s, c, status, func(a *store.Attempt) { a.Suppress, a.EmailFold = reason, fold })
		}
		l, err := s.ListSuppressions(t.Context(), account, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 2 {
			t.Fatalf("%+v, %v", l.Rows, err)
		}
		among, err := s.SuppressedAmong(t.Context(), []store.Addressee{
			{AccountID: account, EmailFold: "gone@out.example"},
			{AccountID: other, EmailFold: "gone@out.example"},
			{AccountID: account, EmailFold: "here@out.example"},
			{AccountID: account, EmailFold: "angry@out.example", Category: store.CategoryMarketing},
		})
		if d := cmp.Diff([]bool{true, false, false, true}, among); d != "" || err != nil {
			t.Error(d, err)
		}
	})
}
