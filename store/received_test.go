package store_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// fromInbox leaves out what a message takes from its inbox when it is read.
var fromInbox = cmpopts.IgnoreFields(store.Message{}, "RetentionDays")

// Text that PostgreSQL refuses must not cost a message.
func TestTextThatDatabasesRefuseIsRepaired(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		bad := "a\x00b\xffc"
		got := storetest.Received(t, s, in, func(m *store.NewMessage) {
			m.Subject, m.HeaderID, m.Tag, m.Content.Snippet = bad, bad, &bad, bad
			m.Addresses.V.From.Email = bad
			m.Content.Raw = []byte(bad)
		})
		read, err := s.Message(t.Context(), in.AccountID, got.ID)
		if err != nil {
			t.Fatal(err)
		}
		const want = "ab\uFFFDc"
		if read.Subject != want || read.HeaderID != want || *read.Tag != want || read.Content.Snippet != want {
			t.Errorf("read %q, %q, %q, %q, want %q", read.Subject, read.HeaderID, *read.Tag, read.Content.Snippet, want)
		}
		if string(read.Content.Raw) != bad {
			t.Errorf("raw is %q, want it untouched", read.Content.Raw)
		}
	})
}

func TestMailToTwoInboxesIsAllOrNothing(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		a, b := storetest.Inbox(t, s), storetest.Inbox(t, s)
		both := func() ([]store.Message, error) {
			return s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(a), storetest.NewReceived(b)}, nil)
		}
		ms, err := both()
		if err != nil {
			t.Fatal(err)
		}
		if ms[0].InboxID != a.ID || ms[1].InboxID != b.ID || ms[0].ThreadID == ms[1].ThreadID {
			t.Errorf("stored %+v", ms)
		}
		if _, err := s.DeleteInbox(t.Context(), b.AccountID, b.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := both(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("one of them deleted: got %v, want ErrNotFound", err)
		}
		// The third event reports the deletion of the inbox.
		for table, want := range map[string]int{"messages": 2, "contents": 2, "threads": 2, "events": 3} {
			if n := count(t, cfg, table); n != want {
				t.Errorf("%s holds %d rows, want %d", table, n, want)
			}
		}
	})
}

func TestInboxThatIsNotActiveTakesNoMail(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		expires := store.NewTime(begin)
		expired := storetest.Inbox(t, s, func(in *store.Inbox) { in.ExpiresAt = &expires })
		suspended := storetest.Inbox(t, s)
		if _, err := s.SuspendInbox(t.Context(), suspended.ID); err != nil {
			t.Fatal(err)
		}
		for name, in := range map[string]store.Inbox{"expired": expired, "suspended": suspended, "never made": {Seq: 1 << 40}} {
			_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", name, err)
			}
		}
		later := store.NewTime(begin.Add(time.Second))
		revived, err := s.UpdateInbox(t.Context(), expired.AccountID, expired.ID, func(in *store.Inbox) error {
			in.ExpiresAt = &later
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Received(t, s, revived)
	}, storetest.WithNow(clock.Now))
}

// The clock of the machine may go back; the order of an inbox may not.
func TestTimesOfAnInboxNeverGoBack(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(begin)
			cfg := storetest.Config(t, e, storetest.WithNow(clock.Now))
			s := storetest.OpenConfig(t, cfg)
			in := storetest.Inbox(t, s)
			first := storetest.Received(t, s, in)
			clock.Add(-time.Hour)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = storetest.OpenConfig(t, cfg)
			other := storetest.Inbox(t, s)
			var callers sync.WaitGroup // in one batch, most likely
			for range 3 {
				callers.Go(func() { storetest.Received(t, s, in) })
				callers.Go(func() { storetest.Received(t, s, other) })
			}
			callers.Wait()
			after := every(t, s, store.MessageFilter{InboxSeq: in.Seq, After: first.Place()}, 10)
			if len(after) != 3 {
				t.Fatalf("%d messages after the first, want 3", len(after))
			}
			for _, m := range after {
				if m.CreatedAt.Before(first.CreatedAt.Time) {
					t.Errorf("created at %v, before %v", m.CreatedAt, first.CreatedAt)
				}
			}
			for _, m := range every(t, s, store.MessageFilter{InboxSeq: other.Seq}, 10) {
				if !m.CreatedAt.Equal(store.NewTime(clock.Now()).Time) {
					t.Errorf("another inbox got the time %v, want the clock's %v", m.CreatedAt, clock.Now())
				}
			}
		})
	}
}

// A number that was assigned once must not come again, whatever is deleted:
// what refers to it would then speak of another row.
func TestSequenceNumbersAreNotReused(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		m := storetest.Received(t, s, in)
		db := openRaw(t, cfg)
		for _, table := range []string{"contents", "events", "messages", "threads"} {
			if _, err := db.Exec(`DELETE FROM ` + table); err != nil {
				t.Fatal(err)
			}
		}
		again := storetest.Received(t, storetest.OpenConfig(t, cfg), in)
		if again.Seq <= m.Seq || again.ThreadSeq <= m.ThreadSeq {
			t.Errorf("numbers %d and %d come after %d and %d", again.Seq, again.ThreadSeq, m.Seq, m.ThreadSeq)
		}
	})
}

// A received message that begins a thread writes four rows, and ten entries of
// indexes beside them.
func TestWhatAReceivedMessageWrites(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	db := openRaw(t, cfg)
	// In a table the leaves hold the rows, in an index all pages hold entries.
	const cells = `SELECT o.name, o.type, sum(d.ncell) AS n FROM dbstat d JOIN sqlite_schema o ON o.name = d.name
		WHERE o.type = 'index' OR d.pagetype = 'leaf' GROUP BY o.name, o.type`
	type row struct {
		Name, Type string
		N          int
	}
	count := func() map[row]int {
		t.Helper()
		var rows []row
		if err := db.Select(&rows, cells); err != nil {
			t.Fatal(err)
		}
		all := map[row]int{}
		for _, r := range rows {
			all[row{r.Name, r.Type, 0}] = r.N
		}
		return all
	}
	storetest.Received(t, s, in)
	before := count()
	storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.Raw = bytes.Repeat([]byte("0123456789abcde\n"), 256) })
	var tables, indexes []string
	for r, n := range count() {
		for range n - before[r] {
			if r.Type == "table" {
				tables = append(tables, r.Name)
			} else {
				indexes = append(indexes, r.Name)
			}
		}
	}
	slices.Sort(tables)
	slices.Sort(indexes)
	if d := cmp.Diff([]string{"contents", "events", "messages", "threads"}, tables); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	want := []string{
		"events_account", "messages_account", "messages_due", "messages_header", "messages_inbox", "messages_thread",
		"sqlite_autoindex_events_1", "sqlite_autoindex_messages_1", "sqlite_autoindex_threads_1", "threads_latest",
	}
	if d := cmp.Diff(want, indexes); d != "" {
		t.Errorf("entries of indexes (-want +got):\n%s", d)
	}
}
