package store

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// retentionBatch and retentionBytes bound one transaction of retention, in
	// messages and in bytes of raw mail in rows, so that mail hardly waits for
	// it.
	retentionBatch = 32
	retentionBytes = 2 << 20
	// inboxPage is how many inboxes one read them takes.
	inboxPage = 500
)

// expireRead makes a message that was read look expired once its retention has
// ended, also before its content is deleted. What is still to be sent is kept.
func (s *Store) expireRead(m *Message) {
	if m.ExpiredAt != nil || m.Status == MessageQueued || m.Status == EmailScheduled {
		return
	}
	from, keep := m.CreatedAt, time.Duration(m.RetentionDays)*24*time.Hour
	if m.RetentionDays == 0 {
		keep = s.emailRetention
		if m.SettledAt != nil {
			from = *m.SettledAt
		}
	}
	if end := NewTime(from.Add(keep)); !s.now().Before(end.Time) {
		m.ExpiredAt, m.HasCode, m.HasLink = &end, false, false
	}
}

// Removed holds the results of a step of retention.
type Removed struct {
	Contents int // messages that lost their content
	Records  int // messages that are gone altogether
	Blobs    int
	Drafts   int // drafts that lost their content, or are gone
	// Last is the time of the last message that a step found, from which the next step
	// goes on. Add leaves it out.
	Last Time
}

// Add adds what another step deleted.
func (r *Removed) Add(other Removed) {
	r.Contents += other.Contents
	r.Records += other.Records
	r.Blobs += other.Blobs
	r.Drafts += other.Drafts
}

// Nothing reports whether a step found nothing to delete.
func (r Removed) Nothing() bool { return r == Removed{} }

// InboxesToExpire reads the next inboxes after the sequence number after,
// and returns those of them with content that retention is to delete, and the
// number to go on after; 0 when there are no more.
func (s *Store) InboxesToExpire(ctx context.Context, after int64) (due []int64, next int64, err error) {
	if may, err := s.mayDelete(ctx); !may {
		return nil, 0, err
	}
	const (
		last = `SELECT coalesce(max(seq), 0) FROM
			(SELECT seq FROM inboxes WHERE purged_at IS NULL AND seq > $1 ORDER BY seq LIMIT $2) page`
		// The oldest content is looked up inbox by inbox, by index.
		q = `SELECT seq FROM inboxes i WHERE i.seq > $1 AND i.seq <= $2 AND i.purged_at IS NULL AND (i.status = 'deleted'
			OR (SELECT m.created_at FROM messages m
				WHERE m.inbox_seq = i.seq AND m.created_at >= i.expired_to AND m.expired_at IS NULL
				ORDER BY m.created_at LIMIT 1) <= cast($3 AS bigint) - i.retention_days * 86400000000
			OR EXISTS (SELECT 1 FROM drafts d
				WHERE d.inbox_seq = i.seq AND d.expired_at IS NULL AND d.content_at <= cast($3 AS bigint) - i.retention_days * 86400000000))
			ORDER BY seq`
	)
	if err := s.read.GetContext(ctx, &next, last, after, inboxPage); err != nil {
		return nil, 0, s.wrap(err, "inboxes")
	}
	err = s.read.SelectContext(ctx, &due, q, after, next, s.now().UnixMicro())
	return due, next, s.wrap(err, "inboxes with old content")
}

// retentionInbox is an inbox that retention holds while it deletes.
type retentionInbox struct {
	Status        InboxStatus `db:"status"`
	RetentionDays int         `db:"retention_days"`
	ExpiredTo     Time        `db:"expired_to"`
	PurgedAt      *Time       `db:"purged_at"`
}

// ExpireInbox does one step of retention in an inbox, from a time on, in one short
// transaction: it deletes content that is older than the inbox keeps it, of
// messages and then of drafts, and of a deleted inbox everything. It returns nil when nothing is left to do. What a message
// that is still to be sent holds stays until its delivery has ended, and so
// does what someone else is changing at the moment. Steps that go on from Removed.Last do
// not read it again.
func (s *Store) ExpireInbox(ctx context.Context, inboxSeq int64, from Time) (Removed, error) {
	if may, err := s.mayDelete(ctx); !may {
		return Removed{}, err
	}
	const q = `SELECT status, retention_days, expired_to, purged_at FROM inboxes WHERE seq = $1`
	var gone Removed
	var blobs []string
	// The inbox is locked first, and of messages only those that are not locked:
	// no transaction waits while it has a lock, so none can deadlock.
	err := s.inTx(ctx, "expire mail", func(tx *sqlx.Tx) error {
		gone, blobs = Removed{}, nil
		var in retentionInbox
		err := tx.GetContext(ctx, &in, q+s.engine.LockRow(), inboxSeq)
		if err != nil || in.PurgedAt != nil {
			return err
		}
		if in.Status == InboxDeleted {
			gone, blobs, err = s.purgeInbox(ctx, tx, inboxSeq, from)
		} else {
			gone, blobs, err = s.expireContent(ctx, tx, inboxSeq, in, from)
		}
		return err
	})
	if err != nil {
		return Removed{}, err
	}
	gone.Blobs, err = s.removeUnnamed(ctx, blobs)
	return gone, err
}

// oldMessage is a message that retention deletes from.
type oldMessage struct {
	Seq       int64  `db:"seq"`
	ID        string `db:"id"`
	InboxSeq  int64  `db:"inbox_seq"`  // 0 of an email
	ThreadSeq int64  `db:"thread_seq"` // as the inbox
	Size      int64  `db:"size"`
	At        Time   `db:"at"` // from which retention counts
}

const (
	oldColumns = `m.seq, m.id, coalesce(m.inbox_seq, 0) AS inbox_seq, coalesce(m.thread_seq, 0) AS thread_seq, m.size,
		CASE WHEN m.inbox_seq IS NULL THEN coalesce(m.settled_at, m.created_at) ELSE m.created_at END AS at`
	// notWaiting leaves out what the queue still has to send.
	notWaiting = ` AND NOT EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = m.seq
		AND (r.next_attempt_at IS NOT NULL OR r.held_due IS NOT NULL OR r.stopped_due IS NOT NULL))`
)

// expireContent deletes old content of an inbox that is locked.
func (s *Store) expireContent(ctx context.Context, tx *sqlx.Tx, inboxSeq int64, in retentionInbox, from Time) (Removed, []string, error) {
	const q = `SELECT ` + oldColumns + ` FROM messages m
		WHERE m.inbox_seq = $1 AND m.created_at >= $2 AND m.created_at <= $3 AND m.expired_at IS NULL` + notWaiting + `
		ORDER BY m.created_at, m.seq LIMIT $4`
	now := s.now()
	until := NewTime(now.Add(-time.Duration(in.RetentionDays) * 24 * time.Hour))
	if from.Before(in.ExpiredTo.Time) {
		from = in.ExpiredTo
	}
	old, err := s.lockOld(ctx, tx, q, inboxSeq, from, until, retentionBatch)
	if err != nil {
		return Removed{}, nil, err
	}
	if len(old) == 0 {
		return s.expireDrafts(ctx, tx, inboxSeq, until)
	}
	blobs, err := s.removeContents(ctx, tx, old, NewTime(now))
	if err == nil {
		err = advanceExpiry(ctx, tx, inboxSeq)
	}
	return Removed{Contents: len(old), Last: old[len(old)-1].At}, blobs, err
}

// lockOld holds the messages that q selects, as many of them as one transaction
// may delete.
func (s *Store) lockOld(ctx context.Context, tx *sqlx.Tx, q string, args ...any) ([]oldMessage, error) {
	var old []oldMessage
	if err := tx.SelectContext(ctx, &old, q+s.engine.SkipLocked(), args...); err != nil {
		return nil, err
	}
	bytes := int64(0)
	for i, m := range old {
		if bytes += min(m.Size, RawInRow); bytes > retentionBytes && i > 0 {
			return old[:i], nil
		}
	}
	return old, nil
}

// advanceExpiry notes before which time nothing in the inbox has content: that
// of its oldest content, or without any, of its newest message. Messages come
// into an inbox in the order of their times.
func advanceExpiry(ctx context.Context, tx *sqlx.Tx, inboxSeq int64) error {
	const q = `UPDATE inboxes SET expired_to = coalesce(
			(SELECT m.created_at FROM messages m
			 WHERE m.inbox_seq = inboxes.seq AND m.created_at >= inboxes.expired_to AND m.expired_at IS NULL
			 ORDER BY m.created_at LIMIT 1),
			(SELECT max(m.created_at) FROM messages m WHERE m.inbox_seq = inboxes.seq), 0)
		WHERE seq = $1`
	_, err := tx.ExecContext(ctx, q, inboxSeq)
	return errIn("note what is expired", err)
}

// purgeInbox deletes all that lies under a deleted inbox, which is locked.
func (s *Store) purgeInbox(ctx context.Context, tx *sqlx.Tx, inboxSeq int64, from Time) (Removed, []string, error) {
	const (
		q = `SELECT ` + oldColumns + ` FROM messages m WHERE m.inbox_seq = $1 AND m.created_at >= $2` + notWaiting + `
			ORDER BY m.created_at, m.seq LIMIT $3`
		done = `UPDATE inboxes SET purged_at = $2
			WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.inbox_seq = inboxes.seq)`
	)
	now := NewTime(s.now())
	old, err := s.lockOld(ctx, tx, q, inboxSeq, from, retentionBatch)
	if err != nil {
		return Removed{}, nil, err
	}
	if len(old) == 0 {
		gone, blobs, err := s.purgeDrafts(ctx, tx, inboxSeq)
		if err == nil && gone.Nothing() {
			_, err = tx.ExecContext(ctx, done, inboxSeq, now)
		}
		return gone, blobs, errIn("end an inbox", err)
	}
	blobs, err := s.removeContents(ctx, tx, old, now)
	if err == nil {
		err = s.removeRecords(ctx, tx, old)
	}
	return Removed{Contents: len(old), Records: len(old), Last: old[len(old)-1].At}, blobs, err
}

// purgeDrafts deletes drafts of a deleted inbox, which is locked.
func (s *Store) purgeDrafts(ctx context.Context, tx *sqlx.Tx, inboxSeq int64) (Removed, []string, error) {
	const q = `SELECT seq FROM drafts WHERE inbox_seq = $1 ORDER BY seq LIMIT $2`
	var drafts []int64
	if err := tx.SelectContext(ctx, &drafts, q, inboxSeq, retentionBatch); err != nil || len(drafts) == 0 {
		return Removed{}, nil, err
	}
	blobs, err := s.dropDraftContents(ctx, tx, drafts)
	if err == nil {
		err = execIn(ctx, tx, `DELETE FROM drafts WHERE seq IN (?)`, drafts)
	}
	return Removed{Drafts: len(drafts)}, blobs, err
}

// ExpireRecords does one step of deleting, in one short transaction, what is
// left of messages and emails whose content went more than RecordTTL ago, and threads
// that have no message any more.
func (s *Store) ExpireRecords(ctx context.Context) (Removed, error) {
	if may, err := s.mayDelete(ctx); !may {
		return Removed{}, err
	}
	const q = `SELECT ` + oldColumns + ` FROM messages m WHERE m.expired_at <= $1 ORDER BY m.expired_at LIMIT $2`
	var gone Removed
	err := s.inTx(ctx, "delete old messages", func(tx *sqlx.Tx) error {
		gone = Removed{}
		old, err := s.lockOld(ctx, tx, q, NewTime(s.now().Add(-RecordTTL)), retentionBatch)
		if err != nil || len(old) == 0 {
			return err
		}
		gone.Records = len(old)
		return s.removeRecords(ctx, tx, old)
	})
	return gone, err
}

// dueDrafts are the drafts of an inbox with content from no later than a time.
const dueDrafts = `SELECT seq FROM drafts WHERE inbox_seq = $1 AND content_at <= $2 AND expired_at IS NULL ORDER BY content_at LIMIT $3`

// expireDrafts deletes the content of old drafts of an inbox that is locked, with
// the cached responses that show it. A pending one stays pending, but can no
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
	err = execIn(ctx, tx, emptyResponses+`(SELECT id FROM drafts WHERE seq IN (?))`, seqs)
	return blobs, errIn("empty cached responses", err)
}

// DeleteDrafts deletes some of the drafts whose content was deleted more than
// RecordTTL ago, and returns their number; 0 means that there were none.
func (s *Store) DeleteDrafts(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	return s.sweepBefore(ctx, "drafts", "seq", "expired_at", NewTime(s.now().Add(-RecordTTL)))
}

// ExpireEmails does one step of deleting, in one short transaction, the content of
// emails that were sent, failed or were cancelled longer ago than keep, from a time on.
// What is scheduled or still to be sent keeps its content; steps that go on from
// Removed.Last do not read it again.
func (s *Store) ExpireEmails(ctx context.Context, keep time.Duration, from Time) (Removed, error) {
	if may, err := s.mayDelete(ctx); !may {
		return Removed{}, err
	}
	const q = `SELECT ` + oldColumns + ` FROM messages m
		WHERE m.inbox_seq IS NULL AND m.expired_at IS NULL AND coalesce(m.settled_at, m.created_at) >= $1 AND coalesce(m.settled_at, m.created_at) <= $2
			AND m.status <> 'scheduled'` + notWaiting + `
		ORDER BY coalesce(m.settled_at, m.created_at) LIMIT $3`
	now := s.now()
	var gone Removed
	var blobs []string
	err := s.inTx(ctx, "expire emails", func(tx *sqlx.Tx) error {
		gone, blobs = Removed{}, nil
		old, err := s.lockOld(ctx, tx, q, from, NewTime(now.Add(-keep)), retentionBatch)
		if err != nil || len(old) == 0 {
			return err
		}
		gone.Contents, gone.Last = len(old), old[len(old)-1].At
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
