package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
	"github.com/postroom/postroom/store/internal/index"
)

const (
	// indexLease is how long a node that fills the index may be silent before
	// another one takes over.
	indexLease = 10 * time.Second
)

// IndexText returns the words of a message for the full-text index: folded,
// separated by single spaces, the subject first. Of a message without content
// these are the words of its subject.
type IndexText func(m Message) (string, error)

// marks are what the index knows of a message beside its words: narrower
// searches then cost less, not more.
func (m *Message) marks() []string {
	marks := []string{markInbox(m.InboxSeq), markDirection(m.Direction), markSender(m.FromEmail)}
	if at := strings.LastIndexByte(m.FromEmail, '@'); at >= 0 {
		marks = append(marks, markDomain(m.FromEmail[at+1:]))
	}
	return marks
}

func markInbox(seq int64) string       { return "i" + strconv.FormatInt(seq, 36) }
func markDirection(d Direction) string { return "w" + string(d) }
func markSender(email string) string   { return "f" + strconv.FormatUint(uint64(hash64(email)), 36) } //nolint:gosec // bits

func markDomain(domain string) string { return "d" + strconv.FormatUint(uint64(hash64(domain)), 36) } //nolint:gosec // bits

// unindex takes messages out of the full-text index, and out of the list of what
// it is to hold: with the transaction they can no longer be found by a word.
// Whoever deletes content calls it in the same transaction.
func (s *Store) unindex(ctx context.Context, tx *sqlx.Tx, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	tail := `DELETE FROM search_tail WHERE message_seq IN (` + engine.Numbers(seqs) + `)`
	index := `DELETE FROM search_index WHERE ` + s.index.Key() + ` IN (` + engine.Numbers(seqs) + `)`
	for _, q := range []string{tail, index} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("take out of the index: %w", err)
		}
	}
	s.unmerged.Store(true)
	return nil
}

// Index adds up to limit messages, the oldest that it does not hold, to the
// full-text index, and returns how many there were to add. holder names the
// node: one at a time does it, and for the others there is nothing to add.
func (s *Store) Index(ctx context.Context, holder string, limit int, text IndexText) (int, error) {
	if waits, err := s.indexWaits(ctx); err != nil || !waits {
		return 0, err
	}
	if held, err := s.holdIndex(ctx, holder); err != nil || !held {
		return 0, err
	}
	ms, err := s.unindexed(ctx, limit)
	if err != nil {
		return 0, err
	}
	// Reading the words takes most of the time, and needs no transaction: what
	// is deleted meanwhile is not in the list any more when they are written.
	words, err := s.wordsOf(ctx, ms, text)
	if err != nil {
		return 0, err
	}
	err = s.inTx(ctx, "index messages", func(tx *sqlx.Tx) error { return s.writeIndex(ctx, tx, holder, ms, words) })
	if err != nil {
		return 0, err
	}
	s.unmerged.Store(true)
	return len(ms), nil
}

// wordsOf returns the words of messages, and reads few enough of their contents
// at a time to hold them. Of these is left that they were there.
func (s *Store) wordsOf(ctx context.Context, ms []Message, text IndexText) ([][]string, error) {
	words := make([][]string, 0, len(ms))
	for rest := ms; len(rest) > 0; {
		n := portion(rest)
		bySeq := make(map[int64]*Message, n)
		var seqs []int64
		for i := range rest[:n] {
			if m := &rest[i]; m.ExpiredAt == nil {
				bySeq[m.Seq], seqs = m, append(seqs, m.Seq)
			}
		}
		if err := s.fillContents(ctx, bySeq, seqs); err != nil {
			return nil, err
		}
		for i := range rest[:n] {
			m := &rest[i]
			t, err := text(*m)
			if err != nil {
				s.log.WarnContext(ctx, "a message cannot be searched", "message_id", m.ID, "error", err)
			}
			words = append(words, distinct(t))
			if m.Content != nil {
				m.Content = &Content{}
			}
		}
		rest = rest[n:]
	}
	return words, nil
}

// distinct returns the words of a folded text in order, none twice.
func distinct(text string) []string {
	words := strings.Fields(storable(text))
	slices.Sort(words)
	return slices.Compact(words)
}

// indexWaits says whether there is anything to index.
func (s *Store) indexWaits(ctx context.Context) (bool, error) {
	var waits bool
	err := s.reads.One(ctx, &waits, `SELECT EXISTS (SELECT 1 FROM search_tail)`)
	return waits, s.wrap(err, "look for messages to index")
}

// holdIndex takes or renews the right to fill the index.
func (s *Store) holdIndex(ctx context.Context, holder string) (bool, error) {
	const (
		mine = `SELECT count(*) FROM search_lease WHERE holder = $1 AND until > $2`
		take = `UPDATE search_lease SET holder = $1, until = $3 WHERE holder = $1 OR until < $2`
	)
	now := s.now()
	var n int64
	if err := s.reads.One(ctx, &n, mine, holder, NewTime(now.Add(indexLease/2))); err != nil {
		return false, s.wrap(err, "hold the index")
	}
	if n > 0 {
		return true, nil
	}
	err := s.inTx(ctx, "hold the index", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, take, holder, NewTime(now), NewTime(now.Add(indexLease)))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n > 0, err
}

// LetIndexGo gives up the right to fill the index, so that another node, or the
// next start, need not wait for it.
func (s *Store) LetIndexGo(ctx context.Context, holder string) error {
	const q = `UPDATE search_lease SET until = 0 WHERE holder = $1`
	return s.inTx(ctx, "let the index go", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, holder)
		return err
	})
}

// unindexed returns the oldest messages that are to be indexed, without their
// content. Of one that is gone there is the number alone.
func (s *Store) unindexed(ctx context.Context, limit int) ([]Message, error) {
	const list = `SELECT message_seq AS seq, account_id FROM search_tail ORDER BY message_seq LIMIT $1`
	var waiting []Message
	if err := s.reads.All(ctx, &waiting, list, limit); err != nil {
		return nil, s.wrap(err, "read what to index")
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	seqs := make([]int64, len(waiting))
	bySeq := make(map[int64]*Message, len(waiting))
	for i := range waiting {
		m := &waiting[i]
		seqs[i], bySeq[m.Seq] = m.Seq, m
	}
	ms, err := s.messagesBySeq(ctx, seqs, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range ms {
		*bySeq[m.Seq] = m
	}
	return waiting, nil
}

// writeIndex puts messages into the index and out of the list. It fails when the
// right to do so was lost.
func (s *Store) writeIndex(ctx context.Context, tx *sqlx.Tx, holder string, ms []Message, words [][]string) error {
	const renew = `UPDATE search_lease SET until = $2 WHERE holder = $1`
	res, err := tx.ExecContext(ctx, renew, holder, NewTime(s.now().Add(indexLease)))
	if err != nil {
		return err
	}
	if err := one(res, "right to fill the index", ErrUnavailable); err != nil {
		return err
	}
	waiting, err := s.takeWaiting(ctx, tx, ms)
	if err != nil {
		return err
	}
	buckets := map[int64]*index.Bucket{} // by account
	docs := make([]index.Doc, 0, len(ms))
	for i := range ms {
		m := &ms[i]
		if !waiting[m.Seq] || m.Content == nil {
			continue
		}
		b := buckets[m.AccountID]
		if b == nil {
			if b, err = index.OpenBucket(ctx, tx, m.AccountID, s.bounds.bucketSize); err != nil {
				return err
			}
			buckets[m.AccountID] = b
		}
		docs = append(docs, b.Add(m.Seq, words[i], m.marks()))
	}
	for _, b := range buckets {
		if err := b.Save(ctx, tx); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return s.index.Add(ctx, tx, docs)
}

// takeWaiting removes messages from the list of what to index and returns those
// that were still in it.
func (s *Store) takeWaiting(ctx context.Context, tx *sqlx.Tx, ms []Message) (map[int64]bool, error) {
	const q = `DELETE FROM search_tail WHERE message_seq IN (%s) RETURNING message_seq`
	seqs := make([]int64, len(ms))
	for i := range ms {
		seqs[i] = ms[i].Seq
	}
	var taken []int64
	if err := tx.SelectContext(ctx, &taken, fmt.Sprintf(q, engine.Numbers(seqs))); err != nil {
		return nil, err
	}
	waiting := make(map[int64]bool, len(taken))
	for _, seq := range taken {
		waiting[seq] = true
	}
	return waiting, nil
}

// SweepIndex forgets the buckets of the full-text index whose messages are all
// gone, and returns how many.
func (s *Store) SweepIndex(ctx context.Context) (int, error) {
	q := `DELETE FROM search_buckets WHERE newest < (SELECT min(` + s.index.Key() + `) FROM search_index)`
	var n int64
	err := s.inTx(ctx, "sweep the index", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return int(n), err
}
