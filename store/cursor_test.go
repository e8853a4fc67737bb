package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A cursor holds for the list, the account and the filters it was made for.
func TestCursorOfAnotherListIsRefused(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		a := storetest.Inbox(t, s)
		b := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = a.AccountID })
		other := storetest.Account(t, s).Seq
		m := storetest.Received(t, s, a)
		storetest.Received(t, s, a)
		storetest.Key(t, s, a.AccountID, "one")
		storetest.Key(t, s, a.AccountID, "two")

		since := store.NewTime(begin.Add(-time.Hour))
		base := store.MessageFilter{AccountID: a.AccountID, InboxSeq: a.Seq}
		with := func(edit func(*store.MessageFilter)) store.MessageFilter {
			f := base
			edit(&f)
			return f
		}
		messages := map[string]store.MessageFilter{
			"messages":                base,
			"messages, all inboxes":   with(func(f *store.MessageFilter) { f.InboxSeq = 0 }),
			"messages, other account": with(func(f *store.MessageFilter) { f.AccountID = other }),
			"messages, other inbox":   with(func(f *store.MessageFilter) { f.InboxSeq = b.Seq }),
			"messages, visible":       with(func(f *store.MessageFilter) { f.InboxIDs = []string{a.ID} }),
			"messages, two visible":   with(func(f *store.MessageFilter) { f.InboxIDs = []string{a.ID, b.ID} }),
			"messages, none visible":  with(func(f *store.MessageFilter) { f.InboxIDs = []string{} }),
			"messages, direction":     with(func(f *store.MessageFilter) { f.Direction = store.DirectionIn }),
			"messages, status":        with(func(f *store.MessageFilter) { f.Status = store.MessageReceived }),
			"messages, from":          with(func(f *store.MessageFilter) { f.FromLike = "%@out.example" }),
			"messages, subject":       with(func(f *store.MessageFilter) { f.Subject = "mail" }),
			"messages, thread":        with(func(f *store.MessageFilter) { f.ThreadID = m.ThreadID }),
			"messages, since":         with(func(f *store.MessageFilter) { f.Since = &since }),
			"messages, code":          with(func(f *store.MessageFilter) { f.HasCode = true }),
			"messages, link":          with(func(f *store.MessageFilter) { f.HasLink = true }),
			"messages, after":         with(func(f *store.MessageFilter) { f.After = m.Place() }),
			"messages, text":          with(func(f *store.MessageFilter) { f.Text = words("mail") }),
		}
		lists := map[string]func(cursor string) (string, error){}
		for name, f := range messages {
			lists[name] = func(cursor string) (string, error) {
				l, err := s.ListMessages(t.Context(), f, store.Page{Limit: 1, Cursor: cursor})
				return l.Cursor, err
			}
		}
		for name, account := range map[string]int64{"keys": a.AccountID, "keys, other account": other} {
			lists[name] = func(cursor string) (string, error) {
				l, err := s.ListKeys(t.Context(), account, nil, store.Page{Limit: 1, Cursor: cursor})
				return l.Cursor, err
			}
		}
		for name, visible := range map[string][]string{
			"inboxes": nil, "inboxes, none visible": {}, "inboxes, visible": {a.ID, b.ID}, "inboxes, odd id": {a.ID + `" "` + b.ID},
		} {
			lists[name] = func(cursor string) (string, error) {
				l, err := s.ListInboxes(t.Context(), a.AccountID, store.InboxFilter{IDs: visible}, store.Page{Limit: 1, Cursor: cursor})
				return l.Cursor, err
			}
		}

		cursors := 0
		for name, list := range lists {
			cursor, err := list("")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if cursor == "" {
				continue // one page
			}
			cursors++
			if len(cursor) > 200 {
				t.Errorf("%s: the cursor has %d characters", name, len(cursor))
			}
			for where, other := range lists {
				if _, err := other(cursor); (err == nil) != (where == name) || err != nil && !errors.Is(err, store.ErrCursor) {
					t.Errorf("the cursor of %q in %q: %v", name, where, err)
				}
			}
		}
		if cursors < 8 {
			t.Errorf("only %d lists gave a cursor", cursors)
		}
	})
}

func TestTamperedCursorIsRefused(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Received(t, s, in)
		storetest.Received(t, s, in)
		f := store.MessageFilter{InboxSeq: in.Seq}
		l, err := s.ListMessages(t.Context(), f, store.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		try := func(s *store.Store, cursor string) error {
			_, err := s.ListMessages(t.Context(), f, store.Page{Limit: 1, Cursor: cursor})
			return err
		}
		if err := try(s, l.Cursor); err != nil {
			t.Fatalf("untouched: %v", err)
		}
		for i := range l.Cursor {
			b := []byte(l.Cursor)
			b[i] = "AB"[bytes.IndexByte([]byte("BA"), b[i])&1]
			if string(b) == l.Cursor {
				b[i] = 'C'
			}
			if err := try(s, string(b)); !errors.Is(err, store.ErrCursor) {
				t.Errorf("character %d changed: got %v, want ErrCursor", i, err)
			}
		}
		for _, c := range []string{"x", l.Cursor + "A", l.Cursor[1:], l.Cursor + "\n", l.Cursor + "=", "%00", "\x00"} {
			if err := try(s, c); !errors.Is(err, store.ErrCursor) {
				t.Errorf("%q: got %v, want ErrCursor", c, err)
			}
		}
		cfg.CursorKey = bytes.Repeat([]byte("x"), 32)
		if err := try(storetest.OpenConfig(t, cfg), l.Cursor); !errors.Is(err, store.ErrCursor) {
			t.Errorf("with another install's secret: got %v, want ErrCursor", err)
		}
	})
}
