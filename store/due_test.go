package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// While a snapshot is held open, the index of the queue keeps what was sent
// since. The search for the next due recipient does not read it.
func TestNextDueDoesNotReadSentRecipients(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	db := openRaw(t, cfg)
	storetest.Sent(t, s, storetest.Inbox(t, s), []string{"ann@out.example"})
	snapshot := db.MustBegin()
	defer func() { _ = snapshot.Rollback() }() // it was only read
	snapshot.MustExec(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
	snapshot.MustExec(`SELECT count(*) FROM recipients`)
	// 3,000 recipients of the last five minutes, all sent by now.
	const sent = `INSERT INTO recipients (account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at)
		SELECT account_id, message_seq, email, domain, kind, status, 1, 1, next_attempt_at - i * 100000, created_at
		FROM recipients, generate_series(1, 3000) AS i`
	db.MustExec(sent)
	db.MustExec(`UPDATE recipients SET next_attempt_at = NULL WHERE attempts = 1`)

	if due, err := s.NextDue(t.Context(), store.WorkRecipients, nil); err != nil || due == nil {
		t.Fatalf("next due: %v, %v", due, err)
	}
	whole, here := buffers(t, db, s, true), buffers(t, db, s, false)
	t.Logf("a search of the whole queue reads %d buffers, one from where the last ended %d", whole, here)
	if whole < 50 {
		t.Fatal("the snapshot keeps nothing: the test proves nothing")
	}
	if here > 15 {
		t.Errorf("a look reads %d buffers after 3,000 were sent", here)
	}
}

// buffers is how many pages PostgreSQL reads for a look for the next due
// recipient.
func buffers(t *testing.T, db *sqlx.DB, s *store.Store, all bool) int {
	t.Helper()
	q, args := s.FirstDue(all)
	return buffersOf(t, db, q, args)
}

// buffersOf is how many pages PostgreSQL reads for a query.
func buffersOf(t *testing.T, db *sqlx.DB, q string, args []any) int {
	t.Helper()
	var text string
	if err := db.Get(&text, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+q, args...); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// Mail that becomes due earlier than what the queue has seen is found too, a
// little later.
func TestQueueNoticesAnEarlierDueTime(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"ann@out.example", "bob@late.example"})
		look := func(busy ...any) *store.Time {
			t.Helper()
			due, err := s.NextDue(t.Context(), store.WorkRecipients, busyKeys(busy...))
			if err != nil {
				t.Fatal(err)
			}
			return due
		}
		first := look()
		if first == nil {
			t.Fatal("nothing is due")
		}
		hourAgo := store.NewTime(first.Add(-time.Hour))
		openRaw(t, cfg).MustExec(`UPDATE recipients SET next_attempt_at = $1 WHERE domain = 'late.example'`, hourAgo.UnixMicro())
		clock.Add(10 * time.Second)
		if due := look("late.example"); due == nil || !due.Equal(first.Time) {
			t.Errorf("beside a busy domain: %v is due, want %v", due, first)
		}
		if due := look(); due == nil || !due.Equal(hourAgo.Time) {
			t.Errorf("%v is due, want %v", due, hourAgo)
		}
		if cs := claim(t, s, 5, time.Minute); len(cs) != 2 {
			t.Errorf("claimed %d recipients, want 2", len(cs))
		}
	})
}

func TestQueueTablesAreVacuumedOften(t *testing.T) {
	t.Parallel()
	db := openRaw(t, storetest.Config(t, storetest.PostgreSQL))
	for _, table := range []string{"recipients", "webhook_deliveries", "emails"} {
		var options string
		if err := db.Get(&options, `SELECT coalesce(array_to_string(reloptions, ' '), '') FROM pg_class WHERE relname = $1`, table); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(options, "autovacuum_vacuum_scale_factor=0.01") {
			t.Errorf("%s has the settings %q", table, options)
		}
	}
}
