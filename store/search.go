package store

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/postroom/postroom/store/internal/index"
)

const (
	// searchSkew is how much the clocks of two nodes may differ before a search
	// since some time misses what was stored at that time.
	searchSkew = 10 * time.Minute
)

// search finds messages by their words, newest first: what the index holds, and
// what it does not hold yet. It stops early when that would take long.
func (s *Store) search(ctx context.Context, f *MessageFilter, below int64, limit int) (found, error) {
	if len(f.Text.Words) == 0 {
		return found{}, nil
	}
	sr := &searcher{store: s, filter: f, limit: limit, looks: s.bounds.searchLook, reads: s.bounds.searchRead, bytes: s.bounds.searchReadBytes}
	floor, err := s.searchFloor(ctx, f)
	if err != nil {
		return found{}, err
	}
	// The tail first: a message that is indexed meanwhile is then seen twice and
	// not missed.
	if err := sr.readTail(ctx, below, floor); err != nil {
		return found{}, err
	}
	q := index.Query{Words: f.Text.Words, Marks: f.marks()}
	sr.index = index.NewReader(s.index, s.reads, f.AccountID, q, below, floor, s.bounds.searchBuckets)
	return sr.run(ctx)
}

// searchFloor is a number below which no message is recent enough.
func (s *Store) searchFloor(ctx context.Context, f *MessageFilter) (int64, error) {
	if f.Since == nil {
		return 0, nil
	}
	w := &where{}
	if f.InboxSeq != 0 {
		w.add("inbox_seq = ?", f.InboxSeq)
	} else {
		w.add("account_id = ?", f.AccountID)
	}
	w.add("created_at >= ?", NewTime(f.Since.Add(-searchSkew)))
	var seqs []int64
	q := `SELECT seq FROM messages` + w.sql() + ` ORDER BY created_at, seq LIMIT 1`
	if err := s.reads.All(ctx, &seqs, q, w.args...); err != nil {
		return 0, s.wrap(err, "search")
	}
	if len(seqs) == 0 {
		return math.MaxInt64, nil
	}
	return seqs[0], nil
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

// readTail reads the numbers of the newest messages that the index does not
// hold.
func (sr *searcher) readTail(ctx context.Context, below, floor int64) error {
	most := sr.store.bounds.searchRead
	q := `SELECT message_seq FROM search_tail WHERE account_id = $1 AND message_seq < $2 AND message_seq >= $3
		ORDER BY message_seq DESC LIMIT ` + strconv.Itoa(most)
	if err := sr.store.reads.All(ctx, &sr.tail, q, sr.filter.AccountID, below, floor); err != nil {
		return sr.store.wrap(err, "search")
	}
	if len(sr.tail) == most {
		sr.tailFloor = sr.tail[most-1]
	}
	return nil
}

// run looks at the candidates, newest first, until the page is full, there are
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
				sr.out.end = &position{seq: floor}
			}
			return sr.out, nil
		}
		if sr.looks -= len(cs); sr.looks <= 0 {
			sr.out.end = &position{seq: cs[len(cs)-1].seq}
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
	seqs := make([]int64, len(cs))
	for i, c := range cs {
		seqs[i] = c.seq
	}
	ms, err := sr.store.messagesBySeq(ctx, seqs, sr.filter)
	if err != nil {
		return false, err
	}
	bySeq := make(map[int64]*Message, len(ms))
	for i := range ms {
		bySeq[ms[i].Seq] = &ms[i]
	}
	for i, c := range cs {
		m := bySeq[c.seq]
		if m == nil {
			continue
		}
		if c.read {
			if sr.reads <= 0 || sr.bytes <= 0 {
				sr.out.end = &position{seq: c.seq + 1}
				return true, nil
			}
			if match, err := sr.read(ctx, m, cs[i:], bySeq); err != nil {
				return false, err
			} else if !match {
				continue
			}
		}
		if len(sr.out.messages) == sr.limit {
			sr.out.end = &position{seq: sr.out.messages[sr.limit-1].Seq}
			return true, nil
		}
		sr.out.messages = append(sr.out.messages, *m)
	}
	return false, nil
}

// readAhead is how many contents are read by one query.
const readAhead = 16

// read says whether a message has what is looked for. It reads the content of
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
		if err := sr.store.fillContents(ctx, bySeq, seqs); err != nil {
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

// maxBody is more than the text of a message takes, in bytes: the rest of a large
// one is attachments, which are not read.
const maxBody = 1 << 20
