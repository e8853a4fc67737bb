package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
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
	intoEmails     = `emails (message_seq, account_id, from_inbox, batch_id, category, tags, metadata, scheduled_at, due_at, created_by)`
	intoEmailTags  = `email_tags (account_id, name, value, message_seq)`
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

// insert inserts rows: those of a table in their order, and a row that another one refers
// to before that one. On PostgreSQL all go in one statement, so that a message costs one
// round trip.
func (s *Store) insert(ctx context.Context, tx *sqlx.Tx, rows ...newRow) error {
	most := maxParameters
	if s.engine.Alone() {
		most = 1
	}
	for len(rows) > 0 {
		n, params := 1, len(rows[0].values)
		for n < len(rows) && params+len(rows[n].values) <= most {
			params += len(rows[n].values)
			n++
		}
		exec := s.prepared.Exec
		if n > maxPreparedRows {
			exec = unprepared
		}
		q, args := s.insertStatement(rows[:n])
		if _, err := exec(ctx, tx, q, args...); err != nil {
			return fmt.Errorf("insert %s: %w", rows[0].table(), err)
		}
		rows = rows[n:]
	}
	return nil
}

func (r newRow) table() string { return r.into[:strings.IndexByte(r.into, ' ')] }

// insertStatement is a statement that inserts rows.
func (s *Store) insertStatement(rows []newRow) (q string, args []any) {
	var inserts []string
	var tables []newRow
	for _, r := range rows {
		if !slices.ContainsFunc(tables, func(t newRow) bool { return t.into == r.into }) {
			tables = append(tables, r)
		}
	}
	for _, t := range tables {
		var sb strings.Builder
		sep := "INSERT INTO " + t.into + " VALUES ("
		for _, r := range rows {
			if r.into != t.into {
				continue
			}
			for _, v := range r.values {
				args = append(args, v)
				sb.WriteString(sep + s.engine.Placeholder(len(args)))
				sep = ", "
			}
			sep = "), ("
		}
		sb.WriteString(")" + t.then)
		inserts = append(inserts, sb.String())
	}
	last := len(inserts) - 1
	for i := range inserts[:last] {
		inserts[i] = fmt.Sprintf("i%d AS (%s)", i, inserts[i])
	}
	if last == 0 {
		return inserts[0], args
	}
	return "WITH " + strings.Join(inserts[:last], ", ") + " " + inserts[last], args
}

// numbers returns a number for a new message and one for a new thread, and the name
// of the transaction for wasCommitted.
func (s *Store) numbers(ctx context.Context, tx *sqlx.Tx) (message, thread int64, name string, err error) {
	q := `SELECT ` + s.engine.TxName() + `, ` + s.engine.NextNumber("messages") + `, ` + s.engine.NextNumber("threads")
	err = s.prepared.Row(ctx, tx, q, nil, &name, &message, &thread)
	return message, thread, name, errIn("next numbers", err)
}

// messageRows are the rows of a message: its own, its content, and its recipients,
// which are due at a time, nil for never. inbox and thread are nil for an email.
func messageRows(h *hotMessage, now Time, inbox, thread, due any) []newRow {
	m, c := &h.msg, h.msg.Content
	status, from := m.Status, m.FromEmail
	if h.quarantined() {
		status, from = MessageReceived, quarantineMark+from
	}
	c.MessageSeq = m.Seq
	rows := []newRow{
		{into: intoMessages, values: []any{
			m.Seq, m.AccountID, inbox, thread, m.ID, string(m.Direction), string(status), m.TestMode,
			from, h.addresses, m.Subject, h.fold, m.HeaderID, hash64(m.HeaderID), h.refs, m.Automated,
			m.HasCode, m.HasLink, m.Truncated, orNull(m.Tag), m.Size, m.CreatedAt.UnixMicro(), orNull(m.SentBy), h.quarantined(),
			orNull(m.DeliveredTo),
		}},
		{into: intoContents, values: []any{
			m.Seq, orNullBytes(c.Raw), orNull(c.BlobKey), h.body, c.Snippet, h.extracted, h.auth, h.attachments, h.checksum,
		}},
	}
	for i := range m.Recipients {
		rc := &m.Recipients[i]
		rc.AccountID, rc.MessageSeq, rc.CreatedAt, rc.NextAttemptAt = m.AccountID, m.Seq, now, nil
		dueAt := due
		if rc.Status == RecipientSuppressed {
			dueAt = nil
		} else {
			rc.Status = RecipientQueued
		}
		if dueAt != nil {
			rc.NextAttemptAt = &now
		}
		rows = append(rows, newRow{into: intoRecipients, values: []any{
			rc.AccountID, rc.MessageSeq, rc.Email, rc.Domain, rc.Kind, string(rc.Status), int64(0), int64(0), dueAt, now.UnixMicro(),
		}})
	}
	return rows
}

// row is the row of the event. An event without an id gets one.
func (e *newEvent) row(now Time) (newRow, error) {
	data, err := json.Marshal(e.data)
	if err != nil {
		return newRow{}, fmt.Errorf("write event: %w", err)
	}
	if e.id == "" {
		e.id = NewLongID("evt_", now.Time)
	}
	return newRow{into: intoEvents, values: []any{
		e.account, zeroNull(e.inbox), e.id, string(e.typ), zeroNull(e.message), e.testMode, string(data), now.UnixMicro(),
	}}, nil
}

// eventRows are the rows of events, and of their deliveries to webhook endpoints.
func (s *Store) eventRows(ctx context.Context, tx *sqlx.Tx, now Time, events ...newEvent) ([]newRow, error) {
	rows := make([]newRow, len(events))
	for i := range events {
		var err error
		if rows[i], err = events[i].row(now); err != nil {
			return nil, err
		}
	}
	deliveries, err := s.deliveryRows(ctx, tx, now, events)
	return append(rows, deliveries...), err
}

// deliveryRows are the rows of the deliveries of events, which have ids, to the active
// webhook endpoints of their accounts.
func (s *Store) deliveryRows(ctx context.Context, tx *sqlx.Tx, now Time, events []newEvent) (rows []newRow, err error) {
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
				rows = append(rows, w.delivery(e.id, e.typ, zeroNull(e.message), now))
			}
		}
	}
	return rows, nil
}

// delivery is the row of a delivery of an event to the endpoint, due now. message may be
// nil.
func (w *Webhook) delivery(eventID string, typ EventType, message any, now Time) newRow {
	at := now.UnixMicro()
	return newRow{into: intoDeliveries, values: []any{
		w.AccountID, w.Seq, message, NewLongID("dlv_", now.Time), eventID, string(typ), string(DeliveryPending), int64(0), at, at, at,
	}}
}
