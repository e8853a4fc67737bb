package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// sweepBatch is how many rows one transaction of a sweep deletes.
	sweepBatch = 500
	// sweepPages is how many times sweepBatch rows a sweep passes over that are not
	// old.
	sweepPages = 200
)

// sweepPlaces remembers where in each table a sweep goes on.
type sweepPlaces struct {
	mu    sync.Mutex
	after map[string]int64
}

func (p *sweepPlaces) get(table string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after[table]
}

func (p *sweepPlaces) set(table string, after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == nil {
		p.after = map[string]int64{}
	}
	p.after[table] = after
}

// sweepOld deletes some rows of a log that are older than age and meet a further
// condition, which may be empty, and returns how many; 0 means that it found none. It reads the table from its beginning and
// has no index by time, so it stops soon where rows are not old. It does not stop
// at the first of them: a node whose clock was ahead may have written many.
func (s *Store) sweepOld(ctx context.Context, table string, age time.Duration, and string) (int, error) {
	old := NewTime(s.now().Add(-age))
	remove := fmt.Sprintf(`DELETE FROM %s WHERE created_at <= $1 AND seq IN (SELECT seq FROM %[1]s WHERE seq > $2 ORDER BY seq LIMIT $3)`, table) + and
	next := fmt.Sprintf(`SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM %s WHERE seq > $1 ORDER BY seq LIMIT $2) page`, table)
	for range sweepPages {
		after := s.sweeping.get(table)
		n, err := s.exec(ctx, "sweep "+table, remove, old, after, sweepBatch)
		if err != nil || n > 0 {
			return n, err
		}
		if err := s.read.GetContext(ctx, &after, next, after, sweepBatch); err != nil {
			return 0, s.wrap(err, "sweep "+table)
		}
		s.sweeping.set(table, after)
		if after == 0 {
			return 0, nil // the end
		}
	}
	s.sweeping.set(table, 0)
	return 0, nil
}

// sweepBefore deletes the oldest rows of a table, at most sweepBatch, whose column is not
// after a time, and returns how many. key lists the columns of the primary key.
func (s *Store) sweepBefore(ctx context.Context, table, key, column string, until any) (int, error) {
	q := `DELETE FROM ` + table + ` WHERE (` + key + `) IN
		(SELECT ` + key + ` FROM ` + table + ` WHERE ` + column + ` <= $1 ORDER BY ` + column + ` LIMIT $2)`
	return s.exec(ctx, "sweep "+table, q, until, sweepBatch)
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
func (s *Store) removeContents(ctx context.Context, tx *sqlx.Tx, old []oldMessage, now Time) ([]string, error) {
	s.unscrubbed.Store(true)
	seqs, ids := seqsOf(old), each(old, func(m oldMessage) string { return m.ID })
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
	if err := execIn(ctx, tx, emptyResponses+`(?)`, ids); err != nil {
		return nil, errIn("empty cached responses", err)
	}
	err = execIn(ctx, tx, `UPDATE messages SET expired_at = ?, has_code = false, has_link = false WHERE seq IN (?)`, now, seqs)
	return blobs, errIn("mark as expired", err)
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
	if err := execIn(ctx, tx, told, seqs); err != nil {
		return errIn("empty events of recipients", err)
	}
	if err := execIn(ctx, tx, `DELETE FROM recipients WHERE message_seq IN (?)`, seqs); err != nil {
		return errIn("delete recipients", err)
	}
	if err := removeEmails(ctx, tx, seqs); err != nil {
		return err
	}
	// While an inbox is locked, no message joins its threads.
	threaded := slices.DeleteFunc(slices.Clone(old), func(m oldMessage) bool { return m.ThreadSeq == 0 })
	if len(threaded) > 0 {
		inboxes := rising(threaded, func(m oldMessage) int64 { return m.InboxSeq })
		var locked []int64
		if err := selectIn(ctx, tx, &locked, `SELECT seq FROM inboxes WHERE seq IN (?) ORDER BY seq`+s.engine.LockRow(), inboxes); err != nil {
			return errIn("lock inboxes", err)
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

// SweepDeleted deletes some of the places that were kept for longer than
// DeletedTTL, and returns how many; 0 means that there were none.
func (s *Store) SweepDeleted(ctx context.Context) (int, error) {
	return s.sweepBefore(ctx, "deleted_messages", "id", "deleted_at", NewTime(s.now().Add(-DeletedTTL)))
}

// turnPrefix begins the names of the settings that say when the next round of
// some work is due.
const turnPrefix = "next round of "

// turns are the next rounds where one process owns the database.
type turns struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// take is TakeTurn in memory.
func (t *turns) take(work string, now, next time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = map[string]time.Time{}
	}
	if now.Before(t.next[work]) {
		return false
	}
	t.next[work] = next
	return true
}

// TakeTurn reports whether it is this node's turn to do a round of work that all
// nodes share. One of those that ask within every gets it, the others go without
// until then; so a round is not done by all nodes, and a node that is gone is not
// waited for. A node that may not delete has no turn.
func (s *Store) TakeTurn(ctx context.Context, work string, every time.Duration) (bool, error) {
	if s.Paused() != nil {
		return false, nil
	}
	now := s.now()
	next := now.Add(every)
	if s.engine.Alone() {
		return s.turns.take(work, now, next), nil
	}
	return s.claimName(ctx, turnPrefix+work, next)
}
