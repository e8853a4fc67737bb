package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/postroom/postroom/store/internal/engine"
)

// maxTerms is the most words that one query looks up.
const maxTerms = 512

// Reader reads the buckets of an account, the newest first, for messages that
// match a query.
type Reader struct {
	Seqs  []int64 // found and not yet taken by the caller, falling
	Known int64   // all that matches is found from this number on
	Done  bool    // there is nothing more to read

	index      *Index
	read       *engine.Reads
	account    int64
	query      Query // without buckets
	below      int64
	oldest     int64 // lower numbers are too old
	maxBuckets int

	cut    int64 // the newest message in the buckets that are left out, or 0
	begun  bool
	left   []Bucket
	group  int   // how many buckets one query reads
	within int64 // in the first group of left, what is still to be found lies below
}

// NewReader returns a Reader for the messages of an account below a number and not
// below oldest, in at most maxBuckets buckets.
func NewReader(ix *Index, read *engine.Reads, account int64, q Query, below, oldest int64, maxBuckets int) *Reader {
	return &Reader{
		Known: math.MaxInt64, index: ix, read: read, account: account, query: q, below: below, oldest: oldest, maxBuckets: maxBuckets,
	}
}

// Floor is the number from which on all is known when some buckets were left out,
// or 0.
func (r *Reader) Floor() int64 {
	if r.cut == 0 {
		return 0
	}
	return r.cut + 1
}

// Read finds more messages.
func (r *Reader) Read(ctx context.Context) error {
	if !r.begun {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if len(r.left) == 0 {
		r.Done, r.Known = true, r.Floor()
		return nil
	}
	n := min(len(r.left), r.group)
	q := r.query
	q.Buckets = r.left[:n]
	most := 256 << min(r.group, 3)
	seqs, err := r.index.Find(ctx, q, r.within, most)
	if err != nil {
		return err
	}
	r.Seqs = append(r.Seqs, seqs...)
	if len(seqs) == most {
		r.within = seqs[most-1]
		r.Known = max(r.within, r.rest(n))
		r.sort()
		return nil
	}
	r.Known = r.rest(n)
	r.left, r.within = r.left[n:], r.below
	r.group = min(4*r.group, max(1, maxTerms/r.query.terms()))
	r.sort()
	return nil
}

// sort brings what was found in order: numbers of two buckets may lie among each
// other.
func (r *Reader) sort() {
	slices.SortFunc(r.Seqs, func(a, b int64) int { return cmp.Compare(b, a) })
	r.Seqs = slices.DeleteFunc(r.Seqs, func(seq int64) bool { return seq < r.oldest })
}

// rest is the number above which nothing is found in the buckets after the nth.
func (r *Reader) rest(n int) int64 {
	if n < len(r.left) {
		return r.left[n].Newest + 1
	}
	return r.Floor()
}

func (r *Reader) begin(ctx context.Context) error {
	r.begun, r.group, r.within = true, 1, r.below
	most := r.maxBuckets
	q := `SELECT ` + bucketColumns + ` FROM search_buckets WHERE account_id = $1 AND oldest < $2 AND newest >= $3
		ORDER BY newest DESC, seq DESC LIMIT ` + strconv.Itoa(most+1)
	if err := r.read.SelectContext(ctx, &r.left, q, r.account, r.below, r.oldest); err != nil {
		return err
	}
	if len(r.left) > most {
		r.cut = r.left[most].Newest
		r.left = r.left[:most]
	}
	return nil
}
