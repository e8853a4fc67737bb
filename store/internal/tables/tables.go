// Package tables copies the rows of a database between engines. Both engines have the
// same tables, except for those of the search index, which is made again.
package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/postroom/postroom/store/internal/engine"
)

// Table is a table that is copied.
type Table struct {
	Name string
	// order lists the columns of its primary key.
	order string
	// numbered means that the database numbers its rows in the column seq.
	numbered bool
	// account is the condition for the rows of the account $1. Without one, the rows
	// belong to all accounts.
	account string
	// where is a condition for all rows that are copied, or empty.
	where string
	// more are expressions that are read as further columns, named "export_...", which
	// are not copied, and join are the tables that they need.
	more, join string
}

const (
	ofAccount  = "account_id = $1"
	ofMessages = "message_seq IN (SELECT seq FROM messages WHERE account_id = $1)"
	ofInboxes  = "inbox_seq IN (SELECT seq FROM inboxes WHERE account_id = $1)"
)

// All are the tables that are copied, each after those that it refers to.
var All = []Table{
	{Name: "install_secret", order: "id"},
	{Name: "settings", order: "name", where: "name NOT LIKE 'keep blobs for %'"},
	{Name: "certificates", order: "name"},
	{Name: "accounts", order: "seq", numbered: true, account: "seq = $1"},
	{Name: "api_keys", order: "seq", numbered: true, account: ofAccount},
	{Name: "oauth_clients", order: "id", account: "id IN (SELECT client_id FROM oauth_grants WHERE account_id = $1)"},
	{Name: "oauth_grants", order: "seq", numbered: true, account: ofAccount},
	{Name: "users", order: "seq", numbered: true, account: ofAccount},
	{Name: "domains", order: "seq", numbered: true, account: ofAccount},
	{
		Name: "dkim_keys", order: "seq", numbered: true,
		account: "(domain_seq IS NULL OR domain_seq IN (SELECT seq FROM domains WHERE account_id = $1))",
	},
	{Name: "inboxes", order: "seq", numbered: true, account: ofAccount},
	{Name: "freed_addresses", order: "address", account: ofAccount},
	{Name: "inbox_addresses", order: "owner, address", account: ofInboxes},
	{Name: "threads", order: "seq", numbered: true, account: ofAccount},
	{Name: "thread_references", order: "inbox_seq, header_hash", account: ofInboxes},
	{Name: "messages", order: "seq", numbered: true, account: ofAccount},
	{Name: "message_reads", order: "message_seq, user_seq", account: ofMessages},
	{Name: "emails", order: "message_seq", account: ofAccount},
	{Name: "email_tags", order: "account_id, name, value, message_seq", account: ofAccount},
	{
		Name: "contents", order: "message_seq", account: ofMessages,
		more: `m.id AS export_id, ltrim(m.from_email) AS export_from, m.addresses AS export_addresses, m.subject AS export_subject,
			m.header_id AS export_header, m.refs AS export_refs, m.size AS export_size, i.address AS export_inbox`,
		join: "LEFT JOIN messages m ON m.seq = contents.message_seq LEFT JOIN inboxes i ON i.seq = m.inbox_seq",
	},
	{Name: "recipients", order: "seq", numbered: true, account: ofAccount},
	{Name: "drafts", order: "seq", numbered: true, account: ofAccount},
	{Name: "draft_contents", order: "draft_seq", account: "draft_seq IN (SELECT seq FROM drafts WHERE account_id = $1)"},
	{Name: "templates", order: "seq", numbered: true, account: ofAccount},
	{Name: "contacts", order: "seq", numbered: true, account: ofAccount},
	{Name: "suppressions", order: "seq", numbered: true, account: ofAccount},
	{Name: "events", order: "seq", numbered: true, account: ofAccount},
	{Name: "webhook_endpoints", order: "seq", numbered: true, account: ofAccount},
	{Name: "webhook_deliveries", order: "seq", numbered: true, account: ofAccount},
	{Name: "idempotency", order: "account_id, operation, key", account: ofAccount},
	{Name: "daily_counts", order: "account_id, inbox_seq, day, kind", account: ofAccount},
	{Name: "send_counts", order: "account_id, day, kind, shard", account: ofAccount},
	{Name: "positions", order: "name", where: "name = 'counted'"},
	{Name: "deleted_messages", order: "id", account: ofInboxes},
	{Name: "stops", order: "account_id, scope", account: ofAccount},
	{Name: "lists", order: "seq", numbered: true, account: ofAccount},
	{Name: "codes_taken", order: "account_id, caller, message_id", account: ofAccount},
	{Name: "correspondents", order: "account_id, address", account: ofAccount},
	{Name: "sends", order: "account_id, scope, n", account: ofAccount},
}

// Left are the tables that are not copied: sessions and links end, the search index is
// made again, the journal is about the old database, and the rest is known for minutes
// only.
var Left = []string{
	"user_links", "user_sessions", "session_notes", "search_buckets", "search_lease", "search_index",
	"rate_limits", "mail_policies", "maintenance", "api_requests", "smtp_refusals",
}

// Row is a row of a table. Its values are int64, bool, string, []byte or nil.
type Row struct {
	Table  string
	Names  []string
	Values []any
}

// Value returns the value of a column, or nil without such a column.
func (r *Row) Value(name string) any {
	for i, n := range r.Names {
		if n == name {
			return r.Values[i]
		}
	}
	return nil
}

// Each calls f with each row of a table, in the order of its key: with all, or with
// those of one account, if account is not 0. f may keep the row.
func (t Table) Each(ctx context.Context, q sqlx.QueryerContext, account int64, f func(Row) error) error {
	var conditions []string
	var args []any
	if t.where != "" {
		conditions = append(conditions, t.where)
	}
	if account != 0 && t.account != "" {
		conditions, args = append(conditions, t.account), append(args, account)
	}
	query := "SELECT * FROM " + t.Name
	if t.more != "" {
		query = "SELECT " + t.Name + ".*, " + t.more + " FROM " + t.Name + " " + t.join
	}
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	rows, err := q.QueryxContext(ctx, query+" ORDER BY "+t.order, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.Name, err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	types, err := rows.ColumnTypes()
	if err != nil {
		return fmt.Errorf("read %s: %w", t.Name, err)
	}
	names := make([]string, len(types))
	for i, c := range types {
		names[i] = c.Name()
	}
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return fmt.Errorf("read %s: %w", t.Name, err)
		}
		for i, c := range types { // SQLite has no type for them
			if n, ok := values[i].(int64); ok && c.DatabaseTypeName() == "BOOLEAN" {
				values[i] = n != 0
			}
		}
		if err := f(Row{t.Name, names, values}); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", t.Name, err)
	}
	return nil
}

// Last returns the last number that the database gave to a row of the table, or 0.
func (t Table) Last(ctx context.Context, q sqlx.QueryerContext, name string) (n int64, err error) {
	if !t.numbered {
		return 0, nil
	}
	query := `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = $1`
	if name == engine.PostgreSQL {
		query = `SELECT coalesce(pg_sequence_last_value(cast(pg_get_serial_sequence($1, 'seq') AS regclass)), 0)`
	}
	if err := sqlx.GetContext(ctx, q, &n, query, t.Name); err != nil {
		return 0, fmt.Errorf("read the numbers of %s: %w", t.Name, err)
	}
	return n, nil
}

// SetLast makes the database number new rows from n+1.
func (t Table) SetLast(ctx context.Context, tx *sqlx.Tx, name string, n int64) error {
	if !t.numbered || n == 0 {
		return nil
	}
	queries := []string{`DELETE FROM sqlite_sequence WHERE name = $1`, `INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)`}
	args := [][]any{{t.Name}, {t.Name, n}}
	if name == engine.PostgreSQL {
		queries = []string{`SELECT setval(cast(pg_get_serial_sequence($1, 'seq') AS regclass), $2)`}
		args = [][]any{{t.Name, n}}
	}
	for i, q := range queries {
		if _, err := tx.ExecContext(ctx, q, args[i]...); err != nil {
			return fmt.Errorf("number the rows of %s: %w", t.Name, err)
		}
	}
	return nil
}

// Inserter inserts rows, in the order of All. Close must be called after the last one.
type Inserter struct {
	tx     *sqlx.Tx
	copies bool // PostgreSQL, by COPY

	table string
	names []string
	stmt  *sqlx.Stmt
}

// NewInserter returns an Inserter on the engine of that name.
func NewInserter(tx *sqlx.Tx, name string) *Inserter {
	return &Inserter{tx: tx, copies: name == engine.PostgreSQL}
}

// Insert inserts a row.
func (i *Inserter) Insert(ctx context.Context, r Row) error {
	if r.Table != i.table || len(r.Names) != len(i.names) {
		if err := i.Close(ctx); err != nil {
			return err
		}
		if err := i.open(ctx, r); err != nil {
			return fmt.Errorf("write %s: %w", r.Table, err)
		}
	}
	if _, err := i.stmt.ExecContext(ctx, r.Values...); err != nil {
		return fmt.Errorf("write %s: %w", r.Table, err)
	}
	return nil
}

func (i *Inserter) open(ctx context.Context, r Row) (err error) {
	known := false
	for _, t := range All {
		known = known || t.Name == r.Table
	}
	for _, name := range r.Names {
		known = known && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
	}
	if !known {
		return fmt.Errorf("no table in the export has the columns %q", r.Names)
	}
	q := pq.CopyIn(r.Table, r.Names...)
	if !i.copies {
		q = "INSERT INTO " + r.Table + " (" + strings.Join(r.Names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(r.Names)-1) + ")"
	}
	i.table, i.names = r.Table, r.Names
	i.stmt, err = i.tx.PreparexContext(ctx, q)
	return err
}

// Close ends the writing of a table.
func (i *Inserter) Close(ctx context.Context) error {
	if i.stmt == nil {
		return nil
	}
	stmt := i.stmt
	i.stmt = nil
	if i.copies {
		if _, err := stmt.ExecContext(ctx); err != nil {
			return fmt.Errorf("write %s: %w", i.table, err)
		}
	}
	if err := stmt.Close(); err != nil {
		return fmt.Errorf("write %s: %w", i.table, err)
	}
	return nil
}

// Reference is a reference between tables that the database does not enforce.
type Reference struct {
	From, column string // of the referring rows
	To, key      string
	where        string // the referring rows that are meant
}

// References are all of them.
var References = []Reference{
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

// Dangling returns a sentence about the rows that refer to one that is not there.
func (r Reference) Dangling(ctx context.Context, q sqlx.QueryerContext) ([]string, error) {
	from := r.From + " a WHERE NOT EXISTS (SELECT 1 FROM " + r.To + " b WHERE b." + r.key + " = a." + r.column + ")"
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
	return []string{fmt.Sprintf("%d rows of %s have no row in %s: the first has %s = %d", found.N, r.From, r.To, r.column, *found.First)}, nil
}
