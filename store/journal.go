package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// JournalTTL is how long API requests and refused SMTP sessions are kept.
const JournalTTL = 7 * 24 * time.Hour

// journalRows is how many rows one statement inserts.
const journalRows = 500

// APIRequest is a request to the API, without its query, body and response.
type APIRequest struct {
	Seq       int64  `db:"seq"`
	AccountID int64  `db:"account_id"`
	ID        string `db:"id"`     // as in X-Request-Id
	Caller    string `db:"caller"` // ID of the key or the user
	Method    string `db:"method"`
	Path      string `db:"path"`
	Status    int    `db:"status"`
	TookMS    int64  `db:"took_ms"`
	IP        string `db:"ip"`
	// OneOf is how many requests the row stands for: more than 1 if only some were
	// recorded.
	OneOf     int  `db:"one_of"`
	CreatedAt Time `db:"created_at"`
}

const apiRequestColumns = `account_id, id, caller, method, path, status, took_ms, ip, one_of, created_at`

// SMTPRefusal is an SMTP session in which the server refused something.
type SMTPRefusal struct {
	Seq   int64  `db:"seq"`
	IP    string `db:"ip"`
	HELO  string `db:"helo"`
	From  string `db:"mail_from"`
	To    string `db:"rcpt_to"`
	Reply string `db:"reply"` // the first refusal
	// Count is how many commands were refused.
	Count     int  `db:"refused"`
	CreatedAt Time `db:"created_at"`
}

const smtpRefusalColumns = `ip, helo, mail_from, rcpt_to, reply, refused, created_at`

// AddJournal records API requests and refused SMTP sessions.
func (s *Store) AddJournal(ctx context.Context, requests []APIRequest, refusals []SMTPRefusal) error {
	return s.inTx(ctx, "record requests", func(tx *sqlx.Tx) error {
		for some := range slices.Chunk(requests, journalRows) {
			if err := addRows(ctx, tx, "api_requests", apiRequestColumns, some); err != nil {
				return err
			}
		}
		for some := range slices.Chunk(refusals, journalRows) {
			if err := addRows(ctx, tx, "smtp_refusals", smtpRefusalColumns, some); err != nil {
				return err
			}
		}
		return nil
	})
}

// addRows inserts rows, whose fields have the names of the columns.
func addRows[T any](ctx context.Context, tx *sqlx.Tx, table, columns string, rows []T) error {
	_, err := tx.NamedExecContext(ctx, insertNamed(table, columns), rows)
	return errIn("insert into "+table, err)
}

// APIRequestFilter selects API requests. Empty fields match all.
type APIRequestFilter struct {
	Caller string
	Failed bool // only with a status of 400 or more
}

// APIRequests returns a page of the recorded requests of an account, newest first.
func (s *Store) APIRequests(ctx context.Context, accountID int64, f APIRequestFilter, p Page) (List[APIRequest], error) {
	scope := fmt.Sprintf("requests/%d/%q/%t", accountID, f.Caller, f.Failed)
	w := conditions("account_id = ?", accountID)
	if f.Caller != "" {
		w.add("caller = ?", f.Caller)
	}
	if f.Failed {
		w.add("status >= 400")
	}
	return listBySeq(ctx, s, p, scope, "list API requests", `SELECT seq, `+apiRequestColumns+` FROM api_requests`, w, "seq",
		func(r APIRequest) int64 { return r.Seq })
}

// SMTPRefusals returns a page of the refused SMTP sessions of the installation, newest
// first.
func (s *Store) SMTPRefusals(ctx context.Context, p Page) (List[SMTPRefusal], error) {
	return listBySeq(ctx, s, p, "refusals", "list refused SMTP sessions", `SELECT seq, `+smtpRefusalColumns+` FROM smtp_refusals`, &where{}, "seq",
		func(r SMTPRefusal) int64 { return r.Seq })
}

// LatestEvents returns a page of the events of the account, newest first: those whose
// type begins with kind. It reads only so many events for one page that the page may
// hold fewer than the limit, or none, and yet not be the last.
func (s *Store) LatestEvents(ctx context.Context, accountID int64, kind string, p Page) (List[Event], error) {
	scope := fmt.Sprintf("latest events/%d/%q", accountID, kind)
	filter := func(w *where) {
		w.add("type NOT IN (?, ?)", EventWebhookTest, EventInboxDeleted)
		w.add(`type LIKE ? ESCAPE '\'`, escapeLike(kind)+"%")
	}
	return listFiltered(ctx, s, p, scope, "latest events", `SELECT `+eventColumns+eventTables, conditions("e.account_id = ?", accountID), "e.seq",
		eventNames, filter, func(e Event) int64 { return e.Seq })
}
