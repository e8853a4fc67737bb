package store

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// ExpireEmails does one step of deleting, in one short transaction, the content of
// emails that were sent, failed or were cancelled longer ago than keep. What is
// scheduled or still to be sent keeps its content.
func (s *Store) ExpireEmails(ctx context.Context, keep time.Duration) (Removed, error) {
	if may, err := s.mayDelete(ctx); !may {
		return Removed{}, err
	}
	const q = `SELECT ` + oldColumns + ` FROM messages m
		WHERE m.inbox_seq IS NULL AND m.expired_at IS NULL AND coalesce(m.settled_at, m.created_at) <= $1 AND m.status <> 'scheduled'` + notWaiting + `
		ORDER BY coalesce(m.settled_at, m.created_at) LIMIT $2`
	now := s.now()
	var gone Removed
	var blobs []string
	err := s.inTx(ctx, "expire emails", func(tx *sqlx.Tx) error {
		gone, blobs = Removed{}, nil
		old, err := s.holdOld(ctx, tx, q, NewTime(now.Add(-keep)), retentionBatch)
		if err != nil || len(old) == 0 {
			return err
		}
		gone.Contents = len(old)
		blobs, err = s.removeContents(ctx, tx, old, NewTime(now))
		return err
	})
	if err != nil {
		return Removed{}, err
	}
	gone.Blobs, err = s.removeUnnamed(ctx, blobs)
	return gone, err
}

// removeEmails deletes what only emails have, of those of the messages that are
// emails.
func removeEmails(ctx context.Context, tx *sqlx.Tx, seqs []int64) error {
	var found []struct {
		AccountID  int64        `db:"account_id"`
		MessageSeq int64        `db:"message_seq"`
		Tags       JSON[Labels] `db:"tags"`
	}
	const q = `DELETE FROM emails WHERE message_seq IN (?) RETURNING account_id, message_seq, tags`
	if err := selectIn(ctx, tx, &found, q, seqs); err != nil {
		return errIn("delete emails", err)
	}
	var w where
	var tags []string
	for _, e := range found {
		for name, value := range e.Tags.V {
			tags = append(tags, "(cast("+w.arg(e.AccountID)+" AS bigint), "+w.arg(name)+", "+w.arg(labelText(value))+", cast("+w.arg(e.MessageSeq)+" AS bigint))")
		}
	}
	if len(tags) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM email_tags WHERE (account_id, name, value, message_seq) IN (VALUES `+
		strings.Join(tags, ", ")+`)`, w.args...)
	return errIn("delete the tags of emails", err)
}
