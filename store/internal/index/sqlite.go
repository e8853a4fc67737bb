package index

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

func (*sqliteIndex) Key() string { return "rowid" }

func (*sqliteIndex) Add(ctx context.Context, tx *sqlx.Tx, docs []Doc) error {
	if len(docs) == 0 {
		return nil
	}
	add, err := tx.PrepareContext(ctx, `INSERT INTO search_index (rowid, words) VALUES (?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = add.Close() }() // its error is that of the inserts
	for _, d := range docs {
		if _, err := add.ExecContext(ctx, d.Seq, strings.Join(d.Words, " ")); err != nil {
			return err
		}
	}
	return nil
}

func (*sqliteIndex) Merges() bool { return true }

const mergeFTS = `INSERT INTO search_index (search_index, rank) VALUES ('merge', $1)`

// Merge lets FTS5 write some pages. A merge that has begun goes on, but
// FTS5 leaves it alone while another level has more segments and too few to
// merge; then a negative number puts all of them into one merge.
func (d *sqliteIndex) Merge(ctx context.Context, tx *sqlx.Tx, pages int) (bool, error) {
	index, err := readStructure(ctx, tx)
	if err != nil || !index.wantsMerge() {
		return false, err
	}
	changed, err := changesOf(ctx, tx, mergeFTS, pages)
	if err == nil && changed < 2 && index.merging() {
		return true, d.Rewrite(ctx, tx, pages)
	}
	return changed >= 2, err
}

// Rewrite begins to merge all segments into one. FTS5 only notes that a row
// is deleted, and keeps its words until the segment that holds them is merged.
func (*sqliteIndex) Rewrite(ctx context.Context, tx *sqlx.Tx, pages int) error {
	_, err := tx.ExecContext(ctx, mergeFTS, -pages)
	return err
}

func (d *sqliteIndex) Size(ctx context.Context) (pages, deleted int64, err error) {
	index, err := readStructure(ctx, d.read.DB)
	if err != nil {
		return 0, 0, err
	}
	pages, deleted = index.sum()
	return pages, deleted, nil
}

// readStructure reads the structure record, which FTS5 keeps under the number
// 10.
func readStructure(ctx context.Context, from sqlx.QueryerContext) (ftsStructure, error) {
	var record []byte
	err := sqlx.GetContext(ctx, from, &record, `SELECT block FROM search_index_data WHERE id = 10`)
	if err != nil {
		return nil, fmt.Errorf("read the structure of the index: %w", err)
	}
	return parseStructure(record)
}

// changesOf runs a statement and returns how many rows it changed, in tables of
// FTS5 too: less than two mean that a merge had nothing to do.
func changesOf(ctx context.Context, tx *sqlx.Tx, q string, args ...any) (int64, error) {
	const changes = `SELECT total_changes()`
	var before, after int64
	if err := tx.GetContext(ctx, &before, changes); err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, q, args...); err != nil {
		return 0, err
	}
	err := tx.GetContext(ctx, &after, changes)
	return after - before, err
}

// Find asks FTS5, which goes through the rows that match in the order that is
// asked for, and stops.
func (d *sqliteIndex) Find(ctx context.Context, q Query, below int64, n int) ([]int64, error) {
	const find = `SELECT rowid FROM search_index WHERE search_index MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3`
	var seqs []int64
	err := d.read.SelectContext(ctx, &seqs, find, q.text(`"`, " AND ", " OR "), below, n)
	return seqs, err
}
