package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver

	"github.com/postroom/postroom/store/migrations"
)

func init() { //nolint:gochecknoinits // sqlx keeps its table of drivers in a global
	sqlx.BindDriver("sqlite", sqlx.DOLLAR)
}

// sqliteEngine is one file, one writer and many readers.
type sqliteEngine struct {
	path       string
	read       *sqlx.DB
	checkpoint *checkpointer
}

func (*sqliteEngine) Name() string { return SQLite }

// Open returns one connection for writes, so that writers wait in our own
// queue and never see SQLITE_BUSY, and a pool that cannot write for reads.
func (d *sqliteEngine) Open(ctx context.Context) (write, read *sqlx.DB, err error) {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the folder of the database: %w", err)
	}
	if err := makePrivate(d.path); err != nil {
		return nil, nil, fmt.Errorf("make the database: %w", err)
	}
	common := []string{
		"busy_timeout(30000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"temp_store(MEMORY)", checkpointAt, "journal_size_limit(67108864)",
	}
	// A larger cache costs more than it saves: a commit that moved pages about
	// walks through all of it. What is deleted is overwritten, also on pages that
	// become free, which secure_delete(FAST) does not overwrite.
	if write, err = d.connect(ctx, append(common, "cache_size(-8192)", "secure_delete(1)"), "&_txlock=immediate"); err != nil {
		return nil, nil, err
	}
	write.SetMaxOpenConns(1)
	write.SetMaxIdleConns(1)
	if read, err = d.connect(ctx, append(common, "cache_size(-8192)", "query_only(1)"), ""); err != nil {
		return nil, nil, errors.Join(err, write.Close())
	}
	beside, err := d.connect(ctx, append(common, "cache_size(-1024)"), "")
	if err != nil {
		return nil, nil, errors.Join(err, write.Close(), read.Close())
	}
	beside.SetMaxOpenConns(1)
	d.checkpoint = newCheckpointer(beside)
	readers := max(4, 2*runtime.NumCPU())
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	d.read = read
	return write, read, nil
}

// makePrivate makes an empty file for the user of this process alone, unless
// there is one: the folder may be one that others can read. SQLite gives the
// files that it makes beside it (-wal, -shm) the same mode.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func (d *sqliteEngine) connect(ctx context.Context, pragmas []string, more string) (*sqlx.DB, error) {
	q := url.Values{"_pragma": pragmas}
	dsn := "file:" + (&url.URL{Path: d.path}).EscapedPath() + "?" + q.Encode() + more
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.path, err)
	}
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", d.path, err), db.Close())
	}
	return db, nil
}

func (d *sqliteEngine) Migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error) {
	files, err := migrations.SQLite()
	return goose.DialectSQLite3, files, []goose.ProviderOption{goose.WithSessionLocker(&sqliteLocker{path: d.path})}, err
}

func (*sqliteEngine) SnapshotLevel() sql.IsolationLevel { return sql.LevelDefault }

func (*sqliteEngine) Alone() bool { return true }

func (d *sqliteEngine) Inspect(ctx context.Context) (State, error) {
	var state State
	if err := d.read.GetContext(ctx, &state.Version, `SELECT sqlite_version()`); err != nil {
		return state, err
	}
	file, err := os.Stat(d.path)
	if err != nil {
		return state, err
	}
	state.Size = file.Size()
	log, err := os.Stat(d.path + "-wal")
	switch {
	case err == nil:
		state.LogSize = log.Size()
	case !errors.Is(err, fs.ErrNotExist):
		return state, err
	}
	return state, nil
}

// Check stops at a thousand findings. A database that is damaged may not be readable at
// all: then the error is a finding.
func (d *sqliteEngine) Check(ctx context.Context) (found []string, err error) {
	db, err := d.connect(ctx, []string{"busy_timeout(30000)", "query_only(1)"}, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.SelectContext(ctx, &found, `PRAGMA integrity_check(1000)`)
	found = slices.DeleteFunc(found, func(line string) bool { return line == "ok" })
	if err == nil {
		var dangling []string
		err = db.SelectContext(ctx, &dangling, `SELECT 'row ' || coalesce(rowid, '') || ' of ' || "table" || ' refers to one in ' || parent || ' that is not there'
			FROM pragma_foreign_key_check LIMIT 1000`)
		found = append(found, dangling...)
	}
	if err != nil && ctx.Err() == nil {
		return append(found, err.Error()), nil
	}
	return found, err
}

func (*sqliteEngine) Clock() string { return "" }

// NextNumber relies on the one writer: no one else can take the number.
func (*sqliteEngine) NextNumber(table string) string {
	return `coalesce((SELECT seq FROM sqlite_sequence WHERE name = '` + table + `'), 0) + 1`
}

func (*sqliteEngine) TxName() string { return "''" }

// Committed is never called: no server stands between us and the file.
func (*sqliteEngine) Committed(context.Context, string) (known, committed bool, err error) {
	return true, false, nil
}

// Placeholder has no number: the driver looks numbers up one by one, from the
// first, for each parameter of each row.
func (*sqliteEngine) Placeholder(int) string { return "?" }

func (*sqliteEngine) Lateral(table, alias, match string) string {
	return fmt.Sprintf(`CROSS JOIN %[1]s %[2]s ON %[2]s.seq IN (SELECT seq FROM %[1]s WHERE %[3]s)`, table, alias, match)
}

func (*sqliteEngine) Reusable() string {
	return `SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size`
}

func (*sqliteEngine) OneOf(column, param string) string {
	return column + ` IN (SELECT value FROM json_each(` + param + `))`
}

func (*sqliteEngine) Each(param string) string { return `SELECT value FROM json_each(` + param + `)` }

func (*sqliteEngine) List(seqs []int64) string { return "[" + Numbers(seqs) + "]" }

func (*sqliteEngine) LockRow() string    { return "" }
func (*sqliteEngine) KeepRow() string    { return "" }
func (*sqliteEngine) SkipLocked() string { return "" }

// Text puts a sign before the parameters of LIMIT. SQLite plans for the number that
// is bound to such a parameter, and so compiles the query again for each call.
func (*sqliteEngine) Text(query string) string {
	return strings.ReplaceAll(query, "LIMIT $", "LIMIT +$")
}

func (d *sqliteEngine) EventLog(ctx context.Context) (LogState, error) { return d.log(ctx, "events") }

func (d *sqliteEngine) MessageLog(ctx context.Context) (LogState, error) {
	return d.log(ctx, "messages")
}

// log: one transaction writes at a time, so numbers appear in order.
func (d *sqliteEngine) log(ctx context.Context, table string) (LogState, error) {
	var log LogState
	err := d.read.GetContext(ctx, &log.Newest, `SELECT coalesce(max(seq), 0) FROM `+table)
	return log, err
}

// Wrote notifies no other node: one process writes the file.
func (d *sqliteEngine) Wrote(n int) { d.checkpoint.wrote(n) }

func (d *sqliteEngine) Scrub(ctx context.Context) (bool, error) { return d.checkpoint.truncate(ctx) }

func (*sqliteEngine) Follow(context.Context, *slog.Logger, func(context.Context) error) {}

func (d *sqliteEngine) Close() error { return d.checkpoint.close() }
