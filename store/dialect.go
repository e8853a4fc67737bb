package store

import (
	"context"
	"io/fs"

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
	// committers is how many transactions of hot writes run side by side.
	committers() int

	// nextSeqs reserves n sequence numbers of table, in rising order.
	nextSeqs(ctx context.Context, tx *sqlx.Tx, table string, n int) ([]int64, error)
	// lockRow is the clause that makes SELECT hold its rows until the end of the
	// transaction.
	lockRow() string
	// skipLocked is the clause that makes SELECT hold its rows and pass over
	// those that others hold.
	skipLocked() string

	// isUnique says whether err is a violation of the unique constraint of
	// table over column.
	isUnique(err error, table, column string) bool
	// unavailable says whether err comes from a server that is away, stopping
	// or starting.
	unavailable(err error) bool
	// full says whether err means that there is no room on the disk.
	full(err error) bool

	// notify tells other nodes, soon, that something changed.
	notify()
	// listen calls changed whenever another node may have changed something,
	// until ctx ends. It returns nil at once when there are no other nodes.
	listen(ctx context.Context, changed func()) error
	// close frees what the dialect itself holds.
	close() error
}
