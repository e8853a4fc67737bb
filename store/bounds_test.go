package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A page that costs enough is cut: however narrow the bounds are, each page goes
// on where the one before ended, and all pages together hold the same.
func TestPagesThatAreCut(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		other := storetest.Inbox(t, s, func(n *store.Inbox) { n.AccountID = in.AccountID })
		s.Narrow(20, 30, 9, 2, 11)
		const messages = 200
		var all []*store.NewMessage
		for i := range messages {
			to := in
			if i%4 == 0 {
				to = other
			}
			all = append(all, storetest.NewReceived(to, func(m *store.NewMessage) {
				m.Subject = fmt.Sprintf("red %d of%d", i, i%50)
				m.SubjectFold = m.Subject
			}))
		}
		for len(all) > 0 {
			if _, err := s.AddReceived(t.Context(), all[:20], nil); err != nil {
				t.Fatal(err)
			}
			all = all[20:]
		}
		everyNth := func(n, from int) []string {
			var want []string
			for i := messages - 1; i >= 0; i-- {
				if i%n == from {
					want = append(want, fmt.Sprintf("red %d of%d", i, i%50))
				}
			}
			return want
		}
		account := store.MessageFilter{AccountID: in.AccountID}
		both := store.MessageFilter{AccountID: in.AccountID, InboxIDs: []string{in.ID, other.ID}}
		tests := []struct {
			name    string
			f       store.MessageFilter
			subject string
			text    *store.TextQuery
			want    []string
			pages   int // at least
		}{
			{"a rare subject", account, "of49", nil, everyNth(50, 49), 3},
			{"a rare subject in some inboxes", both, "of49", nil, everyNth(50, 49), 3},
			{"a subject of none", account, "blue", nil, nil, 3},
			{"a rare word", account, "", words("of49"), everyNth(50, 49), 2},
			{"a common word", account, "", words("red"), everyNth(1, 0), 4},
			{"a rare phrase", account, "", phrase("199", "of49"), []string{"red 199 of49"}, 2},
			{"a phrase of none", account, "", phrase("of49", "red"), nil, 2},
			{"a common word and a rare subject", account, "of49", words("red"), everyNth(50, 49), 2},
			{"a common word in some inboxes", both, "", words("red"), everyNth(1, 0), 4},
		}
		check := func(when string) {
			t.Helper()
			for _, tt := range tests {
				tt.f.Subject, tt.f.Text = tt.subject, tt.text
				got, pages := walk(t, s, tt.f, 50, 10*messages)
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("%s, %s (-want +got):\n%s", when, tt.name, d)
				}
				if pages < tt.pages {
					t.Errorf("%s, %s: %d pages, want at least %d", when, tt.name, pages, tt.pages)
				}
			}
		}
		check("nothing indexed")
		if _, err := s.Index(t.Context(), messages/2, subjectText); err != nil {
			t.Fatal(err)
		}
		check("half of it indexed")
		indexAll(t, s, 30)
		check("all indexed")
		s.NarrowBytes(1)
		check("few bytes may be read")
	})
}

// walk returns the subjects of a whole list, and how many pages it has. A list
// that does not end is a fault.
func walk(t *testing.T, s *store.Store, f store.MessageFilter, limit, most int) (all []string, pages int) {
	t.Helper()
	for cursor := ""; ; {
		l, err := s.ListMessages(t.Context(), f, store.Page{Limit: limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, subjects(l.Rows)...)
		if pages++; pages > most {
			t.Fatalf("the list does not end, it has over %d pages", most)
		}
		if cursor = l.Cursor; cursor == "" {
			return all, pages
		}
	}
}
