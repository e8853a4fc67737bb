package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
)

// indexReader goes through the buckets of an account, from the newest on, for
// messages that match.
type indexReader struct {
	store   *Store
	account int64
	query   indexQuery // without buckets
	below   int64
	oldest  int64 // numbers below are too old

	seqs  []int64 // found and not yet taken, falling
	known int64   // what matches is found from this number on
	done  bool    // there is no more, or stopped is set
	cut   int64   // the number of the newest message in the buckets that are left out, or 0

	begun  bool
	left   []bucket
	group  int   // how many buckets are asked at once
	within int64 // in the group that left begins with: what is found lies below
}

// floor is the number from which on all is known, when that is not the end.
func (r *indexReader) floor() int64 {
	if r.cut == 0 {
		return 0
	}
	return r.cut + 1
}

// read finds more.
func (r *indexReader) read(ctx context.Context) error {
	if !r.begun {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if len(r.left) == 0 {
		r.done, r.known = true, r.floor()
		return nil
	}
	n := min(len(r.left), r.group)
	q := r.query
	q.buckets = r.left[:n]
	most := 256 << min(r.group, 3)
	seqs, err := r.store.dialect.find(ctx, r.store.reads, q, r.within, most)
	if err != nil {
		return r.store.wrap(err, "search")
	}
	r.seqs = append(r.seqs, seqs...)
	if len(seqs) == most {
		r.within = seqs[most-1]
		r.known = max(r.within, r.rest(n))
		r.sort()
		return nil
	}
	r.known = r.rest(n)
	r.left, r.within = r.left[n:], r.below
	r.group = min(4*r.group, max(1, searchTerms/r.query.terms()))
	r.sort()
	return nil
}

// sort brings what was found in order: numbers of two buckets may lie among each
// other.
func (r *indexReader) sort() {
	slices.SortFunc(r.seqs, func(a, b int64) int { return cmp.Compare(b, a) })
	r.seqs = slices.DeleteFunc(r.seqs, func(seq int64) bool { return seq < r.oldest })
}

// rest is the number above which nothing is found in the buckets after the nth.
func (r *indexReader) rest(n int) int64 {
	if n < len(r.left) {
		return r.left[n].Newest + 1
	}
	return r.floor()
}

// begin reads the list of buckets.
func (r *indexReader) begin(ctx context.Context) error {
	r.begun, r.group, r.within = true, 1, r.below
	most := r.store.bounds.searchBuckets
	q := `SELECT ` + bucketColumns + ` FROM search_buckets WHERE account_id = $1 AND oldest < $2 AND newest >= $3
		ORDER BY newest DESC, seq DESC LIMIT ` + strconv.Itoa(most+1)
	if err := r.store.reads.all(ctx, &r.left, q, r.account, r.below, r.oldest); err != nil {
		return r.store.wrap(err, "search")
	}
	if len(r.left) > most {
		r.cut = r.left[most].Newest
		r.left = r.left[:most]
	}
	return nil
}
