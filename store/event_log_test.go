package store_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// settled looks until the log is settled, or until it is clear that someone
// keeps it from that.
func settled(t *testing.T, tail *store.EventTail) (seq int64, pending bool) {
	t.Helper()
	for range 3 { // the second look may still see who is about to end
		var known bool
		var err error
		if seq, known, pending, err = tail.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if known && !pending {
			return seq, false
		}
	}
	return seq, pending
}

// eventIDs returns the ids of the events above a number, which must be settled.
func eventIDs(t *testing.T, s *store.Store, after, upTo int64) (ids []string) {
	t.Helper()
	events, err := s.EventsBetween(t.Context(), after, upTo, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// insertEvent writes an event in a transaction of the test's own.
func insertEvent(t *testing.T, tx *sqlx.Tx, account int64, id string) {
	t.Helper()
	const q = `INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, $2, 'webhook.test', false, '{}', $3)`
	if _, err := tx.Exec(q, account, id, store.NewTime(time.Now())); err != nil {
		t.Fatal(err)
	}
}

// A number that is taken by a transaction that is still open holds the log up at
// the number before it, whatever commits meanwhile, and is neither skipped when
// it commits nor waited for when it does not.
func TestTailDoesNotPassOpenTransactions(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	account := storetest.Account(t, s).Seq
	begin := func() *sqlx.Tx {
		tx, err := db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() }) // after a commit this does nothing
		return tx
	}
	tail := s.TailEvents()
	start, _ := settled(t, tail)
	first, second, third, fourth := begin(), begin(), begin(), begin()
	insertEvent(t, first, account, "evt_1")
	insertEvent(t, second, account, "evt_2")
	insertEvent(t, third, account, "evt_3")
	look := func(when string, wantPending bool, want ...string) {
		t.Helper()
		seq, pending := settled(t, tail)
		if got := eventIDs(t, s, start, seq); !cmp.Equal(got, want) || pending != wantPending {
			t.Errorf("%s: events %q, pending %t, want %q, %t", when, got, pending, want, wantPending)
		}
	}
	end := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	look("nothing has committed", false)
	end(third.Commit())
	look("the last of three has committed", true)
	end(second.Rollback())
	look("and one was rolled back", true)
	insertEvent(t, fourth, account, "evt_4")
	look("and another has begun", true)
	end(first.Commit())
	look("the first has committed too", false, "evt_1", "evt_3")
	end(fourth.Commit())
	look("all have ended", false, "evt_1", "evt_3", "evt_4")
}

// Writers that overlap, so that there is never a moment without one, do not keep
// the log from being settled.
func TestTailAdvancesWithConstantWriters(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	account := storetest.Account(t, s).Seq
	tail := s.TailEvents()
	start, _ := settled(t, tail)
	var open []*sqlx.Tx
	behind := 0
	for n := range 20 {
		tx, err := db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		insertEvent(t, tx, account, fmt.Sprintf("evt_%02d", n))
		if open = append(open, tx); len(open) > 2 {
			if err := open[0].Commit(); err != nil {
				t.Fatal(err)
			}
			open = open[1:]
		}
		seq, _ := settled(t, tail)
		behind = n - len(eventIDs(t, s, start, seq))
	}
	if behind > 6 { // two are open, and a mark waits for two more
		t.Errorf("the last %d events of the log are not settled", behind)
	}
	for _, tx := range open {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	seq, pending := settled(t, tail)
	if got := eventIDs(t, s, start, seq); len(got) != 20 || pending || !slices.IsSorted(got) {
		t.Errorf("at the end: %q, pending %t", got, pending)
	}
}

// Work on the server that is not about these events, however long it takes,
// holds nothing up.
func TestTailDoesNotWaitForOtherWork(t *testing.T) {
	t.Parallel()
	cfg, other := storetest.Config(t, storetest.PostgreSQL), storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	foreign := storetest.OpenConfig(t, other)
	account := storetest.Account(t, foreign).Seq
	for database, busy := range map[string]func(tx *sqlx.Tx){
		cfg.Database: func(tx *sqlx.Tx) {
			if _, err := tx.Exec(`UPDATE settings SET value = value`); err != nil {
				t.Fatal(err)
			}
		},
		other.Database: func(tx *sqlx.Tx) { insertEvent(t, tx, account, "evt_other") },
	} {
		tx, err := openRaw(t, store.Config{Database: database}).Beginx()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() })
		busy(tx)
	}
	tail := s.TailEvents()
	storetest.Received(t, s, storetest.Inbox(t, s))
	seq, pending := settled(t, tail)
	if got := eventIDs(t, s, 0, seq); len(got) != 1 || pending {
		t.Errorf("events %q, pending %t", got, pending)
	}
}

// listed are the ids of the events of the log, read in pages of two from a cursor on.
func listed(t *testing.T, s *store.Store, account int64, cursor string) (ids []string) {
	t.Helper()
	for first := true; first || cursor != ""; first = false {
		l, err := s.ListEvents(t.Context(), account, store.EventFilter{}, store.Page{Limit: 2, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Rows {
			ids = append(ids, e.ID)
		}
		cursor = l.Cursor
	}
	return ids
}

// A page of the log ends before an event that may still be preceded by one of an open
// transaction. It is not the last page, and the next ones hold both.
func TestPagesOfTheLogDoNotPassOpenTransactions(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	account, other := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
	s.WaitToSettle(0)
	first := insertEventsAt(t, db, account, []time.Time{begin})
	open := db.MustBegin()
	t.Cleanup(func() { _ = open.Rollback() }) // after a commit this does nothing
	open.MustExec(`INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, 'evt_open', 'draft.created', false, '{}', 1)`, account)
	later := insertEventsAt(t, db, account, []time.Time{begin, begin, begin})

	l, err := s.ListEvents(t.Context(), account, store.EventFilter{}, store.Page{Limit: 3})
	if err != nil || l.Cursor == "" || len(l.Rows) > 1 {
		t.Fatalf("while the transaction is open: %d events, cursor %q, %v", len(l.Rows), l.Cursor, err)
	}
	if l, err := s.ListEvents(t.Context(), other, store.EventFilter{}, store.Page{Limit: 3}); err != nil || l.Cursor != "" {
		t.Errorf("an account without events: cursor %q, %v", l.Cursor, err)
	}
	var got []string
	for _, e := range l.Rows {
		got = append(got, e.ID)
	}
	if err := open.Commit(); err != nil {
		t.Fatal(err)
	}
	got = append(got, listed(t, s, account, l.Cursor)...)
	if diff := cmp.Diff(slices.Concat(first, []string{"evt_open"}, later), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A page of the log waits for transactions that are open, and then holds their events.
func TestPageOfTheLogWaitsForOpenTransactions(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	account := storetest.Account(t, s).Seq
	s.WaitToSettle(tooLong)
	open := db.MustBegin()
	t.Cleanup(func() { _ = open.Rollback() }) // after a commit this does nothing
	open.MustExec(`INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, 'evt_open', 'draft.created', false, '{}', 1)`, account)
	later := insertEventsAt(t, db, account, []time.Time{begin})
	pages := make(chan store.List[store.Event], 1)
	go func() {
		l, err := s.ListEvents(t.Context(), account, store.EventFilter{}, store.Page{Limit: 3})
		if err != nil {
			t.Error(err)
		}
		pages <- l
	}()
	waittest.Until(t, "ask which transactions are open", func() bool {
		const q = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle'
			AND query LIKE '%RowExclusiveLock%' AND query NOT LIKE '%pg_stat_activity%'`
		var n int
		return db.Get(&n, q) == nil && n > 0
	})
	if err := open.Commit(); err != nil {
		t.Fatal(err)
	}
	var got []string
	l := <-pages
	for _, e := range l.Rows {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff(append([]string{"evt_open"}, later...), got); diff != "" || l.Cursor != "" {
		t.Errorf("cursor %q, events (-want +got):\n%s", l.Cursor, diff)
	}
}

// A page that waits for open transactions reads no event twice, and none that it has no
// room for. It measures memory, so no other test may run beside it.
func TestPageOfTheLogReadsEachEventOnce(t *testing.T) { //nolint:paralleltest // measures memory
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	account := storetest.Account(t, s).Seq
	s.WaitToSettle(100 * time.Millisecond)
	const insert = `INSERT INTO events (account_id, id, type, test_mode, data, created_at)
		SELECT $1, $2 || n, 'draft.created', false, '{}', 1 FROM generate_series(1, $3) n`
	open := db.MustBegin()
	open.MustExec(insert, account, "evt_open", 1)
	db.MustExec(insert, account, "evt_", 20_000)
	page := func(types ...store.EventType) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l, err := s.ListEvents(t.Context(), account, store.EventFilter{Types: types}, store.Page{Limit: 50})
		if err != nil || l.Cursor == "" {
			t.Errorf("%d events, cursor %q, %v", len(l.Rows), l.Cursor, err)
		}
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 4 {
			t.Errorf("a page with %d events took %d MB", len(l.Rows), mb)
		}
	}
	page(store.EventDraftSent) // waits
	if err := open.Rollback(); err != nil {
		t.Fatal(err)
	}
	page()
}
