// Package engine holds what SQLite and PostgreSQL do not share: connections,
// settings, locks, clocks, errors, and the few places where their SQL differs.
// All other SQL is written once, in the subset that both understand.
package engine

import (
	"context"
	"database/sql"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

// The names of the engines.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgresql"
)

// Engine is a database.
type Engine interface {
	// Name is SQLite or PostgreSQL.
	Name() string
	// Open connects. write is for changes and read for everything else; both may be
	// the same pool.
	Open(ctx context.Context) (write, read *sqlx.DB, err error)
	// Migrations returns the engine's migrations, and goose's name and options for
	// the engine.
	Migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error)
	// SnapshotLevel is the isolation at which a transaction reads the database as of one
	// moment.
	SnapshotLevel() sql.IsolationLevel
	// Alone reports whether one process owns the database.
	Alone() bool
	// Inspect reads the version and the state of the database.
	Inspect(ctx context.Context) (State, error)
	// EventLog and MessageLog read the state of the events and of the messages of
	// inboxes, which get their numbers before they are committed.
	EventLog(ctx context.Context) (LogState, error)
	MessageLog(ctx context.Context) (LogState, error)
	// Committed reports whether a transaction, by its name, has ended, and whether it
	// was committed.
	Committed(ctx context.Context, tx string) (known, committed bool, err error)
	// Fault classifies an error of the database.
	Fault(err error) Fault

	// Wrote reports that n changes were committed; a large one counts as several.
	// Other nodes are notified soon.
	Wrote(n int)
	// Follow calls look whenever another node may have changed something, until ctx
	// ends. It returns at once when there cannot be other nodes.
	Follow(ctx context.Context, log *slog.Logger, look func(context.Context) error)
	// Scrub removes deleted rows from files beside the database, and reports whether
	// it could.
	Scrub(ctx context.Context) (bool, error)
	// Check reads the whole database, and returns a sentence about each damage.
	Check(ctx context.Context) ([]string, error)
	// Close ends what the engine itself runs. It does not close the pools.
	Close() error

	Dialect
}

// Dialect is the SQL that differs.
type Dialect interface {
	// Reusable is a query for the bytes in the file of the database that deleted rows
	// left to new ones; empty where only the server knows.
	Reusable() string
	// Clock is an expression for the server's clock in microseconds; empty where the
	// node's is right.
	Clock() string
	// NextNumber is an expression for the next sequence number of a table.
	NextNumber(table string) string
	// TxName is an expression for the name of the transaction. It is empty when a failed
	// commit cannot have written anything.
	TxName() string
	// Text returns a query as it is best prepared.
	Text(query string) string
	// Placeholder is the nth parameter of a statement for many rows.
	Placeholder(n int) string
	// Lateral joins the matching rows of table to each row on its left. match is the
	// rest of a WHERE clause up to LIMIT. Rows are looked up one by one, by index,
	// whatever the planner knows about the table.
	Lateral(table, alias, match string) string
	// OneOf is the condition that column is in a list of numbers. The list is one
	// parameter, so one query serves lists of all lengths.
	OneOf(column, param string) string
	// Each is a query for the numbers of a list.
	Each(param string) string
	// List is the parameter for OneOf and Each.
	List(numbers []int64) string
	// LockRow is the clause that makes SELECT lock its rows until the transaction
	// ends.
	LockRow() string
	// KeepRow is the clause that makes SELECT keep its rows from deletion until the
	// transaction ends. Many transactions can keep a row.
	KeepRow() string
	// SkipLocked is the clause that makes SELECT lock its rows and skip those that
	// are locked.
	SkipLocked() string
}

// State is what Inspect returns.
type State struct {
	Version string
	Clock   *time.Time // nil when the database has no clock of its own
	LogSize int64      // of the write-ahead log in bytes; 0 when the server manages it
	Size    int64      // of the database in bytes, without that log
}

// LogState is the state of a table at one moment.
type LogState struct {
	Newest  int64    // the number of the newest row, or 0
	Last    int64    // the last number that was assigned; 0 where numbers never go back
	Writers []string // open transactions that may have a lower number than Newest
}

// New returns the engine for a database address, not yet connected. PostgreSQL
// must respond to each statement within timeout; 0 means that it has unlimited
// time and that its sessions keep the server's settings.
func New(database string, timeout time.Duration) Engine {
	if strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://") {
		return newPostgres(database, timeout)
	}
	return &sqliteEngine{path: database}
}
