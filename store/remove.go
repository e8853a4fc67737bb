package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// removeContents deletes all that is kept of what the messages say: raw, body,
// snippet, what was extracted, attachments, what the index knows, and the
// stored answers that repeat it. The messages are held. It returns the blobs
// that they named, for removeUnnamed after the commit.
func (s *Store) removeContents(ctx context.Context, tx *sqlx.Tx, old []oldMessage, now Time) ([]string, error) {
	s.unscrubbed.Store(true)
	seqs, ids := seqsOf(old), make([]string, len(old))
	for i, m := range old {
		ids[i] = m.ID
	}
	var blobs []string
	err := selectIn(ctx, tx, &blobs, `SELECT DISTINCT blob_key FROM contents WHERE blob_key IS NOT NULL AND message_seq IN (?)`, seqs)
	if err != nil {
		return nil, errIn("blobs of old messages", err)
	}
	if err := execIn(ctx, tx, `DELETE FROM contents WHERE message_seq IN (?)`, seqs); err != nil {
		return nil, errIn("delete contents", err)
	}
	if err := s.unindex(ctx, tx, seqs); err != nil {
		return nil, err
	}
	if err := execIn(ctx, tx, `DELETE FROM idempotency WHERE resource_id IN (?)`, ids); err != nil {
		return nil, errIn("delete stored answers", err)
	}
	err = execIn(ctx, tx, `UPDATE messages SET expired_at = ?, has_code = false, has_link = false WHERE seq IN (?)`, now, seqs)
	return blobs, errIn("mark as expired", err)
}

// removeRecords deletes messages that have no content any more, with their
// recipients and what was told of these, and takes them out of their threads.
// The messages are held. The events themselves stay: a listener may have had one
// of them last, and goes on from its place in the log.
func (s *Store) removeRecords(ctx context.Context, tx *sqlx.Tx, old []oldMessage) error {
	// As the index events_recipient has it: the others name nobody.
	const told = `UPDATE events SET data = '{}' WHERE message_seq IN (?) AND type NOT IN ('message.received', 'message.queued')`
	seqs := seqsOf(old)
	if err := execIn(ctx, tx, told, seqs); err != nil {
		return errIn("empty events of recipients", err)
	}
	if err := execIn(ctx, tx, `DELETE FROM recipients WHERE message_seq IN (?)`, seqs); err != nil {
		return errIn("delete recipients", err)
	}
	if err := removeEmails(ctx, tx, seqs); err != nil {
		return err
	}
	// While an inbox is held no mail joins its threads.
	threaded := slices.DeleteFunc(slices.Clone(old), func(m oldMessage) bool { return m.ThreadSeq == 0 })
	if len(threaded) > 0 {
		inboxes := rising(threaded, func(m oldMessage) int64 { return m.InboxSeq })
		var held []int64
		if err := selectIn(ctx, tx, &held, `SELECT seq FROM inboxes WHERE seq IN (?) ORDER BY seq`+s.engine.LockRow(), inboxes); err != nil {
			return errIn("hold inboxes", err)
		}
	}
	if err := execIn(ctx, tx, `DELETE FROM messages WHERE seq IN (?)`, seqs); err != nil || len(threaded) == 0 {
		return errIn("delete messages", err)
	}
	return shrinkThreads(ctx, tx, threaded)
}

// removeUnnamed deletes those of the blobs that no row names, after the transaction
// that forgot them, and returns how many. What fails here the sweep of blobs
// does later.
func (s *Store) removeUnnamed(ctx context.Context, keys []string) (int, error) {
	unnamed, err := s.unnamedBlobs(ctx, keys)
	if err != nil || len(unnamed) == 0 {
		return 0, err
	}
	if kept, err := s.blobsKept(ctx); err != nil || kept {
		return 0, err
	}
	for i, key := range unnamed {
		if err := s.blobs.Delete(ctx, key); err != nil {
			return i, fmt.Errorf("delete blob %s: %w", key, err)
		}
	}
	return len(unnamed), nil
}

// unnamedBlobs returns those of the keys that no row names.
func (s *Store) unnamedBlobs(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var named []string
	if err := selectIn(ctx, s.read, &named, `SELECT blob_key FROM contents WHERE blob_key IN (?)
		UNION SELECT blob_key FROM draft_contents WHERE blob_key IN (?)`, keys, keys); err != nil {
		return nil, s.wrap(err, "look for the rows of blobs")
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(named, key) }), nil
}

// Scrub removes what content that was deleted has left in the write-ahead log of
// SQLite. What it cannot do now, because readers use the log, it does when it is
// called again.
func (s *Store) Scrub(ctx context.Context) error {
	if !s.unscrubbed.Swap(false) {
		return nil
	}
	done, err := s.engine.Scrub(ctx)
	if !done {
		s.unscrubbed.Store(true)
	}
	return s.wrap(err, "empty the write-ahead log")
}

func seqsOf(ms []oldMessage) []int64 {
	return rising(ms, func(m oldMessage) int64 { return m.Seq })
}

// rising returns the different values of f in rising order.
func rising[T any, V cmp.Ordered](rows []T, f func(T) V) []V {
	vs := make([]V, len(rows))
	for i, r := range rows {
		vs[i] = f(r)
	}
	slices.Sort(vs)
	return slices.Compact(vs)
}

// execIn runs a statement in which the ? of a list stands for all of it.
func execIn(ctx context.Context, tx *sqlx.Tx, query string, args ...any) error {
	q, args, err := sqlx.In(query, args...)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(q), args...)
	return err
}

// selectIn reads rows by a query in which the ? of a list stands for all of it.
func selectIn(ctx context.Context, from sqlx.ExtContext, rows any, query string, args ...any) error {
	q, args, err := sqlx.In(query, args...)
	if err != nil {
		return err
	}
	return sqlx.SelectContext(ctx, from, rows, from.Rebind(q), args...)
}
