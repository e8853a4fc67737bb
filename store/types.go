package store

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
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

// JSON is a column that holds V as JSON text.
type JSON[T any] struct{ V T }

// Value implements driver.Valuer.
func (j JSON[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(j.V)
	if err != nil {
		return nil, fmt.Errorf("write JSON column: %w", err)
	}
	return string(b), nil
}

// Scan implements sql.Scanner.
func (j *JSON[T]) Scan(src any) error {
	var b []byte
	switch v := src.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	default:
		return fmt.Errorf("scan %T into a JSON column", src)
	}
	if decode(b, &j.V) {
		return nil
	}
	if err := json.Unmarshal(b, &j.V); err != nil {
		return fmt.Errorf("read JSON column: %w", err)
	}
	return nil
}

// Time is a point in time as stored in the database: UTC, in microseconds since
// 1970, truncated to the milliseconds that the API shows, so that comparisons
// agree with what clients see.
type Time struct{ time.Time }

// NewTime returns t in UTC, cut to the millisecond.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// TimePtr is NewTime for a column that may be null.
func TimePtr(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	st := NewTime(*t)
	return &st
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.UnixMicro(), nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("scan %T into Time", src)
	}
	t.Time = time.UnixMicro(us).UTC()
	return nil
}
