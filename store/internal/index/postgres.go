package index

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"
)

func (*postgresIndex) Key() string { return "message_seq" }

// Add writes the rows, whose words first go into a list beside the
// index, and then has that list sorted into the index at once: searches read
// through what is left in it.
func (d *postgresIndex) Add(ctx context.Context, tx *sqlx.Tx, docs []Doc) error {
	const sortIn = `SELECT gin_clean_pending_list(cast('search_index_words' AS regclass))`
	if len(docs) == 0 {
		return nil
	}
	var q strings.Builder
	q.WriteString(`INSERT INTO search_index (message_seq, words) VALUES `)
	args := make([]any, 0, 2*len(docs))
	for i, doc := range docs {
		if i > 0 {
			q.WriteString(", ")
		}
		q.WriteString("(" + d.db.Placeholder(2*i+1) + ", cast(" + d.db.Placeholder(2*i+2) + " AS tsvector))")
		args = append(args, doc.Seq, "'"+strings.Join(doc.Words, "' '")+"'")
	}
	if _, err := tx.ExecContext(ctx, q.String(), args...); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, sortIn)
	return err
}

// Merges: words that are gone go with the next VACUUM, as all that is
// deleted does.
func (*postgresIndex) Merges() bool { return false }

func (*postgresIndex) Merge(context.Context, *sqlx.Tx, int) (bool, error) { return false, nil }

func (*postgresIndex) Rewrite(context.Context, *sqlx.Tx, int) error { return nil }

func (*postgresIndex) Size(context.Context) (pages, deleted int64, err error) {
	return 0, 0, nil
}

// Find asks a function of ours (see the migrations): which way to go is not for
// the planner to guess.
func (d *postgresIndex) Find(ctx context.Context, q Query, below int64, n int) ([]int64, error) {
	const find = `SELECT search_find(cast(cast($1 AS text) AS tsquery), $2, $3)`
	var seqs []int64
	err := d.read.SelectContext(ctx, &seqs, find, q.text(`'`, " & ", " | "), below, n)
	return seqs, err
}
