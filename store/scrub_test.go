package store_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Nothing of expired content is left in the files of SQLite: not on pages that
// became free, not in the full-text index, and not in the write-ahead log.
func TestExpiredContentLeavesNoTraceInTheFile(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	clock := storetest.NewClock(begin)
	cfg.Now = clock.Now
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s, keeping(1))
	secret := func(i int) string { return fmt.Sprintf("wqzx%06dsecret", i) }
	text := func(m store.Message) (string, error) {
		_, number, _ := strings.Cut(m.Subject, " ")
		return "wqzx" + number + "secret hello", nil
	}
	const messages = 60
	for i := range messages {
		storetest.Received(t, s, in, func(m *store.NewMessage) {
			m.Subject = fmt.Sprintf("number %06d", i)
			line := []byte(secret(i) + " is what only this message says.\r\n")
			m.Content.Raw = bytes.Repeat(line, 1+100*(i%5)) // up to many pages
			m.Content.Snippet = string(line)
			m.Content.Extracted = &store.JSON[mail.Extraction]{V: mail.Extraction{OTP: ptr(secret(i)), Codes: []string{secret(i)}, Links: []string{}}}
		})
		if i%20 == 0 {
			indexWith(t, s, text)
		}
	}
	indexWith(t, s, text)
	traces := func() (found []string) {
		for _, path := range []string{cfg.Database, cfg.Database + "-wal"} {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range messages {
				if bytes.Contains(b, []byte(secret(i))) {
					found = append(found, fmt.Sprintf("%s in %s", secret(i), path[len(cfg.Database):]))
				}
			}
		}
		return found
	}
	if n := len(traces()); n < messages {
		t.Fatalf("before the end of retention %d traces of %d messages", n, messages)
	}
	// Some go by hand, the others by retention.
	first, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq}, store.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range first.Rows {
		if err := s.DeleteMessage(t.Context(), in.AccountID, m.ID); err != nil {
			t.Fatal(err)
		}
	}
	clock.Add(2 * day)
	wantRemoved(t, expire(t, s), store.Removed{Contents: messages - 10})
	if err := s.RewriteIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := s.MergeIndex(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := traces(); len(found) > 0 {
		t.Errorf("%d traces are left: %s ...", len(found), strings.Join(found[:min(3, len(found))], ", "))
	}
}

func ptr[T any](v T) *T { return &v }

func indexWith(t *testing.T, s *store.Store, text store.IndexText) {
	t.Helper()
	for {
		if n, err := s.Index(t.Context(), 7, text); err != nil {
			t.Fatal(err)
		} else if n == 0 {
			return
		}
	}
}
