package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
			OR (SELECT d.content_at FROM drafts d WHERE d.inbox_seq = i.seq AND d.expired_at IS NULL
				ORDER BY d.content_at LIMIT 1) <= cast($3 AS bigint) - i.retention_days * 86400000000)
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
// messages and then of drafts, and of a deleted inbox everything. Nothing is removed when
// nothing is left to do. What a message that is still to be sent holds stays until its
// delivery has ended, and so does what someone else is changing at the moment. Steps that
// go on from Removed.Last do not read it again.
func (s *Store) ExpireInbox(ctx context.Context, inboxSeq int64, from Time) (Removed, error) {
	const q = `SELECT status, retention_days, expired_to, purged_at FROM inboxes WHERE seq = $1`
	// The inbox is locked first, and of messages only those that are not locked:
	// no transaction waits while it has a lock, so none can deadlock.
	return s.retain(ctx, "expire mail", func(tx *sqlx.Tx) (Removed, []string, error) {
		var in retentionInbox
		err := tx.GetContext(ctx, &in, q+s.engine.LockRow(), inboxSeq)
		switch {
		case err != nil || in.PurgedAt != nil:
			return Removed{}, nil, err
		case in.Status == InboxDeleted:
			return s.purgeInbox(ctx, tx, inboxSeq, from)
		}
		return s.expireContent(ctx, tx, inboxSeq, in, from)
	})
}

// retain runs a step of retention in a transaction, and then deletes the blobs whose keys
// the step returns.
func (s *Store) retain(ctx context.Context, what string, step func(*sqlx.Tx) (Removed, []string, error)) (gone Removed, err error) {
	if may, err := s.mayDelete(ctx); !may {
		return Removed{}, err
	}
	blobs, err := transact(ctx, s, what, func(tx *sqlx.Tx) (blobs []string, err error) {
		gone, blobs, err = step(tx)
		return blobs, err
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
	until := NewTime(s.now().Add(-time.Duration(in.RetentionDays) * 24 * time.Hour))
	if from.Before(in.ExpiredTo.Time) {
		from = in.ExpiredTo
	}
	gone, blobs, err := s.removeOld(ctx, tx, true, false, q, inboxSeq, from, until, retentionBatch)
	switch {
	case err != nil:
		return gone, nil, err
	case gone.Nothing():
		return s.removeDrafts(ctx, tx, false, dueDrafts, inboxSeq, until, retentionBatch)
	}
	return gone, blobs, advanceExpiry(ctx, tx, inboxSeq)
}

// removeOld deletes the contents, the records, or both, of messages that q selects: of as
// many as one transaction may. It returns the keys of their blobs.
func (s *Store) removeOld(ctx context.Context, tx *sqlx.Tx, contents, records bool, q string, args ...any) (gone Removed, blobs []string, err error) {
	old, err := s.lockOld(ctx, tx, q, args...)
	if err != nil || len(old) == 0 {
		return Removed{}, nil, err
	}
	if contents {
		gone.Contents, gone.Last = len(old), old[len(old)-1].At
		if blobs, err = s.removeContents(ctx, tx, old, NewTime(s.now())); err != nil {
			return Removed{}, nil, err
		}
	}
	if records {
		gone.Records = len(old)
		err = s.removeRecords(ctx, tx, old)
	}
	return gone, blobs, err
}

// lockOld holds the messages that q selects, as many of them as one transaction
// may delete.
func (s *Store) lockOld(ctx context.Context, tx *sqlx.Tx, q string, args ...any) ([]oldMessage, error) {
	old, err := getAll[oldMessage](ctx, tx, q+s.engine.SkipLocked(), args...)
	bytes := int64(0)
	for i, m := range old {
		if bytes += min(m.Size, RawInRow); bytes > retentionBytes && i > 0 {
			return old[:i], err
		}
	}
	return old, err
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
		drafts = `SELECT seq FROM drafts WHERE inbox_seq = $1 ORDER BY seq LIMIT $2`
		done   = `UPDATE inboxes SET purged_at = $2
			WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.inbox_seq = inboxes.seq)`
	)
	gone, blobs, err := s.removeOld(ctx, tx, true, true, q, inboxSeq, from, retentionBatch)
	if err == nil && gone.Nothing() {
		gone, blobs, err = s.removeDrafts(ctx, tx, true, drafts, inboxSeq, retentionBatch)
	}
	if err == nil && gone.Nothing() {
		_, err = tx.ExecContext(ctx, done, inboxSeq, NewTime(s.now()))
	}
	return gone, blobs, errIn("purge an inbox", err)
}

// ExpireRecords does one step of deleting, in one short transaction, what is
// left of messages and emails whose content went more than RecordTTL ago, and threads
// that have no message any more.
func (s *Store) ExpireRecords(ctx context.Context) (Removed, error) {
	const q = `SELECT ` + oldColumns + ` FROM messages m WHERE m.expired_at <= $1 ORDER BY m.expired_at LIMIT $2`
	return s.retain(ctx, "delete old messages", func(tx *sqlx.Tx) (Removed, []string, error) {
		return s.removeOld(ctx, tx, false, true, q, NewTime(s.now().Add(-RecordTTL)), retentionBatch)
	})
}

// dueDrafts are the drafts of an inbox with content from no later than a time.
const dueDrafts = `SELECT seq FROM drafts WHERE inbox_seq = $1 AND content_at <= $2 AND expired_at IS NULL ORDER BY content_at LIMIT $3`

// removeDrafts deletes the content of the drafts that q selects, with the cached responses
// that show it, and the drafts too if records is true. A pending one whose content is
// deleted stays pending, but can no longer be sent.
func (s *Store) removeDrafts(ctx context.Context, tx *sqlx.Tx, records bool, q string, args ...any) (Removed, []string, error) {
	var drafts []int64
	if err := tx.SelectContext(ctx, &drafts, q, args...); err != nil || len(drafts) == 0 {
		return Removed{}, nil, errIn("old drafts", err)
	}
	blobs, err := s.dropDraftContents(ctx, tx, drafts)
	if err == nil && records {
		err = execIn(ctx, tx, `DELETE FROM drafts WHERE seq IN (?)`, drafts)
	}
	return Removed{Drafts: len(drafts)}, blobs, err
}

// dropDraftContents deletes the contents of drafts and returns the keys of
// their blobs, for removeUnnamed after the commit.
func (s *Store) dropDraftContents(ctx context.Context, tx *sqlx.Tx, seqs []int64) (blobs []string, err error) {
	s.unscrubbed.Store(true)
	// The rows of the drafts first, as everybody does who changes drafts.
	err = execIn(ctx, tx, `UPDATE drafts SET expired_at = ? WHERE expired_at IS NULL AND seq IN (?)`, NewTime(s.now()), seqs)
	if err == nil {
		err = selectIn(ctx, tx, &blobs, `SELECT blob_key FROM draft_contents WHERE blob_key IS NOT NULL AND draft_seq IN (?)`, seqs)
	}
	for _, q := range []string{
		`DELETE FROM draft_contents WHERE draft_seq IN (?)`, emptyResponses + `(SELECT id FROM drafts WHERE seq IN (?))`,
	} {
		if err == nil {
			err = execIn(ctx, tx, q, seqs)
		}
	}
	return blobs, errIn("delete contents of drafts", err)
}

// ExpireEmails does one step of deleting, in one short transaction, the content of
// emails that were sent, failed or were cancelled longer ago than keep, from a time on.
// What is scheduled or still to be sent keeps its content; steps that go on from
// Removed.Last do not read it again.
func (s *Store) ExpireEmails(ctx context.Context, keep time.Duration, from Time) (Removed, error) {
	const q = `SELECT ` + oldColumns + ` FROM messages m
		WHERE m.inbox_seq IS NULL AND m.expired_at IS NULL AND coalesce(m.settled_at, m.created_at) >= $1 AND coalesce(m.settled_at, m.created_at) <= $2
			AND m.status <> 'scheduled'` + notWaiting + `
		ORDER BY coalesce(m.settled_at, m.created_at) LIMIT $3`
	return s.retain(ctx, "expire emails", func(tx *sqlx.Tx) (Removed, []string, error) {
		return s.removeOld(ctx, tx, true, false, q, from, NewTime(s.now().Add(-keep)), retentionBatch)
	})
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

const (
	// sweepBatch is how many rows one transaction of a sweep deletes.
	sweepBatch = 500
	// sweepLook is how many rows of a log a sweep reads.
	sweepLook = 20_000
)

// sweep says which rows of a table go when they are old.
type sweep struct {
	keep   time.Duration
	column string // of the time that keep counts from; it has an index
	key    string // the columns of the primary key; of a log, which has no index by time, ""
	and    string // a further condition

	step func(*Store, context.Context) (int, error) // replaces all of the above
}

// sweepOf are the sweeps by the names of their tables.
var sweepOf = map[string]sweep{
	"api_requests":       {keep: JournalTTL},
	"codes_taken":        {keep: takenCodeTTL, column: "created_at", key: "account_id, caller, message_id"},
	"correspondents":     {step: (*Store).sweepCorrespondents},
	"daily_counts":       {step: (*Store).sweepCounts},
	"deleted_messages":   {keep: DeletedTTL, column: "deleted_at", key: "id"},
	"drafts":             {keep: RecordTTL, column: "expired_at", key: "seq"},
	"events":             {step: (*Store).sweepEvents},
	"idempotency":        {keep: CachedResponseTTL, column: "created_at", key: "account_id, operation, key"},
	"mail_policies":      {column: "expires_at", key: "domain"},
	"oauth_grants":       {step: (*Store).sweepGrants},
	"search_buckets":     {step: (*Store).sweepIndex},
	"sends":              {keep: 2 * day, column: "at", key: "account_id, scope, n", and: " AND NOT first"}, // the first say who is not new
	"session_notes":      {column: "expires_at", key: "session_hash, subject"},
	"smtp_refusals":      {keep: JournalTTL},
	"webhook_deliveries": {step: (*Store).sweepDeliveries},
}

// Sweeps are the names of what Sweep deletes.
func Sweeps() []string { return slices.Sorted(maps.Keys(sweepOf)) }

// Sweep deletes some of what is old of one of Sweeps, in a short transaction, and returns
// how many rows; 0 means that there were none.
func (s *Store) Sweep(ctx context.Context, name string) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	switch is := sweepOf[name]; {
	case is.step != nil:
		return is.step(s, ctx)
	case is.key == "":
		return s.sweepLog(ctx, name, is.keep, "")
	default:
		return s.sweepBefore(ctx, name, is, NewTime(s.now().Add(-is.keep)))
	}
}

// sweepBefore deletes the oldest rows of a table, at most sweepBatch, whose column is not
// after a time.
func (s *Store) sweepBefore(ctx context.Context, table string, is sweep, until any) (int, error) {
	q := fmt.Sprintf(`DELETE FROM %s WHERE (%s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s <= $1%s ORDER BY %[3]s LIMIT $2)`,
		table, is.key, is.column, is.and)
	return s.exec(ctx, "sweep "+table, q, until, sweepBatch)
}

// sweepCorrespondents deletes those who wrote too long ago and, of an account with too many that
// has received mail lately, those who wrote on fewest days and longest ago.
func (s *Store) sweepCorrespondents(ctx context.Context) (int, error) {
	is := sweep{column: "used_at", key: "account_id, address"}
	n, err := s.sweepBefore(ctx, "correspondents", is, NewTime(s.now().Add(-correspondentTTL)))
	if n > 0 || err != nil {
		return n, err
	}
	const (
		full = `SELECT account_id, count(*) - $2 AS n FROM correspondents WHERE account_id IN
			(SELECT account_id FROM (SELECT account_id FROM correspondents ORDER BY used_at DESC LIMIT $1) n)
			GROUP BY account_id HAVING count(*) > $2 LIMIT 1`
		q = `DELETE FROM correspondents WHERE (account_id, address) IN (SELECT account_id, address FROM correspondents
			WHERE account_id = $1 ORDER BY days, used_at LIMIT $2)`
	)
	var most []struct {
		AccountID int64 `db:"account_id"`
		N         int   `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &most, full, sweepLook, maxCorrespondents); err != nil || len(most) == 0 {
		return 0, s.wrap(err, "sweep correspondents")
	}
	return s.exec(ctx, "sweep correspondents", q, most[0].AccountID, min(most[0].N, sweepLook))
}

// sweepLog deletes rows of a log that are older than keep and meet a further condition.
// The log has no index by time, so the sweep reads its first rows. It does not stop at one
// that is not old, because a node whose clock was ahead may have written many.
func (s *Store) sweepLog(ctx context.Context, table string, keep time.Duration, and string) (int, error) {
	q := fmt.Sprintf(`SELECT seq FROM (SELECT seq, created_at FROM %s ORDER BY seq LIMIT %d) l WHERE created_at <= $1%s ORDER BY seq LIMIT %d`,
		table, sweepLook, and, sweepBatch)
	old, err := readAll[int64](ctx, s, "sweep "+table, q, NewTime(s.now().Add(-keep)))
	if err != nil || len(old) == 0 {
		return 0, err
	}
	return s.exec(ctx, "sweep "+table, `DELETE FROM `+table+` WHERE `+s.engine.OneOf("seq", "$1"), s.engine.List(old))
}

// execRepeatedly repeats a statement until it changes no more rows, and returns how many
// it has changed. Each time is a short transaction of its own.
func (s *Store) execRepeatedly(ctx context.Context, what, q string, args ...any) (all int64, err error) {
	for {
		n, err := s.exec(ctx, what, q, args...)
		if all += int64(n); n == 0 || err != nil {
			return all, err
		}
	}
}

// removeContents deletes all that is kept of what the messages say: raw, body,
// snippet, what was extracted, attachments, what the index knows, and the
// cached responses that repeat it. The messages are locked. It returns the blobs
// that they named, for removeUnnamed after the commit.
func (s *Store) removeContents(ctx context.Context, tx *sqlx.Tx, old []oldMessage, now Time) (blobs []string, err error) {
	s.unscrubbed.Store(true)
	seqs, ids := seqsOf(old), each(old, func(m oldMessage) string { return m.ID })
	err = selectIn(ctx, tx, &blobs, `SELECT DISTINCT blob_key FROM contents WHERE blob_key IS NOT NULL AND message_seq IN (?)`, seqs)
	if err == nil {
		err = execIn(ctx, tx, `DELETE FROM contents WHERE message_seq IN (?)`, seqs)
	}
	if err == nil {
		err = s.unindex(ctx, tx, seqs)
	}
	if err == nil {
		err = execIn(ctx, tx, emptyResponses+`(?)`, ids)
	}
	if err == nil {
		err = execIn(ctx, tx, `UPDATE messages SET expired_at = ?, has_code = false, has_link = false, next_attempt_at = NULL, leased = false
			WHERE seq IN (?)`, now, seqs)
	}
	return blobs, errIn("delete contents", err)
}

// removeRecords deletes messages that have no content any more, with their
// recipients and what was notified of these, and takes them out of their threads.
// The messages are locked. The events themselves stay: a listener may have had one
// of them last, and goes on from its place in the log.
func (s *Store) removeRecords(ctx context.Context, tx *sqlx.Tx, old []oldMessage) error {
	// The first condition is that of the index events_recipient. The other types name
	// no one.
	const told = `UPDATE events SET data = '{}' WHERE message_seq IN (?) AND type NOT IN ('message.received', 'message.queued')
		AND type <> 'message.quarantined'`
	seqs := seqsOf(old)
	err := execIn(ctx, tx, told, seqs)
	if err == nil {
		err = execIn(ctx, tx, `DELETE FROM recipients WHERE message_seq IN (?)`, seqs)
	}
	if err == nil {
		err = removeEmails(ctx, tx, seqs)
	}
	// While an inbox is locked, no message joins its threads.
	threaded := slices.DeleteFunc(slices.Clone(old), func(m oldMessage) bool { return m.ThreadSeq == 0 })
	if err == nil && len(threaded) > 0 {
		inboxes := rising(threaded, func(m oldMessage) int64 { return m.InboxSeq })
		var locked []int64
		err = selectIn(ctx, tx, &locked, `SELECT seq FROM inboxes WHERE seq IN (?) ORDER BY seq`+s.engine.LockRow(), inboxes)
	}
	if err == nil {
		err = execIn(ctx, tx, `DELETE FROM messages WHERE seq IN (?)`, seqs)
	}
	if err == nil && len(threaded) > 0 {
		err = shrinkThreads(ctx, tx, threaded)
	}
	return errIn("delete messages", err)
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

// each returns the values of f in the order of the rows.
func each[T, V any](rows []T, f func(T) V) []V {
	vs := make([]V, len(rows))
	for i, r := range rows {
		vs[i] = f(r)
	}
	return vs
}

// keyed returns the rows by their keys.
func keyed[T any, K comparable](rows []T, key func(*T) K) map[K]*T {
	m := make(map[K]*T, len(rows))
	for i := range rows {
		m[key(&rows[i])] = &rows[i]
	}
	return m
}

// valued is keyed with copies of the rows.
func valued[T any, K comparable](rows []T, key func(*T) K) map[K]T {
	m := make(map[K]T, len(rows))
	for i := range rows {
		m[key(&rows[i])] = rows[i]
	}
	return m
}

// set returns the set of the keys.
func set[K comparable](keys []K) map[K]bool {
	m := make(map[K]bool, len(keys))
	for _, k := range keys {
		m[k] = true
	}
	return m
}

func seqOfMessage(m *Message) int64 { return m.Seq }

// rising returns the different values of f in rising order.
func rising[T any, V cmp.Ordered](rows []T, f func(T) V) []V {
	vs := each(rows, f)
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

// Place returns where a message of the inbox stands, or stood before it was
// deleted. ErrNotFound for what is not, and was not, a message of this inbox.
func (s *Store) Place(ctx context.Context, inboxSeq int64, id string) (Place, error) {
	const q = `
		SELECT created_at, seq FROM messages WHERE inbox_seq = $1 AND id = $2
		UNION ALL
		SELECT created_at, seq FROM deleted_messages WHERE inbox_seq = $1 AND id = $2
		LIMIT 1`
	var p Place
	err := s.wrap(s.read.GetContext(ctx, &p, q, inboxSeq, id), "message "+id)
	if !errors.Is(err, ErrNotFound) {
		return p, err
	}
	return s.formerPlace(ctx, id, err)
}

// formerPlace returns the place of a message that has been gone for longer than
// DeletedTTL, by the time in its id; unknown otherwise.
func (s *Store) formerPlace(ctx context.Context, id string, unknown error) (Place, error) {
	const elsewhere = `
		SELECT count(*) FROM (SELECT id FROM messages WHERE id = $1 UNION ALL SELECT id FROM deleted_messages WHERE id = $1) a`
	at, ok := idTime("msg_", id)
	if !ok || at.After(s.now().Add(-DeletedTTL)) {
		return Place{}, unknown
	}
	var n int
	if err := s.read.GetContext(ctx, &n, elsewhere, id); err != nil || n > 0 {
		return Place{}, errors.Join(unknown, s.wrap(err, "message"))
	}
	return Place{NewTime(at), math.MaxInt64}, nil
}

// keepPlace keeps where a message stands that the transaction deletes.
func (s *Store) keepPlace(ctx context.Context, tx *sqlx.Tx, messageSeq int64) error {
	const q = `
		INSERT INTO deleted_messages (id, inbox_seq, seq, created_at, deleted_at)
		SELECT id, inbox_seq, seq, created_at, $2 FROM messages WHERE seq = $1`
	_, err := tx.ExecContext(ctx, q, messageSeq, NewTime(s.now()))
	return errIn("keep the place of a message", err)
}

// turnPrefix begins the names of the settings that say when the next round of
// some work is due.
const turnPrefix = "next round of "

// TakeTurn reports whether it is this node's turn to do a round of work that all
// nodes share. One of those that ask within every gets it, the others go without
// until then; so a round is not done by all nodes, and a node that is gone is not
// waited for. A node that may not delete has no turn, and one that is alone always has.
func (s *Store) TakeTurn(ctx context.Context, work string, every time.Duration) (bool, error) {
	if s.Paused() != nil || s.engine.Alone() {
		return s.Paused() == nil, nil
	}
	return s.claimName(ctx, turnPrefix+work, s.now().Add(every))
}
