package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// manyRows is how many rows the large tables of TestNoQueryReadsAWholeTable have.
const manyRows = 20_000

// repeat writes the newest row of a table again and again, numbered n, with other values
// in some columns.
func repeat(t *testing.T, db *sqlx.DB, table, key string, others map[string]string) {
	t.Helper()
	var columns []string
	const q = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'`
	if err := db.Select(&columns, q, table); err != nil {
		t.Fatal(err)
	}
	values := make([]string, len(columns))
	for i, c := range columns {
		if values[i] = "r." + c; others[c] != "" {
			values[i] = others[c]
		}
	}
	from := fmt.Sprintf(`(SELECT * FROM %s ORDER BY %s DESC LIMIT 1) r, generate_series(1, %d) n`, table, key, manyRows)
	_, err := db.Exec(`INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(values, ", ") + ` FROM ` + from)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
}

// wholeTables returns how many rows sequential scans have read, by table. Sessions report
// that when they end.
func wholeTables(t *testing.T, db *sqlx.DB) map[string]int64 {
	t.Helper()
	var rows []struct {
		Table string `db:"relname"`
		Read  int64  `db:"seq_tup_read"`
	}
	if err := db.Select(&rows, `SELECT relname, seq_tup_read FROM pg_stat_user_tables`); err != nil {
		t.Fatal(err)
	}
	read := map[string]int64{}
	for _, r := range rows {
		read[r.Table] = r.Read
	}
	return read
}

// Lists, claims, counts and sweeps find their rows by an index.
func TestNoQueryReadsAWholeTable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it fills tables")
	}
	ctx, cfg := t.Context(), storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	db := openRaw(t, cfg)
	in := storetest.Inbox(t, s)
	hook, _ := newHook(t, s, in.AccountID)
	received := storetest.Received(t, s, in)
	if _, err := s.CreateDraft(ctx, storetest.NewDraft(in), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.AddJournal(ctx, []store.APIRequest{{AccountID: in.AccountID, ID: "req"}}, []store.SMTPRefusal{{IP: "192.0.2.1"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const seq, id, later = "r.seq + n", "r.id || n", "r.created_at + n"
	repeat(t, db, "threads", "seq", map[string]string{"seq": seq, "id": id, "last_message_at": "r.last_message_at + n", "created_at": later})
	repeat(t, db, "messages", "seq", map[string]string{"seq": seq, "id": id, "thread_seq": "r.thread_seq + n", "header_hash": "r.header_hash + n", "created_at": later})
	repeat(t, db, "contents", "message_seq", map[string]string{"message_seq": "r.message_seq + n"})
	repeat(t, db, "events", "seq", map[string]string{"seq": seq, "id": id, "message_seq": "r.message_seq + n", "created_at": later})
	repeat(t, db, "webhook_deliveries", "seq", map[string]string{
		"seq": seq, "id": id, "event_id": "r.event_id || n", "message_seq": "r.message_seq + n", "status": "'succeeded'", "next_attempt_at": "NULL", "created_at": later,
	})
	repeat(t, db, "drafts", "seq", map[string]string{"seq": seq, "id": id, "status": "'sent'", "created_at": later})
	repeat(t, db, "draft_contents", "draft_seq", map[string]string{"draft_seq": "r.draft_seq + n"})
	repeat(t, db, "api_requests", "seq", map[string]string{"seq": seq, "id": id, "created_at": later})
	repeat(t, db, "smtp_refusals", "seq", map[string]string{"seq": seq, "created_at": later})
	db.MustExec(`SELECT setval(cast(sequencename AS regclass), $1) FROM pg_sequences WHERE schemaname = current_schema()`, 10*manyRows)
	s = storetest.OpenConfig(t, cfg)
	storetest.Email(t, s, in.AccountID, []string{"bob@out.example"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	repeat(t, db, "messages", "seq", map[string]string{"seq": seq, "id": id, "header_hash": "r.header_hash + n", "status": "'delivered'", "created_at": later})
	repeat(t, db, "contents", "message_seq", map[string]string{"message_seq": "r.message_seq + n"})
	repeat(t, db, "emails", "message_seq", map[string]string{"message_seq": "r.message_seq + n"})
	repeat(t, db, "recipients", "seq", map[string]string{
		"seq": seq, "message_seq": "r.message_seq + n", "email": "n || r.email", "status": "'delivered'", "next_attempt_at": "NULL", "created_at": later,
	})
	db.MustExec("ANALYZE")

	account, page, f := in.AccountID, store.Page{Limit: 20}, store.MessageFilter{AccountID: in.AccountID}
	since := store.NewTime(time.Now().Add(-time.Hour))
	with := func(edit func(*store.MessageFilter)) func(context.Context, *store.Store) error {
		return func(ctx context.Context, s *store.Store) error {
			f := f
			edit(&f)
			_, err := s.ListMessages(ctx, f, page)
			return err
		}
	}
	runs := map[string]func(context.Context, *store.Store) error{
		"open":                 func(context.Context, *store.Store) error { return nil },
		"messages":             with(func(*store.MessageFilter) {}),
		"messages of an inbox": with(func(f *store.MessageFilter) { f.InboxSeq = in.Seq }),
		"messages with text":   with(func(f *store.MessageFilter) { f.WithText = true }),
		"messages since":       with(func(f *store.MessageFilter) { f.Since = &since }),
		"sent messages":        with(func(f *store.MessageFilter) { f.Direction = store.DirectionOut }),
		"messages of a thread": with(func(f *store.MessageFilter) { f.ThreadID = received.ThreadID }),
		"quarantine":           with(func(f *store.MessageFilter) { f.Status = store.MessageQuarantined }),
		"message": func(ctx context.Context, s *store.Store) error {
			_, err := s.Message(ctx, account, received.ID)
			return err
		},
		"place": func(ctx context.Context, s *store.Store) error {
			_, err := s.Place(ctx, in.Seq, received.ID)
			return err
		},
		"threads": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListThreads(ctx, in, "", page)
			return err
		},
		"emails": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListEmails(ctx, store.EmailFilter{AccountID: account}, page)
			return err
		},
		"drafts": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListDrafts(ctx, store.DraftFilter{AccountID: account}, page)
			return err
		},
		"drafts of an inbox": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListDrafts(ctx, store.DraftFilter{AccountID: account, InboxSeq: in.Seq, Status: store.DraftPending}, page)
			return err
		},
		"events": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListEvents(ctx, account, store.EventFilter{Since: &since}, page)
			return err
		},
		"latest events": func(ctx context.Context, s *store.Store) error {
			_, err := s.LatestEvents(ctx, account, "message.", page)
			return err
		},
		"deliveries": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListDeliveries(ctx, hook, store.DeliveryFilter{}, page)
			return err
		},
		"delivery rate": func(ctx context.Context, s *store.Store) error {
			_, err := s.DeliveryRate(ctx, account, hook.ID, since.Time)
			return err
		},
		"replay": func(ctx context.Context, s *store.Store) error {
			_, err := s.ReplayDeliveries(ctx, hook, time.Now().Add(time.Hour), nil)
			return err
		},
		"requests": func(ctx context.Context, s *store.Store) error {
			_, err := s.APIRequests(ctx, account, store.APIRequestFilter{}, page)
			return err
		},
		"refusals": func(ctx context.Context, s *store.Store) error { _, err := s.SMTPRefusals(ctx, page); return err },
		"inboxes": func(ctx context.Context, s *store.Store) error {
			_, err := s.ListInboxes(ctx, account, store.InboxFilter{}, page)
			return err
		},
		"counts": func(ctx context.Context, s *store.Store) error { _, err := s.CountEvents(ctx); return err },
		"stats":  func(ctx context.Context, s *store.Store) error { _, err := s.Stats(ctx, account, nil, 7); return err },
		"tags": func(ctx context.Context, s *store.Store) error {
			_, err := s.TagCounts(ctx, account, 7, 10)
			return err
		},
		"statuses": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.CountStatuses(ctx, account, true)
			return err
		},
		"queue lag": func(ctx context.Context, s *store.Store) error { _, _, err := s.QueueLag(ctx); return err },
		"next due": func(ctx context.Context, s *store.Store) error {
			_, err := s.NextDue(ctx, store.WorkRecipients, nil)
			return err
		},
		"claim": func(ctx context.Context, s *store.Store) error {
			_, err := s.ClaimRecipients(ctx, 20, time.Minute, nil)
			return err
		},
		"claim webhooks": func(ctx context.Context, s *store.Store) error {
			_, err := s.ClaimDeliveries(ctx, 20, time.Minute, nil)
			return err
		},
		"resume":      func(ctx context.Context, s *store.Store) error { _, err := s.ReleaseResumed(ctx); return err },
		"due inboxes": func(ctx context.Context, s *store.Store) error { _, _, err := s.InboxesToExpire(ctx, 0); return err },
		"expire inbox": func(ctx context.Context, s *store.Store) error {
			_, err := s.ExpireInbox(ctx, in.Seq, store.Time{Time: time.UnixMicro(0)})
			return err
		},
		"expire records": func(ctx context.Context, s *store.Store) error { _, err := s.ExpireRecords(ctx); return err },
		"expire emails": func(ctx context.Context, s *store.Store) error {
			_, err := s.ExpireEmails(ctx, time.Hour, store.Time{Time: time.UnixMicro(0)})
			return err
		},
		"delete message": func(ctx context.Context, s *store.Store) error { return s.DeleteMessage(ctx, account, received.ID+"5") },
		"index": func(ctx context.Context, s *store.Store) error {
			_, err := s.Index(ctx, 20, func(m store.Message) (string, error) { return m.Subject, nil })
			return err
		},
	}
	for _, name := range store.Sweeps() {
		runs["sweep "+name] = func(ctx context.Context, s *store.Store) error { _, err := s.Sweep(ctx, name); return err }
	}
	for name, run := range runs {
		before := wholeTables(t, db)
		s := storetest.OpenConfig(t, cfg)
		if err := run(ctx, s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The sessions end a moment after their connections, and then add what they read.
		waittest.Until(t, "the sessions end", func() bool {
			var others int
			err := db.Get(&others, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'testpg'`)
			return err == nil && others == 0
		})
		for table, read := range wholeTables(t, db) {
			if n := read - before[table]; n >= manyRows/2 {
				t.Errorf("%s: reads %d rows of %s", name, n, table)
			}
		}
	}
}
