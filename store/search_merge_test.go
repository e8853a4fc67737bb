package store_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// manyWords gives each message words of its own, one that all share, and the
// eighth one that no other has.
func manyWords(m store.Message) (string, error) {
	r := rand.New(rand.NewPCG(uint64(m.Seq), 1)) //nolint:gosec // the same words for the same message
	var text strings.Builder
	text.WriteString("everywhere")
	if m.Seq == 8 {
		text.WriteString(" zebra")
	}
	for range 100 {
		fmt.Fprintf(&text, " w%06d", r.IntN(100_000))
	}
	return text.String(), nil
}

// filledIndex is an SQLite store whose full-text index holds n messages, and
// their sequence numbers.
func filledIndex(t *testing.T, cfg store.Config, n int) (*store.Store, []int64) {
	t.Helper()
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	var seqs []int64
	for len(seqs) < n {
		copies := make([]*store.NewMessage, min(256, n-len(seqs)))
		for i := range copies {
			copies[i] = storetest.NewReceived(in)
		}
		ms, err := s.AddReceived(t.Context(), copies, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			seqs = append(seqs, m.Seq)
		}
	}
	for {
		n, err := s.Index(t.Context(), 64, manyWords)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return s, seqs
		}
		mergeAll(t, s, nil)
	}
}

// mergeAll merges the index to the end, and calls each after every step.
func mergeAll(t *testing.T, s *store.Store, each func()) {
	t.Helper()
	for {
		n, err := s.MergeIndex(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if each != nil {
			each()
		}
	}
}

// blocks are the checksums of what FTS5 stores, by its number. This is how a
// test counts how much a transaction has written.
type blocks map[int64]uint32

func readBlocks(t *testing.T, db *sqlx.DB, word string) (b blocks, hasWord bool) {
	t.Helper()
	var rows []struct {
		ID    int64  `db:"id"`
		Block []byte `db:"block"`
	}
	if err := db.Select(&rows, `SELECT id, block FROM search_index_data`); err != nil {
		t.Fatal(err)
	}
	b = blocks{}
	for _, r := range rows {
		b[r.ID] = crc32.ChecksumIEEE(r.Block)
		hasWord = hasWord || bytes.Contains(r.Block, []byte(word))
	}
	return b, hasWord
}

// written is how many blocks were added or changed since before.
func (b blocks) written(before blocks) (n int) {
	for id, sum := range b {
		if old, was := before[id]; !was || old != sum {
			n++
		}
	}
	return n
}

// Messages that are deleted, or indexed, wait for no merge of the full-text
// index: at a million messages, one held up all mail for seconds.
func TestDeletingWaitsForNoMergeOfTheIndex(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, seqs := filledIndex(t, cfg, 1024)
	db := openRaw(t, cfg)
	unindex := func(seqs []int64) {
		t.Helper()
		if err := s.Unindex(t.Context(), seqs...); err != nil {
			t.Fatal(err)
		}
	}
	unindex(seqs[:64])
	if _, err := s.MergeIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := readBlocks(t, db, "")
	unindex(seqs[64:128])
	after, _ := readBlocks(t, db, "")
	t.Logf("the index has %d blocks; deleting 64 of its messages wrote %d", len(before), after.written(before))
	if n := after.written(before); n > 16 {
		t.Errorf("deleting 64 messages wrote %d blocks of the index", n)
	}
}

// Deleted words leave the index in short steps.
func TestIndexIsRewrittenInShortSteps(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, seqs := filledIndex(t, cfg, 1024)
	db := openRaw(t, cfg)
	const deleted = "zebra"
	before, there := readBlocks(t, db, deleted)
	if !there {
		t.Fatalf("%s is not in the index", deleted)
	}
	if err := s.Unindex(t.Context(), seqs[7]); err != nil {
		t.Fatal(err)
	}
	mergeAll(t, s, func() { t.Error("one deleted message is worth a merge") })
	if err := s.RewriteIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	steps := 0
	step := func() {
		after, _ := readBlocks(t, db, "")
		if n := after.written(before); n > 32 {
			t.Errorf("step %d wrote %d blocks of the index", steps, n)
		}
		before = after
		steps++
	}
	step()
	mergeAll(t, s, step)
	if after, there := readBlocks(t, db, deleted); there {
		t.Errorf("%s is still in the index", deleted)
	} else if steps < len(after)/32 {
		t.Errorf("%d steps rewrote an index of %d blocks", steps, len(after))
	}
	if err := s.RewriteIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	mergeAll(t, s, func() { t.Error("an index without deleted words is rewritten") })
}

// Merging keeps the index small: it joins many segments into few, and rewrites a
// level once enough of its messages are deleted.
func TestIndexStaysInFewParts(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, seqs := filledIndex(t, cfg, 2048) // 32 batches
	db := openRaw(t, cfg)
	var segments int
	if err := db.Get(&segments, `SELECT count(DISTINCT segid) FROM search_index_idx`); err != nil {
		t.Fatal(err)
	}
	if segments > 9 {
		t.Errorf("32 batches lie in %d segments", segments)
	}
	before, _ := readBlocks(t, db, "")
	if err := s.Unindex(t.Context(), seqs[:1024]...); err != nil {
		t.Fatal(err)
	}
	mergeAll(t, s, nil)
	if after, _ := readBlocks(t, db, ""); len(after) > len(before)*2/3 {
		t.Errorf("of %d blocks %d are left after half of the messages were deleted", len(before), len(after))
	}
}
