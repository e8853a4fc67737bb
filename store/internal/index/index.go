// Package index is the full-text index of messages: FTS5 on SQLite, a table with
// a GIN index on PostgreSQL. The messages of an account are spread over buckets,
// and each word is stored with its bucket, so that a search reads the newest
// messages first and no other account's.
package index

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Index is the full-text index of a database.
type Index interface {
	// Key is the column that holds the numbers of messages.
	Key() string
	// Add adds messages that the index does not hold.
	Add(ctx context.Context, tx *sqlx.Tx, docs []Doc) error
	// Find returns the numbers of at most n messages that match, below a number and
	// falling.
	Find(ctx context.Context, q Query, below int64, n int) ([]int64, error)

	// Merges reports whether the index has parts that the next three methods merge.
	Merges() bool
	// Merge merges parts, about so many pages, and reports whether it did anything.
	Merge(ctx context.Context, tx *sqlx.Tx, pages int) (done bool, err error)
	// Rewrite begins to merge the whole index. Merge continues it.
	Rewrite(ctx context.Context, tx *sqlx.Tx, pages int) error
	// Size returns the number of pages, and of deleted messages whose words are still
	// in the index.
	Size(ctx context.Context) (pages, deleted int64, err error)
}

// Doc is a message to be indexed.
type Doc struct {
	Seq   int64
	Words []string // with their bucket, none twice
}

// New returns the index of a database.
func New(db engine.Engine, read *engine.Reads) Index {
	if db.Name() == engine.PostgreSQL {
		return &postgresIndex{db, read}
	}
	return &sqliteIndex{read}
}

type postgresIndex struct {
	db   engine.Engine
	read *engine.Reads
}

type sqliteIndex struct{ read *engine.Reads }
