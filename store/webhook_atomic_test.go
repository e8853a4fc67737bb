package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// breakable is a database in which a table can be made to refuse new rows.
type breakable struct {
	*sqlx.DB
	postgres bool
}

func openBreakable(t *testing.T, cfg store.Config) breakable {
	t.Helper()
	b := breakable{openRaw(t, cfg), strings.HasPrefix(cfg.Database, "postgres")}
	b.SetMaxOpenConns(1)
	if b.postgres {
		b.MustExec(`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$`)
	} else {
		b.MustExec(`PRAGMA busy_timeout = 10000`)
	}
	return b
}

func (b breakable) breakTable(table string) {
	if b.postgres {
		b.MustExec(`CREATE TRIGGER broken BEFORE INSERT ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION broken()`)
		return
	}
	b.MustExec(`CREATE TRIGGER broken BEFORE INSERT ON ` + table + ` BEGIN SELECT RAISE(ABORT, 'broken'); END`)
}

func (b breakable) repairTable(table string) {
	if b.postgres {
		b.MustExec(`DROP TRIGGER broken ON ` + table)
		return
	}
	b.MustExec(`DROP TRIGGER broken`)
}

// happened is how much there is of what happens, and of what is notified of it.
type happened struct {
	Messages   int `db:"messages"`
	Drafts     int `db:"drafts"`
	Done       int `db:"done"`
	Events     int `db:"events"`
	Deliveries int `db:"deliveries"`
	Phantoms   int `db:"phantoms"`
}

func (b breakable) happened(t *testing.T) happened {
	t.Helper()
	const q = `SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM drafts) AS drafts,
		(SELECT count(*) FROM recipients WHERE status <> 'queued') AS done, (SELECT count(*) FROM events) AS events,
		(SELECT count(*) FROM webhook_deliveries) AS deliveries,
		(SELECT count(*) FROM webhook_deliveries d WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.id = d.event_id)) AS phantoms`
	var h happened
	if err := b.Get(&h, q); err != nil {
		t.Fatal(err)
	}
	return h
}

// Whatever is written of a change fails, nothing of it is there; and of a change
// that is there, event and delivery are too (W11).
func TestAFaultBetweenAChangeAndItsEventUndoesBoth(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s, db := storetest.OpenConfig(t, cfg), openBreakable(t, cfg)
		in := storetest.Inbox(t, s)
		newHook(t, s, in.AccountID)
		storetest.Sent(t, s, in, []string{"ann@out.example"})
		claimed, err := s.ClaimRecipients(t.Context(), 1, time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		attempt := store.Attempt{
			RecipientSeq: claimed[0].Seq, MessageSeq: claimed[0].MessageSeq, Fence: claimed[0].Fence,
			Status: store.RecipientDelivered, Response: "250 ok",
		}
		for _, change := range []struct {
			name   string
			tables []string // written to, in their order
			make   func(context.Context) error
		}{
			{"receiving", []string{"messages", "contents", "events", "webhook_deliveries"}, func(ctx context.Context) error {
				_, err := s.AddReceived(ctx, []*store.NewMessage{storetest.NewReceived(in)}, nil)
				return err
			}},
			{"sending", []string{"messages", "contents", "recipients", "events", "webhook_deliveries"}, func(ctx context.Context) error {
				_, err := s.Enqueue(ctx, storetest.NewSent(in, []string{"ben@out.example"}), nil)
				return err
			}},
			{"an attempt", []string{"send_counts", "events", "webhook_deliveries"}, func(ctx context.Context) error {
				return s.RecordAttempt(ctx, attempt)
			}},
			{"a draft", []string{"drafts", "draft_contents", "events", "webhook_deliveries"}, func(ctx context.Context) error {
				_, err := s.CreateDraft(ctx, storetest.NewDraft(in), nil)
				return err
			}},
		} {
			before := db.happened(t)
			for _, table := range change.tables {
				db.breakTable(table)
				if err := change.make(t.Context()); err == nil {
					t.Errorf("%s with broken %s: no error", change.name, table)
				}
				db.repairTable(table)
				if after := db.happened(t); after != before {
					t.Errorf("%s with broken %s: before %+v, after %+v", change.name, table, before, after)
				}
			}
			if err := change.make(t.Context()); err != nil {
				t.Errorf("%s: %v", change.name, err)
			}
			after := db.happened(t)
			if after == before || after.Events != after.Deliveries || after.Phantoms != 0 {
				t.Errorf("%s: before %+v, after %+v", change.name, before, after)
			}
		}
	})
}
