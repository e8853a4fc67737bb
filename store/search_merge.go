package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// mergePages bounds one step of a merge of the full-text index: a step writes
	// about so many of its pages.
	mergePages = 16
	// MergeBurst is how many such steps follow a batch of indexed or of deleted
	// messages. More than that is hardly ever due.
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
	if !s.index.Merges() || !s.unmerged.Swap(false) {
		return 0, nil
	}
	more := false
	err := s.inTx(ctx, "merge the index", func(tx *sqlx.Tx) (err error) {
		more, err = s.index.Merge(ctx, tx, mergePages)
		return err
	})
	if more || err != nil {
		s.unmerged.Store(true)
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
	pages, deleted, err := s.index.Size(ctx)
	if err != nil {
		return s.wrap(err, "read the size of the index")
	}
	now := s.now()
	if deleted == 0 || pages > rewriteAtOnce && now.UnixMicro() < s.rewriteFrom.Load() {
		return nil
	}
	s.rewriteFrom.Store(now.Add(rewriteEvery).UnixMicro())
	err = s.inTx(ctx, "rewrite the index", func(tx *sqlx.Tx) error { return s.index.Rewrite(ctx, tx, mergePages) })
	s.unmerged.Store(true)
	return err
}
