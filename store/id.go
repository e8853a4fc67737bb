package store

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// crockford is the lower-case base32 alphabet of ULIDs: it sorts as the bytes
// do and has no letters that are easily confused.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns prefix and a body of 26 characters: 48 bits of milliseconds,
// so that ids sort by time, and 80 random bits, so that none can be guessed.
func NewID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // crypto/rand never fails
	return encodeID(prefix, b)
}

// firstID is what no id of that prefix and time, or later, sorts before.
func firstID(prefix string, at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16)
	return encodeID(prefix, b)
}

func encodeID(prefix string, b [16]byte) string {
	var sb strings.Builder
	sb.Grow(len(prefix) + 26)
	sb.WriteString(prefix)
	sb.WriteString(crockford.EncodeToString(b[:]))
	return sb.String()
}

// idTime is the time in the last 26 characters of an id.
func idTime(id string) (time.Time, bool) {
	b, err := crockford.DecodeString(id[max(0, len(id)-26):])
	if err != nil || len(b) != 16 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16)), true //nolint:gosec // 48 bits
}
