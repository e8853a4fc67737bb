// Package index is the full-text index of messages: FTS5 on SQLite, a table with
// a GIN index on PostgreSQL. The messages of an account are spread over buckets,
// and each word is stored with its bucket, so that a search reads the newest
// messages first and no other account's.
package index

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Index is the full-text index of a database.
type Index struct {
	language
	db        engine.Engine
	read      *engine.Reads
	rewriting atomic.Bool // the whole index is being merged
}

// language is what the databases say differently.
type language struct {
	Key            string // the column that holds the numbers of messages
	word           string // stands around each word of a message
	words          string // makes a parameter the words of a message
	added          string // runs after messages were added, unless it is empty
	quote, and, or string // of a query
	find           string // finds the messages of a query, below a number and falling
}

var sqlite = language{
	Key: "rowid", words: "$", quote: `"`, and: " AND ", or: " OR ",
	find: `SELECT rowid FROM search_index WHERE search_index MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3`,
}

var postgres = language{
	Key: "message_seq", word: "'", words: "cast($ AS tsvector)", quote: "'", and: " & ", or: " | ",
	// New words go into a list beside the index, which searches read through. So it is
	// sorted into the index at once.
	added: `SELECT gin_clean_pending_list(cast('search_index_words' AS regclass))`,
	// A function of ours (see the migrations): the planner guesses badly here.
	find: `SELECT search_find(cast(cast($1 AS text) AS tsquery), $2, $3)`,
}

// New returns the index of a database.
func New(db engine.Engine, read *engine.Reads) *Index {
	x := &Index{language: sqlite, db: db, read: read}
	if db.Name() == engine.PostgreSQL {
		x.language = postgres
	}
	return x
}

// Doc is a message to be indexed.
type Doc struct {
	Seq   int64
	Words []string // with their bucket, none twice
}

// Add adds messages that the index does not hold.
func (x *Index) Add(ctx context.Context, tx *sqlx.Tx, docs []Doc) error {
	if len(docs) == 0 {
		return nil
	}
	var rows []string
	var args []any
	for _, d := range docs {
		args = append(args, d.Seq, x.word+strings.Join(d.Words, x.word+" "+x.word)+x.word)
		words := strings.Replace(x.words, "$", x.db.Placeholder(len(args)), 1)
		rows = append(rows, "("+x.db.Placeholder(len(args)-1)+", "+words+")")
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO search_index (`+x.Key+`, words) VALUES `+strings.Join(rows, ", "), args...)
	if err == nil && x.added != "" {
		_, err = tx.ExecContext(ctx, x.added)
	}
	return err
}

// Find returns the numbers of at most n messages that match, below a number and
// falling.
func (x *Index) Find(ctx context.Context, q Query, below int64, n int) (seqs []int64, err error) {
	return seqs, x.read.SelectContext(ctx, &seqs, x.find, q.text(x.language), below, n)
}

// Merges reports whether the index has parts to merge. On PostgreSQL words that are gone
// go with the next VACUUM, as all that is deleted does.
func (x *Index) Merges() bool { return x.db.Name() == engine.SQLite }

const mergeFTS = `INSERT INTO search_index (search_index, rank) VALUES ('merge', $1)`

// Merge merges parts, about so many pages, and reports whether it did anything.
func (x *Index) Merge(ctx context.Context, tx *sqlx.Tx, pages int) (bool, error) {
	done, err := merge(ctx, tx, pages)
	if err == nil && !done && x.rewriting.Load() {
		// FTS5 leaves a merge that has begun alone while another level has more segments
		// and too few to merge. A negative number puts all of them into one merge.
		done, err = merge(ctx, tx, -pages)
		x.rewriting.Store(done)
	}
	return done, err
}

// merge lets FTS5 merge, and reports whether it did: as FTS5 documents, less than two
// changes mean that it had nothing to do.
func merge(ctx context.Context, tx *sqlx.Tx, pages int) (bool, error) {
	const changes = `SELECT total_changes()`
	var before, after int64
	if err := tx.GetContext(ctx, &before, changes); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, mergeFTS, pages); err != nil {
		return false, err
	}
	err := tx.GetContext(ctx, &after, changes)
	return after-before >= 2, err
}

// Rewrite begins to merge all parts into one. Merge continues it. FTS5 only notes that
// a row is deleted, and keeps its words until the part that holds them is merged.
func (x *Index) Rewrite(ctx context.Context, tx *sqlx.Tx, pages int) error {
	x.rewriting.Store(true)
	_, err := tx.ExecContext(ctx, mergeFTS, -pages)
	return err
}

// Outdated reports whether words of deleted messages are still in the index, and whether
// it has more than so many pages. FTS5 keeps what it notes of deleted rows in pages with
// numbers from 1 << 53 on.
func (x *Index) Outdated(ctx context.Context, pages int) (outdated, large bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM search_index_data WHERE id >= 9007199254740992) AS outdated,
		(SELECT count(*) FROM (SELECT 1 FROM search_index_data LIMIT $1 + 1)) > $1 AS large`
	var is struct {
		Outdated bool `db:"outdated"`
		Large    bool `db:"large"`
	}
	err = x.read.GetContext(ctx, &is, q, pages)
	return is.Outdated, is.Large, err
}
