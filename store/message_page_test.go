package store_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A page of large mail is cut before it fills the memory, and the next one goes
// on from there.
func TestListIsCutWhereTextsAreTooMuchToHold(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const messages, each = 11, 2 << 20
		in := storetest.Inbox(t, s)
		text := strings.Repeat("word ", each/5)
		key := "elsewhere"
		var want []string
		for range messages {
			m := storetest.Received(t, s, in, func(m *store.NewMessage) {
				m.Size, m.Content.Raw, m.Content.BlobKey, m.Content.Body = each, nil, &key, &store.JSON[store.Body]{V: store.Body{Text: text, HTML: text}}
			})
			want = append(want, m.ID)
		}
		slices.Reverse(want)
		var got []string
		for p := (store.Page{Limit: 100}); ; {
			l, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: in.AccountID, WithText: true}, p)
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, m := range l.Rows {
				got = append(got, m.ID)
				held += len(m.Content.Body.V.Text) + len(m.Content.Body.V.HTML)
			}
			if held > 40<<20 || len(l.Rows) == 0 {
				t.Errorf("a page holds %d messages and %d MiB of text", len(l.Rows), held>>20)
			}
			if p.Cursor = l.Cursor; p.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		l, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: in.AccountID}, store.Page{Limit: 100})
		if err != nil || len(l.Rows) != messages || l.Cursor != "" {
			t.Fatalf("a page of summaries has %d messages, %v", len(l.Rows), err)
		}
		for _, m := range l.Rows {
			if m.Content == nil || m.Content.Body != nil || m.Content.Raw != nil {
				t.Errorf("the summary of %s has content %+v", m.ID, m.Content)
			}
		}
	})
}

// A page of large drafts is cut likewise, and holds nothing that a list does not
// show.
func TestListOfDraftsIsCutWhereTextsAreTooMuchToHold(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const drafts, each = 11, 2 << 20
		in := storetest.Inbox(t, s)
		text := strings.Repeat("word ", each/5)
		var want []string
		for range drafts {
			d, err := s.CreateDraft(t.Context(), storetest.NewDraft(in, func(n *store.NewDraft) { n.Content.Text, n.Content.HTML = text, text }), nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, d.ID)
		}
		slices.Reverse(want)
		var got []string
		for p := (store.Page{Limit: 10}); ; {
			l, err := s.ListDrafts(t.Context(), store.DraftFilter{AccountID: in.AccountID}, p)
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, d := range l.Rows {
				got = append(got, d.ID)
				held += len(d.Content.Text) + len(d.Content.HTML)
			}
			if held > 16<<20 || len(l.Rows) == 0 {
				t.Errorf("a page holds %d drafts and %d MiB of text", len(l.Rows), held>>20)
			}
			if p.Cursor = l.Cursor; p.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// The contents of a batch that is indexed are not all held at once.
func TestIndexKeepsFewContentsInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const messages = 12
		in, key := storetest.Inbox(t, s), "elsewhere"
		for range messages {
			storetest.Received(t, s, in, func(m *store.NewMessage) {
				m.Size, m.Content.Raw, m.Content.BlobKey, m.Content.Body = 4<<20, nil, &key, &store.JSON[store.Body]{V: store.Body{Text: "word"}}
			})
		}
		var read []weak.Pointer[store.Content]
		held := 0
		n, err := s.Index(t.Context(), 64, func(m store.Message) (string, error) {
			if read = append(read, weak.Make(m.Content)); len(read) == messages {
				runtime.GC()
				for _, c := range read {
					if c.Value() != nil {
						held++
					}
				}
			}
			return m.Content.Body.V.Text, nil
		})
		if n != messages || err != nil || held > 4 {
			t.Errorf("indexed %d messages, error %v, and held %d contents at the end", n, err, held)
		}
	})
}
