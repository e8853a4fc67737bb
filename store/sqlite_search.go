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

// find asks FTS5, which goes through the rows that match in the order that is
// asked for, and stops.
func (*sqliteDialect) find(ctx context.Context, db *sqlx.DB, q indexQuery, below int64, n int) ([]int64, error) {
	const find = `SELECT rowid FROM search_index WHERE search_index MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3`
	var seqs []int64
	err := db.SelectContext(ctx, &seqs, find, q.text(`"`, " AND ", " OR "), below, n)
	return seqs, err
}
