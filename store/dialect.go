package store

import (
	"context"
	"io/fs"
	"log/slog"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

// dialect is all that SQLite and PostgreSQL do not share. SQL is written once,
// in what both speak; what differs has a method here and nowhere else.
type dialect interface {
	// name is "sqlite" or "postgresql".
	name() string
	// open connects: write is for changes, read for everything else, and they
	// may be the same pool.
	open(ctx context.Context) (write, read *sqlx.DB, err error)
	// migrations are the dialect's own files, and how goose calls the dialect.
	migrations() (goose.Dialect, fs.FS, []goose.ProviderOption, error)
	// alone says whether one process owns the database.
	alone() bool
	// inspect asks the database for what it is and how it is.
	inspect(ctx context.Context) (engineState, error)
	// committers is how many transactions of hot writes run side by side.
	committers() int

	// clock is an expression for the time in microseconds: that of the parameter,
	// or, where that is null, that of the server's clock.
	clock(param string) string
	// reserve is a query for sequence numbers: $1 rows of a message's and a
	// thread's, both rising, and the name of the transaction, which is empty
	// when a commit that failed surely wrote nothing.
	reserve() string
	// txName is an expression for the name of the transaction, as reserve gives
	// it.
	txName() string
	// committed says of a transaction, by its name, whether it has ended and how.
	committed(ctx context.Context, tx string) (known, committed bool, err error)
	// placeholder is how a statement made for many rows marks its nth parameter.
	placeholder(n int) string
	// bulkSizes are the numbers of rows that bulk inserts are prepared for,
	// falling and ending in 1.
	bulkSizes() []int
	// lateral joins, to each row on its left, the rows of table that match, which
	// is the rest of a WHERE clause up to the LIMIT. It is looked up row by row,
	// by index, whatever the planner thinks of the table's size.
	lateral(table, alias, match string) string
	// oneOf is the condition that column is one of the numbers of a list, which is
	// one parameter: there is one query for lists of every length.
	oneOf(column, param string) string
	// list is such a parameter.
	list(numbers []int64) string
	// lockRow is the clause that makes SELECT hold its rows until the end of the
	// transaction.
	lockRow() string
	// skipLocked is the clause that makes SELECT hold its rows and pass over
	// those that others hold.
	skipLocked() string

	// indexKey is the column of the full-text index that numbers the messages.
	indexKey() string
	// addIndexed adds messages to the full-text index, which does not hold them.
	addIndexed(ctx context.Context, tx *sqlx.Tx, docs []indexed) error
	// mergesIndex says whether the full-text index has parts that are to be merged
	// by the three methods that follow.
	mergesIndex() bool
	// mergeIndex merges parts of the full-text index, about so many pages of it, and
	// says whether it did anything.
	mergeIndex(ctx context.Context, tx *sqlx.Tx, pages int) (done bool, err error)
	// rewriteIndex begins to merge all of the full-text index, for mergeIndex to go
	// on with.
	rewriteIndex(ctx context.Context, tx *sqlx.Tx, pages int) error
	// indexSize returns how many pages the full-text index has, and how many deleted
	// messages still have words in it.
	indexSize(ctx context.Context) (pages, deleted int64, err error)
	// find returns the numbers, below one and in falling order, of at most n
	// messages that match.
	find(ctx context.Context, r *reads, q indexQuery, below int64, n int) ([]int64, error)

	// again says whether err is what the database answers to one of two
	// transactions that got in each other's way: a new try may pass.
	again(err error) bool
	// duplicate says whether err means that there is a row already with what no
	// two may have.
	duplicate(err error) bool
	// unavailable says whether err comes from a server that is away, stopping
	// or starting.
	unavailable(err error) bool
	// locked says whether err means that another transaction holds a row for longer
	// than this one may wait.
	locked(err error) bool
	// shortLocks is a statement that makes the transaction wait only briefly for
	// rows that others hold; empty when it never waits.
	shortLocks() string
	// cancelled says whether err means that the caller's context ended.
	cancelled(err error) bool
	// badText says whether err means that a text has bytes that the database
	// does not take.
	badText(err error) bool
	// full says whether err means that there is no room on the disk.
	full(err error) bool

	// eventLog is how the log of events is at this moment.
	eventLog(ctx context.Context) (logState, error)

	// wrote tells that n changes were committed: other nodes hear of it soon.
	wrote(n int)
	// scrub removes what deleted rows have left in files beside the database, and
	// says whether it could.
	scrub(ctx context.Context) (bool, error)
	// follow calls look whenever another node may have changed something, until ctx
	// ends. It returns at once when there can be no other nodes.
	follow(ctx context.Context, log *slog.Logger, look func(context.Context) error)
	// dump writes all of the database into a new file, and returns a view of the
	// same moment. What it has written it has read again.
	dump(ctx context.Context, path string) (view, error)
	// load fills the database, which must be empty, from such a file, all of it or
	// nothing, and runs a statement on it in the same transaction.
	load(ctx context.Context, path, then string) error

	// close frees what the dialect itself holds.
	close() error
}
