// Package checksum says whether stored content is what was written. SQLite has no
// checksums of its own, and a flipped bit in a text is a valid text.
package checksum

import (
	"hash/crc32"
	"io"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// Of returns the CRC-32C of bytes.
func Of(b []byte) uint32 { return crc32.Checksum(b, table) }

// Add returns the CRC-32C of what sum is of, followed by b.
func Add(sum uint32, b []byte) uint32 { return crc32.Update(sum, table, b) }

// New returns the checksum of the content of a message: in its upper half that of the
// raw message, in its lower half that of the columns derived from it, each a string or
// nil. It is never 0.
func New(raw uint32, columns ...any) int64 {
	sum := int64(raw)<<32 | int64(of(columns))
	if sum == 0 {
		return 1 // 0 means that there is none
	}
	return sum
}

// of returns the checksum of columns, and keeps apart where they begin, and nil from
// the empty text.
func of(columns []any) uint32 {
	var sum uint32
	for _, c := range columns {
		text, ok := c.(string)
		if !ok {
			sum = crc32.Update(sum, table, []byte{0, 0})
			continue
		}
		sum = crc32.Update(sum, table, []byte(text))
		sum = crc32.Update(sum, table, []byte{0})
	}
	return sum
}

// IsRaw reports whether the raw message has the checksum that New was called with.
func IsRaw(sum int64, raw uint32) bool { return sum == 1 && raw == 0 || uint32(sum>>32) == raw } //nolint:gosec // the upper half

// IsDerived reports whether the columns have the checksum that New was called with.
func IsDerived(sum int64, columns ...any) bool {
	return sum == New(uint32(sum>>32), columns...) //nolint:gosec // the upper half
}

// Reader computes the CRC-32C of what is read from R since its beginning.
type Reader struct {
	R   io.Reader
	Sum uint32
}

func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.R.Read(p)
	r.Sum = crc32.Update(r.Sum, table, p[:n])
	return n, err
}

// SeekReader is a Reader that can go back, so that an upload can be tried again.
type SeekReader struct {
	Reader
	S io.Seeker // R
}

// Seek moves R. From the beginning, the checksum is computed again; elsewhere it is
// wrong.
func (r *SeekReader) Seek(offset int64, whence int) (int64, error) {
	at, err := r.S.Seek(offset, whence)
	if at == 0 {
		r.Sum = 0
	}
	return at, err
}
