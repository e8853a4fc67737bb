package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// dueDrafts are the drafts of an inbox with content from no later than a time.
const dueDrafts = `SELECT seq FROM drafts WHERE inbox_seq = $1 AND content_at <= $2 AND expired_at IS NULL ORDER BY content_at LIMIT $3`

// expireDrafts deletes the content of old drafts of an inbox that is held, with
// the stored answers that show it. A pending one stays pending, but can no
// longer be sent.
func (s *Store) expireDrafts(ctx context.Context, tx *sqlx.Tx, inboxSeq int64, old Time) (Removed, []string, error) {
	var drafts []int64
	if err := tx.SelectContext(ctx, &drafts, dueDrafts, inboxSeq, old, retentionBatch); err != nil || len(drafts) == 0 {
		return Removed{}, nil, errIn("old drafts", err)
	}
	blobs, err := s.dropDraftContents(ctx, tx, drafts)
	return Removed{Drafts: len(drafts)}, blobs, err
}

// dropDraftContents deletes the contents of drafts and returns the keys of
// their blobs, for removeUnnamed after the commit.
func (s *Store) dropDraftContents(ctx context.Context, tx *sqlx.Tx, seqs []int64) ([]string, error) {
	s.unscrubbed.Store(true)
	// The rows of the drafts first, as everybody does who changes drafts.
	err := execIn(ctx, tx, `UPDATE drafts SET expired_at = ? WHERE expired_at IS NULL AND seq IN (?)`, NewTime(s.now()), seqs)
	if err != nil {
		return nil, errIn("mark drafts as expired", err)
	}
	var blobs []string
	err = selectIn(ctx, tx, &blobs, `SELECT blob_key FROM draft_contents WHERE blob_key IS NOT NULL AND draft_seq IN (?)`, seqs)
	if err != nil {
		return nil, errIn("blobs of drafts", err)
	}
	if err := execIn(ctx, tx, `DELETE FROM draft_contents WHERE draft_seq IN (?)`, seqs); err != nil {
		return nil, errIn("delete contents of drafts", err)
	}
	err = execIn(ctx, tx, `DELETE FROM idempotency WHERE resource_id IN (SELECT id FROM drafts WHERE seq IN (?))`, seqs)
	return blobs, errIn("delete stored answers", err)
}

// DeleteDrafts does one step of deleting drafts whose content has been gone for
// RecordLife, and returns how many went; 0 means that there were none.
func (s *Store) DeleteDrafts(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	const q = `DELETE FROM drafts WHERE seq IN (SELECT seq FROM drafts WHERE expired_at <= $1 ORDER BY expired_at LIMIT $2)`
	return s.sweep(ctx, "delete old drafts", q, NewTime(s.now().Add(-RecordLife)), sweepBatch)
}
