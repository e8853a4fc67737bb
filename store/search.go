package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
	"github.com/postroom/postroom/store/internal/index"
)

// searchIndex is the full-text index and what its upkeep needs.
type searchIndex struct {
	*index.Index
	unmerged    atomic.Bool  // there may be parts to merge
	rewriteFrom atomic.Int64 // microseconds; when a large index may be rewritten
}

// search finds messages by their words, newest first: what the index holds, and
// what it does not hold yet. It stops early when that would take long.
func (s *Store) search(ctx context.Context, f *MessageFilter, below int64, limit int) (found, error) {
	if len(f.Text.Words) == 0 {
		return found{}, nil
	}
	sr := &searcher{store: s, filter: f, limit: limit, looks: s.limits.searchLook, reads: s.limits.searchRead, bytes: s.limits.searchReadBytes}
	floor, err := s.searchFloor(ctx, f)
	if err != nil {
		return found{}, err
	}
	// The messages that are not indexed come first: one that is indexed meanwhile is
	// then seen twice and not missed.
	if err := sr.readTail(ctx, below, floor); err != nil {
		return found{}, err
	}
	q := index.Query{Words: f.Text.Words, Marks: f.marks()}
	sr.index = index.NewReader(s.index.Index, s.read, f.AccountID, q, below, floor, s.limits.searchBuckets)
	return sr.run(ctx)
}

// searchFloor is a number below which no message is recent enough.
func (s *Store) searchFloor(ctx context.Context, f *MessageFilter) (int64, error) {
	if f.Since == nil {
		return 0, nil
	}
	w := conditions("created_at >= ?", NewTime(f.Since.Add(-searchSkew)))
	if f.InboxSeq != 0 {
		w.add("inbox_seq = ?", f.InboxSeq)
	} else {
		w.add("account_id = ?", f.AccountID)
	}
	q := `SELECT seq FROM messages` + w.sql() + ` ORDER BY created_at, seq LIMIT 1`
	seqs, err := readAll[int64](ctx, s, "search", q, w.args...)
	return append(seqs, math.MaxInt64)[0], err
}

// searcher is one page of a search.
type searcher struct {
	store  *Store
	filter *MessageFilter
	limit  int

	tail      []int64 // numbers, falling
	tailFloor int64   // the tail is known from this number on
	index     *index.Reader

	looks, reads, bytes int // what is left of them
	out                 found
}

// indexedTo is the number of the last message that went into the index.
const indexedTo = `coalesce((SELECT seq FROM positions WHERE name = 'indexed'), 0)`

// readTail reads the numbers of the newest messages that the index does not hold. It
// passes over those of other accounts, at most listScan.
func (sr *searcher) readTail(ctx context.Context, below, floor int64) error {
	most := sr.store.limits.searchRead
	const (
		newest = ` FROM messages WHERE seq > ` + indexedTo + ` AND seq < $1 AND seq >= $2`
		cut    = `SELECT coalesce((SELECT seq` + newest + ` ORDER BY seq DESC LIMIT 1 OFFSET $3), 0)`
		// The sign keeps the databases from going through all mail of the account.
		list = `SELECT seq` + newest + ` AND +account_id = $3 AND inbox_seq IS NOT NULL ORDER BY seq DESC LIMIT $4`
	)
	if err := sr.store.read.GetContext(ctx, &sr.tailFloor, cut, below, floor, sr.store.limits.listScan); err != nil {
		return sr.store.wrap(err, "search")
	}
	if err := sr.store.read.SelectContext(ctx, &sr.tail, list, below, max(floor, sr.tailFloor), sr.filter.AccountID, most); err != nil {
		return sr.store.wrap(err, "search")
	}
	if len(sr.tail) == most {
		sr.tailFloor = sr.tail[most-1]
	}
	return nil
}

// run reads the candidates, newest first, until the page is full, there are
// no more, or it has cost enough.
func (sr *searcher) run(ctx context.Context) (found, error) {
	for size := max(sr.limit+1, 64); ; size = min(2*size, 512) {
		cs, err := sr.next(ctx, size)
		if err != nil {
			return found{}, err
		}
		ended, err := sr.look(ctx, cs)
		if err != nil || ended {
			return sr.out, err
		}
		if len(cs) < size {
			if floor := max(sr.tailFloor, sr.index.Floor()); floor > 0 {
				sr.out.end = &position{Seq: floor}
			}
			return sr.out, nil
		}
		if sr.looks -= len(cs); sr.looks <= 0 {
			sr.out.end = &position{Seq: cs[len(cs)-1].seq}
			return sr.out, nil
		}
	}
}

// candidate is a message that may match.
type candidate struct {
	seq  int64
	read bool // what it says is to be read
}

// next returns the next candidates, newest first, and fewer than n when there
// are no more.
func (sr *searcher) next(ctx context.Context, n int) ([]candidate, error) {
	cs := make([]candidate, 0, n)
	for len(cs) < n {
		tail, indexed := head(sr.tail), head(sr.index.Seqs)
		seq := max(tail, indexed)
		if seq == 0 || seq < sr.index.Known {
			if sr.index.Known <= sr.tailFloor || sr.index.Done {
				return cs, nil
			}
			if err := sr.index.Read(ctx); err != nil {
				return nil, sr.store.wrap(err, "search")
			}
			continue
		}
		if seq < sr.tailFloor {
			return cs, nil
		}
		// One that both have has just been indexed.
		cs = append(cs, candidate{seq, indexed != seq || len(sr.filter.Text.Phrases) > 0})
		if tail == seq {
			sr.tail = sr.tail[1:]
		}
		if indexed == seq {
			sr.index.Seqs = sr.index.Seqs[1:]
		}
	}
	return cs, nil
}

// head is the first number of a falling list, 0 for an empty one.
func head(seqs []int64) int64 {
	if len(seqs) == 0 {
		return 0
	}
	return seqs[0]
}

// look adds the candidates that match to the page. The page ends when it is full
// or has read enough.
func (sr *searcher) look(ctx context.Context, cs []candidate) (ended bool, err error) {
	seqs := each(cs, func(c candidate) int64 { return c.seq })
	reads := slices.ContainsFunc(cs, func(c candidate) bool { return c.read })
	ms, err := sr.store.messagesBySeq(ctx, seqs, sr.filter, !reads && !sr.filter.WithText)
	if err != nil {
		return false, err
	}
	bySeq := keyed(ms, seqOfMessage)
	for i, c := range cs {
		m := bySeq[c.seq]
		if m == nil || m.ExpiredAt != nil {
			continue
		}
		if c.read {
			if sr.reads <= 0 || sr.bytes <= 0 {
				sr.out.end = &position{Seq: c.seq + 1}
				return true, nil
			}
			if match, err := sr.read(ctx, m, cs[i:], bySeq); err != nil {
				return false, err
			} else if !match {
				continue
			}
		}
		if len(sr.out.messages) == sr.limit {
			sr.out.end = &position{Seq: sr.out.messages[sr.limit-1].Seq}
			return true, nil
		}
		sr.out.messages = append(sr.out.messages, *m)
	}
	return false, nil
}

// read reports whether a message has what is looked for. It reads the content of
// some that come after it along with its own.
func (sr *searcher) read(ctx context.Context, m *Message, next []candidate, bySeq map[int64]*Message) (bool, error) {
	if m.ExpiredAt != nil {
		return false, nil
	}
	if m.Content == nil {
		var seqs []int64
		for _, c := range next[:min(len(next), readAhead)] {
			if other := bySeq[c.seq]; other != nil && other.ExpiredAt == nil {
				seqs = append(seqs, c.seq)
			}
		}
		if err := sr.store.fillContents(ctx, bySeq, seqs, contentColumns); err != nil {
			return false, err
		}
	}
	sr.reads--
	sr.bytes -= int(min(m.Size, maxBody))
	if m.Content == nil { // deleted meanwhile
		return false, nil
	}
	text, err := sr.filter.Text.Text(*m)
	if err != nil {
		return false, nil //nolint:nilerr // what cannot be read has no words
	}
	match := sr.filter.Text.matches(text)
	if !match {
		m.Content = nil // let it go
	}
	return match, nil
}

// TextQuery is a full-text query. Words are folded in the same way as in
// messages.
type TextQuery struct {
	// Words must all occur. None at all matches nothing.
	Words []string
	// Phrases are words, of those above, that stand together in this order.
	Phrases [][]string
	// Text returns the words of a message, as the index is filled with.
	Text IndexText `json:"-"`
}

// matches reports whether folded text has what is looked for.
func (q *TextQuery) matches(text string) bool {
	text = " " + text + " "
	for _, w := range q.Words {
		if !strings.Contains(text, " "+w+" ") {
			return false
		}
	}
	for _, p := range q.Phrases {
		if !strings.Contains(text, " "+strings.Join(p, " ")+" ") {
			return false
		}
	}
	return true
}

// marks are what the index itself can narrow a search by.
func (f *MessageFilter) marks() [][]string {
	var groups [][]string
	if f.InboxSeq != 0 {
		groups = append(groups, []string{markInbox(f.InboxSeq)})
	} else if len(f.inboxes) > 0 && len(f.inboxes) <= maxMarks {
		groups = append(groups, each(f.inboxes, markInbox))
	}
	switch {
	case f.Direction != "":
		groups = append(groups, []string{markDirection(f.Direction)})
	case f.Status == MessageReceived, f.Status == MessageQuarantined:
		groups = append(groups, []string{markDirection(DirectionIn)})
	case f.Status != "" || f.ToLike != "":
		groups = append(groups, []string{markDirection(DirectionOut)})
	}
	if mark := fromMark(f.FromLike); mark != "" && f.Status != MessageQuarantined {
		groups = append(groups, []string{mark})
	}
	return groups
}

// fromMark is the mark of a pattern that is an address or "*@domain", else "".
func fromMark(like string) string {
	if like == "" {
		return ""
	}
	if plain, ok := unescapeLike(like); ok {
		return markSender(plain)
	}
	if domain, found := strings.CutPrefix(like, "%@"); found {
		if plain, ok := unescapeLike(domain); ok && !strings.Contains(plain, "@") {
			return markDomain(plain)
		}
	}
	return ""
}

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

// unindex takes messages out of the full-text index: with the transaction they can no
// longer be found by a word. Whoever deletes content calls it in the same transaction,
// after that: Index keeps the content of what it adds from deletion.
func (s *Store) unindex(ctx context.Context, tx *sqlx.Tx, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	q := `DELETE FROM search_index WHERE ` + s.index.Key + ` IN (` + engine.Numbers(seqs) + `)`
	if _, err := tx.ExecContext(ctx, q); err != nil {
		return fmt.Errorf("take out of the index: %w", err)
	}
	s.index.unmerged.Store(true)
	return nil
}

// indexing is the name under which a node claims the filling of the index.
const indexing = "filling the index"

// Index adds up to limit messages, the oldest that it does not hold, to the full-text
// index, and returns how many there were to add. One node at a time does it, and for the
// others there is nothing to add.
func (s *Store) Index(ctx context.Context, limit int, text IndexText) (int, error) {
	if waits, err := s.indexWaits(ctx); err != nil || !waits {
		return 0, err
	}
	if s.engine.Alone() {
		return s.addToIndex(ctx, limit, text)
	}
	if mine, err := s.claimName(ctx, indexing, s.now().Add(indexLease)); err != nil || !mine {
		return 0, err
	}
	n, err := s.addToIndex(ctx, limit, text)
	// Another node need not wait for the claim to end.
	_, freed := s.exec(context.WithoutCancel(ctx), "let the index go", `UPDATE settings SET value = '0' WHERE name = $1`, indexing)
	return n, errors.Join(err, freed)
}

func (s *Store) addToIndex(ctx context.Context, limit int, text IndexText) (int, error) {
	next, err := s.unindexed(ctx, limit)
	if err != nil || next.upTo <= next.after {
		return 0, err
	}
	// Reading the words takes most of the time, and needs no transaction: what is
	// deleted meanwhile has no content any more when they are written.
	words, err := s.wordsOf(ctx, next.messages, text)
	if err != nil {
		return 0, err
	}
	err = s.inTx(ctx, "index messages", func(tx *sqlx.Tx) error { return s.writeIndex(ctx, tx, next, words) })
	if err != nil {
		return 0, err
	}
	s.index.unmerged.Store(true)
	return len(next.messages), nil
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
		if err := s.fillContents(ctx, bySeq, seqs, contentColumns); err != nil {
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

// indexWaits reports whether unindexed returns something.
func (s *Store) indexWaits(ctx context.Context) (bool, error) {
	const q = `SELECT EXISTS (SELECT 1 FROM messages WHERE seq > ` + indexedTo + ` AND inbox_seq IS NOT NULL)
		OR coalesce((SELECT max(seq) FROM messages), 0) >= ` + indexedTo + ` + $1`
	return readOne[bool](ctx, s, "look for messages to index", q, passedEmails)
}

// unindexedMessages are the oldest messages that are to be indexed, without their
// content: those of inboxes with a number above after, up to upTo.
type unindexedMessages struct {
	after, upTo int64
	messages    []Message
}

// passedEmails is how many emails in a row, which are not indexed, the position passes
// at once: it does not move with each of them.
const passedEmails = 1000

// unindexed returns the next messages to index, at most limit. upTo is not above after
// if there are none.
func (s *Store) unindexed(ctx context.Context, limit int) (next unindexedMessages, err error) {
	if next.after, err = readOne[int64](ctx, s, "read what to index", `SELECT `+indexedTo); err != nil {
		return next, err
	}
	if next.upTo, err = s.settledTo(ctx, s.engine.MessageLog); err != nil {
		return next, err
	}
	const q = `SELECT ` + messageColumns + messageTables + ` WHERE m.seq > $1 AND m.seq <= $2 AND m.inbox_seq IS NOT NULL ORDER BY m.seq LIMIT $3`
	if next.messages, err = s.readMessages(ctx, q, next.after, next.upTo, limit); err != nil {
		return next, s.wrap(err, "read what to index")
	}
	switch {
	case len(next.messages) == limit:
		next.upTo = next.messages[limit-1].Seq
	case len(next.messages) == 0 && next.upTo < next.after+passedEmails:
		next.upTo = next.after
	}
	return next, nil
}

// writeIndex puts messages into the index. It fails when another node has done so.
func (s *Store) writeIndex(ctx context.Context, tx *sqlx.Tx, next unindexedMessages, words [][]string) error {
	const move = `INSERT INTO positions (name, seq) VALUES ('indexed', $2) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq WHERE positions.seq = $1`
	if err := oneRow("place of the index", ErrUnavailable)(tx.ExecContext(ctx, move, next.after, next.upTo)); err != nil {
		return err
	}
	ms := next.messages
	if len(ms) == 0 {
		return nil
	}
	there, err := s.keepContents(ctx, tx, each(ms, func(m Message) int64 { return m.Seq }))
	if err != nil {
		return err
	}
	buckets := map[int64]*index.Bucket{} // by account
	docs := make([]index.Doc, 0, len(ms))
	for i := range ms {
		m := &ms[i]
		if !there[m.Seq] || m.Content == nil {
			continue
		}
		b := buckets[m.AccountID]
		if b == nil {
			if b, err = index.OpenBucket(ctx, tx, m.AccountID, s.limits.bucketSize); err != nil {
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

// keepContents returns which of the messages still have content, and keeps it from
// deletion until the transaction ends.
func (s *Store) keepContents(ctx context.Context, tx *sqlx.Tx, seqs []int64) (map[int64]bool, error) {
	q := `SELECT message_seq FROM contents WHERE message_seq IN (` + engine.Numbers(seqs) + `) ORDER BY message_seq` + s.engine.KeepRow()
	var there []int64
	err := tx.SelectContext(ctx, &there, q)
	return set(there), err
}

// sweepIndex removes index buckets without messages.
func (s *Store) sweepIndex(ctx context.Context) (int, error) {
	q := `DELETE FROM search_buckets WHERE newest < (SELECT min(` + s.index.Key + `) FROM search_index)`
	return s.exec(ctx, "sweep the index", q)
}

const (
	// mergePages bounds one step of a merge of the full-text index: a step writes
	// about so many of its pages.
	mergePages = 16
	// MergeBurst is how many steps follow a batch of indexed or deleted messages.
	// More are hardly ever needed.
	MergeBurst = 8
	// rewriteAtOnce is up to how many pages an index is rewritten as soon as words
	// of deleted messages are in it. A larger one is rewritten at most once in
	// rewriteEvery, and not in the first rewriteWait of a process.
	rewriteAtOnce = 4096
	rewriteEvery  = 24 * time.Hour
	rewriteWait   = time.Hour
)

// MergeIndex does one step of merging the parts of the full-text index, in one
// short transaction. It returns how many steps were done, 1 or 0: none when
// there is nothing to merge.
func (s *Store) MergeIndex(ctx context.Context) (int, error) {
	if !s.index.Merges() || !s.index.unmerged.Swap(false) {
		return 0, nil
	}
	more := false
	err := s.inTx(ctx, "merge the index", func(tx *sqlx.Tx) (err error) {
		more, err = s.index.Merge(ctx, tx, mergePages)
		return err
	})
	if more || err != nil {
		s.index.unmerged.Store(true)
	}
	if !more {
		return 0, err
	}
	s.unscrubbed.Store(true) // of words
	return 1, err
}

// MergeIndexSome does up to MergeBurst steps of MergeIndex, and returns how many
// it did.
func (s *Store) MergeIndexSome(ctx context.Context) (int, error) {
	for done := range MergeBurst {
		if n, err := s.MergeIndex(ctx); n == 0 || err != nil {
			return done, err
		}
	}
	return MergeBurst, nil
}

// RewriteIndex begins to write the full-text index anew without the words that
// only deleted messages had, if there are any and it is time for that: MergeIndex
// then does it step by step. A message that was taken out of the index cannot be
// found by a word any more; what this removes is the word itself.
func (s *Store) RewriteIndex(ctx context.Context) error {
	if !s.index.Merges() {
		return nil
	}
	outdated, large, err := s.index.Outdated(ctx, rewriteAtOnce)
	if err != nil {
		return s.wrap(err, "read the state of the index")
	}
	now := s.now()
	if !outdated || large && now.UnixMicro() < s.index.rewriteFrom.Load() {
		return nil
	}
	s.index.rewriteFrom.Store(now.Add(rewriteEvery).UnixMicro())
	err = s.inTx(ctx, "rewrite the index", func(tx *sqlx.Tx) error { return s.index.Rewrite(ctx, tx, mergePages) })
	s.index.unmerged.Store(true)
	return err
}
