package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// ExpireDrafts does one step of retention, in one short transaction: it deletes
// the content of drafts that are past the retention of their inbox, or whose
// inbox is deleted, with the stored answers that show it. It returns how many
// there were; 0 means that none is left. A pending one stays pending, but can no
// longer be sent.
func (s *Store) ExpireDrafts(ctx context.Context) (int, error) {
	const due = `
		SELECT d.seq FROM drafts d JOIN inboxes i ON i.seq = d.inbox_seq
		 WHERE d.expired_at IS NULL AND (i.status = 'deleted' OR d.content_at <= cast($1 AS bigint) - i.retention_days * 86400000000)
		 LIMIT $2`
	var seqs []int64
	if err := s.read.SelectContext(ctx, &seqs, due, s.now().UnixMicro(), retentionBatch); err != nil {
		return 0, s.wrap(err, "expired drafts")
	}
	if len(seqs) == 0 {
		return 0, nil
	}
	var blobs []string
	err := s.inTx(ctx, "expire drafts", func(tx *sqlx.Tx) error {
		var err error
		blobs, err = s.dropDraftContents(ctx, tx, seqs)
		return err
	})
	if err != nil {
		return 0, err
	}
	_, err = s.removeUnnamed(ctx, blobs)
	return len(seqs), err
}

// dropDraftContents deletes the contents of drafts and returns the keys of
// their blobs, for removeUnnamed after the commit.
func (s *Store) dropDraftContents(ctx context.Context, tx *sqlx.Tx, seqs []int64) ([]string, error) {
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
	const q = `DELETE FROM drafts WHERE seq IN (SELECT seq FROM drafts WHERE expired_at <= $1 ORDER BY expired_at LIMIT $2)`
	return s.sweep(ctx, "delete old drafts", q, NewTime(s.now().Add(-RecordLife)), sweepBatch)
}
