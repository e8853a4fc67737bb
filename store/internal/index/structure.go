package index

import (
	"encoding/binary"
	"errors"
	"math"
)

// ftsStructure is what the structure record of an FTS5 index says: how its
// segments lie on levels, and how many rows of them are deleted. The format is
// documented in SQLite's fts5_index.c; it is part of the file format and stays
// readable.
type ftsStructure []ftsLevel

type ftsLevel struct {
	merging                   bool // a merge of the level has begun
	segments                  int
	pages, entries, tombstone int64
}

// ftsStructureV2 marks records that count deleted rows. The record begins with
// a cookie of 4 bytes.
const ftsStructureV2 = 0xff000001

var errStructure = errors.New("the structure record of the full-text index cannot be read")

func parseStructure(record []byte) (ftsStructure, error) {
	if len(record) == 0 {
		return nil, nil
	}
	if len(record) < 8 || binary.BigEndian.Uint32(record[4:]) != ftsStructureV2 {
		return nil, errStructure
	}
	r := ftsReader{rest: record[8:]}
	levels := r.number()
	r.number() // segments of all levels
	r.number() // pages written
	var s ftsStructure
	for range levels {
		l := ftsLevel{merging: r.number() > 0, segments: int(r.number())}
		for range l.segments {
			if r.bad {
				return nil, errStructure
			}
			r.number() // identifier
			first, last := r.number(), r.number()
			r.number() // origins
			r.number()
			r.number() // pages of tombstones
			l.pages += last - first + 1
			l.tombstone += r.number()
			l.entries += r.number()
		}
		if r.bad {
			return nil, errStructure
		}
		s = append(s, l)
	}
	return s, nil
}

// ftsReader reads the variable-length integers of SQLite, which are big-endian
// and at most 9 bytes long.
type ftsReader struct {
	rest []byte
	bad  bool
}

func (r *ftsReader) number() int64 {
	var n uint64
	for i, b := range r.rest {
		if i == 8 {
			n = n<<8 | uint64(b)
		} else {
			n = n<<7 | uint64(b&0x7f)
		}
		if b < 0x80 || i == 8 {
			r.rest = r.rest[i+1:]
			return int64(min(n, math.MaxInt64)) //nolint:gosec // bounded
		}
	}
	r.rest, r.bad = nil, true
	return 0
}

const (
	// mergeSegments is how many segments of one level FTS5 merges (usermerge).
	mergeSegments = 4
	// mergeDeleted is from how many deleted rows in a hundred on FTS5 merges a
	// level (deletemerge, which a migration sets).
	mergeDeleted = 5
)

// wantsMerge reports whether a merge of a few pages has anything to do.
func (s ftsStructure) wantsMerge() bool {
	for _, l := range s {
		if l.merging || l.segments >= mergeSegments || l.entries > 0 && l.tombstone*100/l.entries >= mergeDeleted {
			return true
		}
	}
	return false
}

// merging reports whether a merge has begun and not ended.
func (s ftsStructure) merging() bool {
	for _, l := range s {
		if l.merging {
			return true
		}
	}
	return false
}

// sum returns how many pages the index has, and how many deleted rows are still
// in it.
func (s ftsStructure) sum() (pages, deleted int64) {
	for _, l := range s {
		pages, deleted = pages+l.pages, deleted+l.tombstone
	}
	return pages, deleted
}
