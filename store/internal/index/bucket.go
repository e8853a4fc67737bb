package index

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/jmoiron/sqlx"
)

// ErrSwept means that a bucket was removed while it was filled.
var ErrSwept = errors.New("the bucket of the index is gone")

// Bucket is a part of the index: messages of one account.
type Bucket struct {
	Seq       int64 `db:"seq"`
	AccountID int64 `db:"account_id"`
	// The numbers of the messages lie between these two. They overlap with those of
	// another bucket only when several nodes stored messages at the same time.
	Oldest   int64 `db:"oldest"`
	Newest   int64 `db:"newest"`
	Messages int64 `db:"messages"`
}

const bucketColumns = `seq, account_id, oldest, newest, messages`

func (b Bucket) word(folded string) string { return strconv.FormatInt(b.Seq, 36) + "." + folded }
func (b Bucket) mark(mark string) string   { return strconv.FormatInt(b.Seq, 36) + "-" + mark }

// Add adds a message to the bucket and returns what is indexed for it.
func (b *Bucket) Add(seq int64, folded, marks []string) Doc {
	b.Oldest, b.Newest, b.Messages = min(b.Oldest, seq), max(b.Newest, seq), b.Messages+1
	d := Doc{seq, make([]string, 0, len(folded)+len(marks))}
	for _, w := range folded {
		d.Words = append(d.Words, b.word(w))
	}
	for _, m := range marks {
		d.Words = append(d.Words, b.mark(m))
	}
	return d
}

// OpenBucket returns the bucket of an account that takes messages: the newest one
// or, when that holds size messages, a new one. A new one begins with the newest
// number of the one before, so that it sorts first.
func OpenBucket(ctx context.Context, tx *sqlx.Tx, accountID, size int64) (*Bucket, error) {
	const (
		last = `SELECT ` + bucketColumns + ` FROM search_buckets WHERE account_id = $1 ORDER BY newest DESC, seq DESC LIMIT 1`
		add  = `INSERT INTO search_buckets (account_id, oldest, newest, messages) VALUES ($1, $2, $3, 0) RETURNING ` + bucketColumns
	)
	var found []Bucket
	if err := tx.SelectContext(ctx, &found, last, accountID); err != nil {
		return nil, err
	}
	var newest int64
	if len(found) == 1 {
		if found[0].Messages < size {
			return &found[0], nil
		}
		newest = found[0].Newest
	}
	var b Bucket
	return &b, tx.GetContext(ctx, &b, add, accountID, int64(math.MaxInt64), newest)
}

// Save writes the bucket. It returns ErrSwept when the bucket was removed meanwhile.
func (b *Bucket) Save(ctx context.Context, tx *sqlx.Tx) error {
	const q = `UPDATE search_buckets SET oldest = $2, newest = $3, messages = $4 WHERE seq = $1`
	res, err := tx.ExecContext(ctx, q, b.Seq, b.Oldest, b.Newest, b.Messages)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, ErrSwept)
	}
	return nil
}
