package store

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"
)

func (*sqliteDialect) indexKey() string { return "rowid" }

func (*sqliteDialect) addIndexed(ctx context.Context, tx *sqlx.Tx, docs []indexed) error {
	if len(docs) == 0 {
		return nil
	}
	add, err := tx.PrepareContext(ctx, `INSERT INTO search_index (rowid, words) VALUES (?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = add.Close() }() // its error is that of the inserts
	for _, d := range docs {
		if _, err := add.ExecContext(ctx, d.seq, strings.Join(d.words, " ")); err != nil {
			return err
		}
	}
	return nil
}

// mergeIndex: FTS5 only notes that a row is gone, and keeps its words until the
// segment that holds them is merged. A negative number of pages begins to merge
// all segments into one. That less than two rows changed means that there was
// nothing to do.
func (*sqliteDialect) mergeIndex(ctx context.Context, tx *sqlx.Tx, begin bool, pages int) (bool, error) {
	const (
		merge   = `INSERT INTO search_index (search_index, rank) VALUES ('merge', $1)`
		changes = `SELECT total_changes()`
	)
	var before, after int64
	if begin {
		pages = -pages
	}
	if err := tx.GetContext(ctx, &before, changes); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, merge, pages); err != nil {
		return false, err
	}
	if err := tx.GetContext(ctx, &after, changes); err != nil {
		return false, err
	}
	return after-before >= 2, nil
}

// find asks FTS5, which goes through the rows that match in the order that is
// asked for, and stops.
func (*sqliteDialect) find(ctx context.Context, r *reads, q indexQuery, below int64, n int) ([]int64, error) {
	const find = `SELECT rowid FROM search_index WHERE search_index MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3`
	var seqs []int64
	err := r.all(ctx, &seqs, find, q.text(`"`, " AND ", " OR "), below, n)
	return seqs, err
}
