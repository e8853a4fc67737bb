package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/checksum"
)

// keepPrefix begins the names of the settings that keep blobs.
const keepPrefix = "keep blobs for "

// KeepBlobs keeps every blob that is there from being deleted until a time, unless
// it is called again under the same name. What is to be deleted by then goes when
// unnamed blobs are swept.
func (s *Store) KeepBlobs(ctx context.Context, name string, until time.Time) error {
	const (
		tidy = `DELETE FROM settings WHERE name LIKE $1 AND cast(value AS bigint) <= $2`
		keep = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	)
	return s.inTx(ctx, "keep blobs", func(tx *sqlx.Tx) error {
		return execAll(ctx, tx, []statement{
			{tidy, []any{keepPrefix + "%", NewTime(s.now())}}, {keep, []any{keepPrefix + name, fmt.Sprint(NewTime(until).UnixMicro())}},
		})
	})
}

// blobsKept reports whether no blob may be deleted now. The caller has committed that
// nothing names the blob any more: so a backup that began to keep blobs later
// does not name it either.
func (s *Store) blobsKept(ctx context.Context) (bool, error) {
	const q = `SELECT count(*) FROM settings WHERE name LIKE $1 AND cast(value AS bigint) > $2`
	n, err := readOne[int](ctx, s, "whether blobs are kept", q, keepPrefix+"%", NewTime(s.now()))
	return n > 0, err
}

// ExportedTables returns the names of the tables in an export, in the order in which
// their rows are imported.
func ExportedTables() []string {
	return each(exported, func(t table) string { return t.name })
}

// Sum is the size and checksum of what was written to it.
type Sum struct {
	Size int64
	sum  uint32
}

// NewSum returns the Sum of nothing.
func NewSum() *Sum { return &Sum{} }

// Write never fails.
func (s *Sum) Write(p []byte) (int, error) {
	s.Size += int64(len(p))
	s.sum = checksum.Add(s.sum, p)
	return len(p), nil
}

// IsRaw reports whether a message with this checksum has these bytes.
func (s *Sum) IsRaw(sum int64) bool { return checksum.IsRaw(sum, s.sum) }

// IsDerived reports whether a message with this checksum has these columns: body,
// snippet, extracted, auth and attachments of its content, then its from_email,
// addresses, subject, header_id and refs.
func IsDerived(sum int64, columns ...any) bool { return checksum.IsDerived(sum, columns...) }

// CheckDatabase reads all pages and indexes of the database, and returns a sentence about
// each damage.
func (s *Store) CheckDatabase(ctx context.Context) ([]string, error) {
	found, err := s.engine.Check(ctx)
	if err != nil {
		return nil, s.wrap(err, "check the database")
	}
	for _, ref := range references {
		rows, err := ref.dangling(ctx, s.read)
		if err != nil {
			return found, s.wrap(err, "check the references of "+ref.from)
		}
		found = append(found, rows...)
	}
	return found, nil
}

// Accounts is how much mail is in which state.
type Accounts struct {
	Messages   map[string]int64 // by direction and status, as in "in received"
	Recipients map[string]int64 // by status
	Queued     map[string]int64 // recipients that are queued, by what they wait for; never "nothing"
	Deliveries map[string]int64 // of webhooks, by status
	// Unaccounted has a sentence about each message that nothing will move on, and about
	// each that is overdue: at most unaccountedShown of a kind.
	Unaccounted []string
}

const (
	unaccountedShown = 100
	// overdueAfter is how long mail may be due before it is unaccounted for: the time
	// of a node to die and of another one to notice.
	overdueAfter = 2 * time.Minute
)

// AccountForAll counts all mail by its state, and finds what is in none from which it
// moves on: each message that was accepted is received, or each of its recipients has a
// result or something that it waits for.
func (s *Store) AccountForAll(ctx context.Context) (a Accounts, err error) {
	tx, err := s.read.BeginTxx(ctx, &sql.TxOptions{Isolation: s.engine.SnapshotLevel(), ReadOnly: true})
	if err != nil {
		return a, s.wrap(err, "account for all mail")
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // nothing was written
	clock, err := s.serverClock(ctx, tx)
	if err != nil {
		return a, err
	}
	now := strconv.FormatInt(clock.UnixMicro(), 10)
	for _, c := range []struct {
		into *map[string]int64
		rows string
	}{
		{&a.Messages, `SELECT direction || ' ' || status AS name FROM messages`},
		{&a.Recipients, `SELECT status AS name FROM recipients`},
		{&a.Queued, `SELECT CASE WHEN r.leased AND r.next_attempt_at IS NOT NULL THEN 'the end of an attempt'
				WHEN r.next_attempt_at <= ` + now + ` THEN 'a connection' WHEN r.next_attempt_at IS NOT NULL THEN 'the next attempt'
				WHEN r.held_due IS NOT NULL OR e.held_due IS NOT NULL THEN 'postroom held' WHEN r.stopped_due IS NOT NULL THEN 'postroom resume'
				WHEN e.due_at IS NOT NULL THEN 'the scheduled time' ELSE 'nothing' END AS name
			FROM recipients r LEFT JOIN emails e ON e.message_seq = r.message_seq WHERE r.status = 'queued'`},
		{&a.Deliveries, `SELECT status AS name FROM webhook_deliveries`},
	} {
		var rows []struct {
			Name  string `db:"name"`
			Count int64  `db:"n"`
		}
		if err := tx.SelectContext(ctx, &rows, `SELECT name, count(*) AS n FROM (`+c.rows+`) AS states GROUP BY name`); err != nil {
			return a, s.wrap(err, "account for all mail")
		}
		*c.into = map[string]int64{}
		for _, r := range rows {
			(*c.into)[r.Name] = r.Count
		}
	}
	for _, q := range unaccounted(clock) {
		var rows []string
		if err := tx.SelectContext(ctx, &rows, q+` LIMIT `+strconv.Itoa(unaccountedShown)); err != nil {
			return a, s.wrap(err, "account for all mail")
		}
		a.Unaccounted = append(a.Unaccounted, rows...)
	}
	return a, nil
}

// unaccounted are queries for sentences about mail that nothing will move on. The
// database itself refuses a status that does not exist.
func unaccounted(now time.Time) []string {
	const (
		ofRecipient = ` FROM recipients r JOIN messages m ON m.seq = r.message_seq LEFT JOIN emails e ON e.message_seq = r.message_seq`
		is          = `SELECT 'message ' || m.id || ' to ' || r.email || `
	)
	overdue := strconv.FormatInt(now.Add(-overdueAfter).UnixMicro(), 10)
	return []string{
		`SELECT 'message ' || m.id || ' is sent to no recipient' FROM messages m WHERE m.direction = 'out'
			AND NOT EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = m.seq)`,
		`SELECT 'message ' || m.id || ' is queued, and none of its recipients is' FROM messages m WHERE m.direction = 'out' AND m.status = 'queued'
			AND NOT EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = m.seq AND r.status = 'queued')`,
		is + `' is queued and waits for nothing'` + ofRecipient + ` WHERE r.status = 'queued' AND r.next_attempt_at IS NULL
			AND r.held_due IS NULL AND r.stopped_due IS NULL AND e.due_at IS NULL AND e.held_due IS NULL`,
		is + `' is ' || r.status || ' and would be sent again'` + ofRecipient + ` WHERE r.status <> 'queued' AND r.next_attempt_at IS NOT NULL`,
		is + `' has been due for more than 2 minutes'` + ofRecipient + ` WHERE r.status = 'queued' AND r.next_attempt_at < ` + overdue,
		`SELECT 'webhook delivery ' || d.id || ' is pending and waits for nothing' FROM webhook_deliveries d
			WHERE d.status = 'pending' AND d.next_attempt_at IS NULL AND d.held_due IS NULL`,
	}
}

// Portable describes the rows of an export, which either engine can import.
type Portable struct {
	Schema int64 `json:"schema"` // version
	// Last holds the last number of a row, by table.
	Last map[string]int64 `json:"last"`
	// At is when the rows were read, all as of one moment.
	At time.Time `json:"at"`
}

// Export calls f with all rows of the database as of one moment, or with those of one
// account, if accountID is not 0. The search index and the sessions are left out. It
// ends with the first error of f.
func (s *Store) Export(ctx context.Context, accountID int64, f func(Row) error) (_ Portable, err error) {
	tx, err := s.read.BeginTxx(ctx, &sql.TxOptions{Isolation: s.engine.SnapshotLevel(), ReadOnly: true})
	if err != nil {
		return Portable{}, s.wrap(err, "export")
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // nothing was written
	if !s.engine.Alone() {
		// The writing of what was read may take long.
		if _, err := tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return Portable{}, s.wrap(err, "export")
		}
	}
	out := Portable{Schema: s.schema, At: s.now()}
	for _, t := range exported {
		if err := t.each(ctx, tx, accountID, f); err != nil {
			return out, err
		}
	}
	out.Last, err = s.lastNumbers(ctx, tx)
	return out, err
}

// Import fills the database of cfg, which must be empty, with the rows of an export,
// all or none. It holds pending work (see Hold), and migrates the schema.
func Import(ctx context.Context, cfg Config, p Portable, rows iter.Seq2[Row, error]) (err error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m, err := s.migrator()
	if err != nil {
		return err
	}
	newest, err := refuseNewer(ctx, m)
	if err != nil {
		return err
	}
	if p.Schema > newest {
		return fmt.Errorf("the backup has schema %d, and this program knows %d: use a newer Postroom", p.Schema, newest)
	}
	if _, err := m.UpTo(ctx, p.Schema); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	if err := s.importRows(ctx, p, rows); err != nil {
		return err
	}
	if _, err := m.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// importBatch is how many rows are inserted at a time.
const importBatch = 64

func (s *Store) importRows(ctx context.Context, p Portable, rows iter.Seq2[Row, error]) (err error) {
	tx, err := s.write.BeginTxx(ctx, nil)
	if err != nil {
		return s.wrap(err, "import")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	var accounts int
	if err := tx.GetContext(ctx, &accounts, `SELECT count(*) FROM accounts`); err != nil {
		return s.wrap(err, "import")
	}
	if accounts > 0 {
		return errors.New("the database is not empty")
	}
	for _, t := range slices.Backward(exported) { // of what migrations write
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+t.name); err != nil {
			return s.wrap(err, "import")
		}
	}
	var some []newRow
	for r, err := range rows {
		if err != nil {
			return err
		}
		row, err := r.insert()
		if err != nil {
			return err
		}
		if some = append(some, row); len(some) < importBatch {
			continue
		}
		if err := s.insert(ctx, tx, some...); err != nil {
			return s.wrap(err, "import")
		}
		some = some[:0]
	}
	if err := s.insert(ctx, tx, some...); err != nil {
		return s.wrap(err, "import")
	}
	if err := s.setLastNumbers(ctx, tx, p.Last); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, hold); err != nil {
		return s.wrap(err, "import")
	}
	return s.wrap(tx.Commit(), "import")
}

// table is a table that is exported.
type table struct {
	name string
	// account is the condition for the rows of the account $1. Without one, the rows
	// belong to all accounts.
	account string
	// where is a condition for all rows that are exported, or empty.
	where string
	// more are expressions that are read as further columns, named "export_...", which
	// are not imported, and join are the tables that they need.
	more, join string
}

const (
	ofAccount  = "account_id = $1"
	ofMessages = "message_seq IN (SELECT seq FROM messages WHERE account_id = $1)"
	ofInboxes  = "inbox_seq IN (SELECT seq FROM inboxes WHERE account_id = $1)"
)

// exported are the tables that are exported, each after those that it refers to. Both
// engines have the same ones.
var exported = []table{
	{name: "install_secret"},
	{name: "settings", where: "name NOT LIKE 'keep blobs for %'"},
	{name: "certificates"},
	{name: "accounts", account: "seq = $1"},
	{name: "api_keys", account: ofAccount},
	{name: "oauth_clients", account: "id IN (SELECT client_id FROM oauth_grants WHERE account_id = $1)"},
	{name: "oauth_grants", account: ofAccount},
	{name: "users", account: ofAccount},
	{name: "domains", account: ofAccount},
	{name: "dkim_keys", account: "(domain_seq IS NULL OR domain_seq IN (SELECT seq FROM domains WHERE account_id = $1))"},
	{name: "inboxes", account: ofAccount},
	{name: "freed_addresses", account: ofAccount},
	{name: "inbox_addresses", account: ofInboxes},
	{name: "threads", account: ofAccount},
	{name: "thread_references", account: ofInboxes},
	{name: "messages", account: ofAccount},
	{name: "message_reads", account: ofMessages},
	{name: "emails", account: ofAccount},
	{name: "email_tags", account: ofAccount},
	{
		name: "contents", account: ofMessages,
		more: `m.id AS export_id, ltrim(m.from_email) AS export_from, m.addresses AS export_addresses, m.subject AS export_subject,
			m.header_id AS export_header, m.refs AS export_refs, m.size AS export_size, i.address AS export_inbox`,
		join: "LEFT JOIN messages m ON m.seq = contents.message_seq LEFT JOIN inboxes i ON i.seq = m.inbox_seq",
	},
	{name: "recipients", account: ofAccount},
	{name: "drafts", account: ofAccount},
	{name: "draft_contents", account: "draft_seq IN (SELECT seq FROM drafts WHERE account_id = $1)"},
	{name: "templates", account: ofAccount},
	{name: "contacts", account: ofAccount},
	{name: "suppressions", account: ofAccount},
	{name: "events", account: ofAccount},
	{name: "webhook_endpoints", account: ofAccount},
	{name: "webhook_deliveries", account: ofAccount},
	{name: "idempotency", account: ofAccount},
	{name: "daily_counts", account: ofAccount},
	{name: "send_counts", account: ofAccount},
	{name: "positions", where: "name = 'counted'"},
	{name: "deleted_messages", account: ofInboxes},
	{name: "stops", account: ofAccount},
	{name: "lists", account: ofAccount},
	{name: "codes_taken", account: ofAccount},
	{name: "correspondents", account: ofAccount},
	{name: "sends", account: ofAccount},
}

// notExported are the others: sessions and links end, the search index is made again, the
// journal is about the old database, and the rest is known for minutes only.
var notExported = []string{
	"user_links", "user_sessions", "session_notes", "search_buckets", "search_index",
	"rate_limits", "mail_policies", "maintenance", "api_requests", "smtp_refusals",
}

// reference is a reference between tables that the database does not enforce.
type reference struct {
	from, column string // of the referring rows
	to, key      string
	where        string // the referring rows that are meant
}

var references = []reference{
	{"contents", "message_seq", "messages", "seq", ""},
	{"messages", "seq", "contents", "message_seq", "expired_at IS NULL"},
	{"recipients", "message_seq", "messages", "seq", ""},
	{"emails", "message_seq", "messages", "seq", ""},
	{"messages", "seq", "emails", "message_seq", "inbox_seq IS NULL"},
	{"messages", "inbox_seq", "inboxes", "seq", "inbox_seq IS NOT NULL"},
	{"messages", "thread_seq", "threads", "seq", "thread_seq IS NOT NULL"},
	{"messages", "account_id", "accounts", "seq", ""},
	{"threads", "inbox_seq", "inboxes", "seq", ""},
	{"drafts", "seq", "draft_contents", "draft_seq", "expired_at IS NULL"},
	{"draft_contents", "draft_seq", "drafts", "seq", ""},
	{"inboxes", "account_id", "accounts", "seq", ""},
	{"api_keys", "account_id", "accounts", "seq", ""},
	{"webhook_deliveries", "endpoint_seq", "webhook_endpoints", "seq", "status = 'pending'"},
}

// dangling returns a sentence about the rows that refer to one that is not there.
func (r reference) dangling(ctx context.Context, q sqlx.QueryerContext) ([]string, error) {
	from := r.from + " a WHERE NOT EXISTS (SELECT 1 FROM " + r.to + " b WHERE b." + r.key + " = a." + r.column + ")"
	if r.where != "" {
		from += " AND " + r.where
	}
	var found struct {
		N     int64  `db:"n"`
		First *int64 `db:"first"`
	}
	if err := sqlx.GetContext(ctx, q, &found, "SELECT count(*) AS n, min(a."+r.column+") AS first FROM "+from); err != nil || found.N == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("%d rows of %s have no row in %s: the first has %s = %d", found.N, r.from, r.to, r.column, *found.First)}, nil
}

// Row is a row of a table in an export. Its values are int64, bool, string, []byte or nil.
type Row struct {
	Table  string
	Names  []string
	Values []any
}

// Value returns the value of a column, or nil without such a column.
func (r *Row) Value(name string) any {
	if i := slices.Index(r.Names, name); i >= 0 {
		return r.Values[i]
	}
	return nil
}

// insert is the row to import. It refuses what is not in the tables, whose names become
// part of a statement.
func (r *Row) insert() (newRow, error) {
	known := slices.ContainsFunc(exported, func(t table) bool { return t.name == r.Table })
	for _, name := range r.Names {
		known = known && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
	}
	if !known {
		return newRow{}, fmt.Errorf("no table in the backup has the columns %q", r.Names)
	}
	return newRow{into: r.Table + " (" + strings.Join(r.Names, ", ") + ")", values: r.Values}, nil
}

// each calls f with each row of the table, in the order of its key: with all, or with
// those of one account, if account is not 0. f may keep the row.
func (t table) each(ctx context.Context, q sqlx.QueryerContext, account int64, f func(Row) error) error {
	query, w, args := "SELECT "+t.name+".*", where{}, []any(nil)
	if t.more != "" {
		query += ", " + t.more
	}
	if t.where != "" {
		w.add(t.where)
	}
	if account != 0 && t.account != "" {
		w.add(t.account)
		args = append(args, account)
	}
	rows, err := q.QueryxContext(ctx, query+" FROM "+t.name+" "+t.join+w.sql()+" ORDER BY 1, 2", args...)
	if err != nil {
		return errIn("read "+t.name, err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	types, err := rows.ColumnTypes()
	if err != nil {
		return errIn("read "+t.name, err)
	}
	names := each(types, (*sql.ColumnType).Name)
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return errIn("read "+t.name, err)
		}
		for i, c := range types { // SQLite has no type for them
			if n, ok := values[i].(int64); ok && c.DatabaseTypeName() == "BOOLEAN" {
				values[i] = n != 0
			}
		}
		if err := f(Row{t.name, names, values}); err != nil {
			return err
		}
	}
	return errIn("read "+t.name, rows.Err())
}

// lastNumbers returns the last number that the database gave to a row, by table.
func (s *Store) lastNumbers(ctx context.Context, tx *sqlx.Tx) (map[string]int64, error) {
	q := `SELECT name, seq FROM sqlite_sequence`
	if !s.engine.Alone() {
		q = `SELECT replace(sequencename, '_seq_seq', '') AS name, coalesce(last_value, 0) AS seq FROM pg_sequences WHERE schemaname = current_schema()`
	}
	var rows []struct {
		Name string `db:"name"`
		Seq  int64  `db:"seq"`
	}
	err := tx.SelectContext(ctx, &rows, q)
	last := map[string]int64{}
	for _, r := range rows {
		last[r.Name] = r.Seq
	}
	return last, errIn("read the last numbers of rows", err)
}

// setLastNumbers makes the database number new rows from those on.
func (s *Store) setLastNumbers(ctx context.Context, tx *sqlx.Tx, last map[string]int64) error {
	queries := []string{`DELETE FROM sqlite_sequence WHERE name = $1 AND seq <> $2`, `INSERT INTO sqlite_sequence (name, seq)
		SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)`}
	if !s.engine.Alone() {
		queries = []string{`SELECT setval(cast(cast($1 AS text) || '_seq_seq' AS regclass), $2)`}
	}
	for _, t := range exported {
		if last[t.name] == 0 {
			continue
		}
		for _, q := range queries {
			if _, err := tx.ExecContext(ctx, q, t.name, last[t.name]); err != nil {
				return errIn("number the rows of "+t.name, err)
			}
		}
	}
	return nil
}

// A backup is older than the latest deliveries: messages that it shows as waiting
// may have been delivered, and pending webhooks posted. So pending work in a
// restored database is held: its due time moves to held_due, and it is not
// claimed until an operator releases or discards it. New work is not held.

// Held holds the numbers of held recipients, scheduled emails and webhook
// deliveries.
type Held struct{ Recipients, Scheduled, Deliveries int64 }

// None reports whether nothing is held.
func (h Held) None() bool { return h == Held{} }

// hold is run at the end of a restore. What a node
// had claimed is due since it was created.
const hold = `
	UPDATE recipients SET held_due = CASE WHEN leased THEN created_at ELSE next_attempt_at END, next_attempt_at = NULL,
		leased = false, fence = fence + 1 WHERE next_attempt_at IS NOT NULL;
	UPDATE webhook_deliveries SET held_due = CASE WHEN leased THEN created_at ELSE next_attempt_at END, next_attempt_at = NULL,
		leased = false, fence = fence + 1 WHERE next_attempt_at IS NOT NULL;
	UPDATE emails SET held_due = due_at, due_at = NULL WHERE due_at IS NOT NULL;
	UPDATE drafts SET status = 'pending', send_after = NULL, message_id = NULL, decided_by = NULL, decided_at = NULL, expires_at = NULL
		WHERE status = 'scheduled';
	UPDATE drafts SET expires_at = NULL WHERE status = 'pending' AND on_expiry = 'send' AND expires_at IS NOT NULL;
	UPDATE recipients SET held_due = stopped_due, stopped_due = NULL, fence = fence + 1 WHERE status = 'queued' AND stopped_due IS NOT NULL;`

// Hold holds all pending messages and webhooks, and undoes approvals whose drafts have not
// been sent. A draft that is sent when it expires waits for a decision instead. No node may be serving, because
// it may still finish what it has claimed.
func (s *Store) Hold(ctx context.Context) error {
	return s.inTx(ctx, "hold what waits", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, hold)
		return err
	})
}

// Held returns the numbers of held items.
func (s *Store) Held(ctx context.Context) (Held, error) {
	const q = `SELECT
		(SELECT count(*) FROM recipients WHERE held_due IS NOT NULL) AS recipients,
		(SELECT count(*) FROM emails WHERE held_due IS NOT NULL) AS scheduled,
		(SELECT count(*) FROM webhook_deliveries WHERE held_due IS NOT NULL) AS deliveries`
	return readOne[Held](ctx, s, "what is held", q)
}

// ReleaseHeld makes held items pending again and returns their numbers: all of
// them or, if after is not zero, those due at after or later. A recipient is not due
// before now, and its time for retries starts again.
func (s *Store) ReleaseHeld(ctx context.Context, after time.Time) (Held, error) {
	const (
		some       = ` WHERE %s IN (SELECT %[1]s FROM %s WHERE held_due >= $1 ORDER BY held_due LIMIT $2)`
		recipients = `UPDATE recipients SET next_attempt_at = CASE WHEN held_due > $3 THEN held_due ELSE $3 END, held_due = NULL, created_at = $3`
		scheduled  = `UPDATE emails SET due_at = held_due, held_due = NULL`
		deliveries = `UPDATE webhook_deliveries SET next_attempt_at = held_due, held_due = NULL`
	)
	from := Time{time.UnixMicro(0)}
	if !after.IsZero() {
		from = NewTime(after)
	}
	var h Held
	for _, kind := range []struct {
		n    *int64
		q    string
		more []any
	}{
		{&h.Recipients, recipients + fmt.Sprintf(some, "seq", "recipients"), []any{NewTime(s.now())}},
		{&h.Scheduled, scheduled + fmt.Sprintf(some, "message_seq", "emails"), nil},
		{&h.Deliveries, deliveries + fmt.Sprintf(some, "seq", "webhook_deliveries"), nil},
	} {
		var err error
		if *kind.n, err = s.execRepeatedly(ctx, "release what is held", kind.q, append([]any{from, sweepBatch}, kind.more...)...); err != nil {
			return h, err
		}
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicWebhooks}}, 1)
	return h, nil
}

// DiscardHeld ends all held items and returns their numbers. Recipients fail with
// why as the reason and scheduled emails are cancelled, both with their events.
// Webhooks are not notified.
func (s *Store) DiscardHeld(ctx context.Context, why string) (h Held, err error) {
	const (
		deliveries = `UPDATE webhook_deliveries SET status = 'failed', held_due = NULL, last_error = $1, updated_at = $2
			WHERE seq IN (SELECT seq FROM webhook_deliveries WHERE held_due IS NOT NULL LIMIT $3)`
		recipients = `SELECT seq, message_seq FROM recipients WHERE held_due IS NOT NULL AND status = 'queued' ORDER BY held_due LIMIT $1`
		scheduled  = `SELECT m.id, m.account_id FROM emails e JOIN messages m ON m.seq = e.message_seq WHERE e.held_due IS NOT NULL LIMIT $1`
	)
	if h.Deliveries, err = s.execRepeatedly(ctx, "discard deliveries", deliveries, why, NewTime(s.now()), sweepBatch); err != nil {
		return h, err
	}
	h.Recipients, err = endEach(ctx, s, recipients, func(r Recipient) error {
		return s.RecordReport(ctx, Report{RecipientSeq: r.Seq, MessageSeq: r.MessageSeq, Status: RecipientFailed, Response: why})
	})
	if err != nil {
		return h, err
	}
	h.Scheduled, err = endEach(ctx, s, scheduled, func(m Message) error { return s.CancelEmail(ctx, m.AccountID, m.ID) })
	return h, err
}

// endEach calls end with each row that a query finds, which finds it no more after that,
// and returns how many.
func endEach[T any](ctx context.Context, s *Store, q string, end func(T) error) (n int64, err error) {
	for {
		rows, err := readAll[T](ctx, s, "what is held", q, sweepBatch)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, row := range rows {
			if err := end(row); err != nil {
				return n, err
			}
			n++
		}
	}
}
