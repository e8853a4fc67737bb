package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// DeleteMessage deletes a message, content and record, and mends its thread;
// one without messages goes too. What is not yet delivered of an outbound
// message is not delivered any more. Drafts that were decided and hold the same
// content lose it; a pending one, whose mail is its own, does not.
func (s *Store) DeleteMessage(ctx context.Context, accountID int64, id string) error {
	const find = `SELECT m.seq, m.inbox_seq, i.id AS inbox_id
		FROM messages m JOIN inboxes i ON i.seq = m.inbox_seq
		WHERE m.account_id = $1 AND m.id = $2 AND i.status <> 'deleted'`
	var m Message
	if err := s.read.GetContext(ctx, &m, find, accountID, id); err != nil {
		return s.wrap(err, "message")
	}
	m.AccountID, m.ID = accountID, id
	var blobs []string
	err := s.inTx(ctx, "delete message", func(tx *sqlx.Tx) error {
		var err error
		blobs, err = s.deleteMessage(ctx, tx, m)
		return err
	})
	if err != nil {
		return err
	}
	s.unscrubbed.Store(true) // again: a scrub may have come before the commit
	if _, err := s.removeUnnamed(ctx, blobs); err != nil {
		s.log.WarnContext(ctx, "blob left to be swept", "message_id", id, "error", err)
	}
	s.changed([]topic{{topicInbox, m.InboxSeq}}, 1)
	return nil
}

// deleteMessage holds the rows in the order in which hot writes do: message,
// recipients, inbox.
func (s *Store) deleteMessage(ctx context.Context, tx *sqlx.Tx, m Message) (blobs []string, err error) {
	const (
		lock       = `SELECT ` + oldColumns + ` FROM messages m WHERE m.seq = $1`
		recipients = `DELETE FROM recipients WHERE message_seq = $1`
	)
	var old oldMessage
	if err := tx.GetContext(ctx, &old, lock+s.engine.LockRow(), m.Seq); err != nil {
		return nil, s.wrap(err, "message "+m.ID)
	}
	if _, err := tx.ExecContext(ctx, recipients, m.Seq); err != nil {
		return nil, errIn("recipients", err)
	}
	if _, err := s.lockInbox(ctx, tx, m.AccountID, m.InboxID); err != nil {
		return nil, err
	}
	blobs, err = s.removeContents(ctx, tx, []oldMessage{old}, NewTime(s.now()))
	if err != nil {
		return nil, err
	}
	if err := s.keepPlace(ctx, tx, old.Seq); err != nil {
		return nil, err
	}
	if err := s.removeRecords(ctx, tx, []oldMessage{old}); err != nil {
		return nil, err
	}
	files, err := s.dropDecidedDrafts(ctx, tx, m.ID)
	return append(blobs, files...), err
}

// dropDecidedDrafts deletes the contents of drafts that were made of a message,
// or that it was made of, unless they are pending.
func (s *Store) dropDecidedDrafts(ctx context.Context, tx *sqlx.Tx, messageID string) (blobs []string, err error) {
	const q = `SELECT seq FROM drafts
		WHERE status <> 'pending' AND expired_at IS NULL AND (message_id = $1 OR kind = 'forward' AND source_id = $1)`
	var seqs []int64
	if err := tx.SelectContext(ctx, &seqs, q, messageID); err != nil || len(seqs) == 0 {
		return nil, errIn("drafts", err)
	}
	blobs, err = s.dropDraftContents(ctx, tx, seqs)
	return blobs, errIn("contents of drafts", err)
}
