package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

// newRow is a row to insert.
type newRow struct {
	into   string // the table and its columns
	values []any
	// then follows the values, for example ON CONFLICT DO NOTHING.
	then string
}

// The tables that messages and events are inserted into, with their columns.
const (
	intoThreads  = `threads (seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at)`
	intoMessages = `messages (seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold,
		header_id, header_hash, refs, automated, has_code, has_link, truncated, tag, size, created_at, sent_by, quarantined, delivered_to)`
	intoContents   = `contents (message_seq, raw, blob_key, body, snippet, extracted, auth, attachments, checksum)`
	intoRecipients = `recipients (account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at)`
	intoReferences = `thread_references (inbox_seq, header_hash, header_id, thread_seq)`
	intoEvents     = `events (account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at)`
	intoDeliveries = `webhook_deliveries (account_id, endpoint_seq, message_seq, id, event_id, event_type, status, attempts, next_attempt_at,
		created_at, updated_at)`
)

// maxPreparedRows is the most rows of a statement of insert that is prepared: there are
// many combinations of more.
const maxPreparedRows = 6

func unprepared(ctx context.Context, tx *sqlx.Tx, query string, args ...any) (sql.Result, error) {
	return tx.ExecContext(ctx, query, args...)
}

// maxParameters is the most parameters of one statement of insert. PostgreSQL takes
// 65,535.
const maxParameters = 2000

// insert inserts rows, a row that another one refers to before that one. On
// PostgreSQL all go in one statement, so that a message costs one round trip.
func (s *Store) insert(ctx context.Context, tx *sqlx.Tx, rows ...newRow) error {
	if s.engine.Alone() {
		for _, r := range rows {
			if _, err := s.prepared.Exec(ctx, tx, insertText(r), r.values...); err != nil {
				return fmt.Errorf("insert %s: %w", r.table(), err)
			}
		}
		return nil
	}
	for len(rows) > 0 {
		n, params := 1, len(rows[0].values)
		for n < len(rows) && params+len(rows[n].values) <= maxParameters {
			params += len(rows[n].values)
			n++
		}
		args := make([]any, 0, params)
		for _, r := range rows[:n] {
			args = append(args, r.values...)
		}
		exec := s.prepared.Exec
		if n > maxPreparedRows {
			exec = unprepared
		}
		if _, err := exec(ctx, tx, insertText(rows[:n]...), args...); err != nil {
			return fmt.Errorf("insert %s and what belongs to it: %w", rows[0].table(), err)
		}
		rows = rows[n:]
	}
	return nil
}

func (r newRow) table() string { return r.into[:strings.IndexByte(r.into, ' ')] }

// insertText is a statement that inserts rows. Rows of one table that follow each other
// get their numbers in this order.
func insertText(rows ...newRow) string {
	var inserts []string
	param := 0
	for i, r := range rows {
		params := make([]string, len(r.values))
		for col := range params {
			param++
			params[col] = "$" + strconv.Itoa(param)
		}
		values := "(" + strings.Join(params, ", ") + ")"
		if i > 0 && rows[i-1].into == r.into && rows[i-1].then == r.then {
			inserts[len(inserts)-1] += ", " + values
			continue
		}
		if i > 0 {
			inserts[len(inserts)-1] += rows[i-1].then
		}
		inserts = append(inserts, "INSERT INTO "+r.into+" VALUES "+values)
	}
	last := len(inserts) - 1
	inserts[last] += rows[len(rows)-1].then
	if last == 0 {
		return inserts[0]
	}
	for i := range inserts[:last] {
		inserts[i] = fmt.Sprintf("r%d AS (%s)", i, inserts[i])
	}
	return "WITH " + strings.Join(inserts[:last], ", ") + " " + inserts[last]
}

// numbers returns a number for a new message and one for a new thread, and the name
// of the transaction for wasCommitted.
func (s *Store) numbers(ctx context.Context, tx *sqlx.Tx) (message, thread int64, name string, err error) {
	rows, err := s.prepared.Query(ctx, tx, s.engine.Reserve(), int64(1))
	if err != nil {
		return 0, 0, "", errIn("reserve numbers", err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for rows.Next() {
		if err := rows.Scan(&message, &thread, &name); err != nil {
			return 0, 0, "", errIn("reserve numbers", err)
		}
	}
	return message, thread, name, errIn("reserve numbers", rows.Err())
}

// messageRows are the rows of a message: its own, its content, and its recipients,
// which are due at a time, nil for never. inbox and thread are nil for an email.
func messageRows(h *hotMessage, now Time, inbox, thread, due any) []newRow {
	var r insertRows
	r.add(h, now, inbox, thread, due)
	rows := []newRow{{into: intoMessages, values: r.messages}, {into: intoContents, values: r.contents}}
	for each := len(r.recipients) / max(1, len(h.msg.Recipients)); len(r.recipients) > 0; r.recipients = r.recipients[each:] {
		rows = append(rows, newRow{into: intoRecipients, values: r.recipients[:each]})
	}
	return rows
}

// eventRows are the rows of events, and of their deliveries to webhook endpoints. An
// event without an id gets one.
func (s *Store) eventRows(ctx context.Context, tx *sqlx.Tx, now Time, events ...newEvent) ([]newRow, error) {
	rows := make([]newRow, 0, len(events))
	for i := range events {
		e := &events[i]
		data, err := json.Marshal(e.data)
		if err != nil {
			return nil, fmt.Errorf("write event: %w", err)
		}
		if e.id == "" {
			e.id = NewLongID("evt_", now.Time)
		}
		rows = append(rows, newRow{into: intoEvents, values: []any{
			e.account, zeroNull(e.inbox), e.id, string(e.typ), zeroNull(e.message), e.testMode, string(data), now.UnixMicro(),
		}})
	}
	const endpoints = `SELECT seq, account_id, events, inboxes FROM webhook_endpoints WHERE account_id = $1 AND active ORDER BY seq`
	wanted := map[int64][]Webhook{} // by account
	for _, e := range events {
		hooks, known := wanted[e.account]
		if !known {
			if err := s.prepared.Select(ctx, tx, &hooks, endpoints, e.account); err != nil {
				return nil, errIn("endpoints of events", err)
			}
			wanted[e.account] = hooks
		}
		for i := range hooks {
			if w := &hooks[i]; w.Wants(e.typ, e.inbox) {
				at := now.UnixMicro()
				rows = append(rows, newRow{into: intoDeliveries, values: []any{
					e.account, w.Seq, zeroNull(e.message), NewLongID("dlv_", now.Time), e.id, string(e.typ), string(DeliveryPending),
					int64(0), at, at, at,
				}})
			}
		}
	}
	return rows, nil
}
