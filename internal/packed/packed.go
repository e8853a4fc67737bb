// Package packed serves bodies that are the same for every client: gzipped to clients that
// accept gzip (RFC 9110 section 12.5.3), and plain to others.
package packed

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Body is a body in both forms. It is safe for use by many goroutines.
type Body struct {
	gzipped func() []byte
	plain   []byte // nil: decompressed for each request
}

// New returns a body that is gzipped at the first request that accepts it.
func New(plain []byte) *Body {
	return &Body{plain: plain, gzipped: sync.OnceValue(func() []byte { return pack(plain) })}
}

// FromGzip returns a body from its gzipped form.
func FromGzip(gzipped []byte) *Body {
	return &Body{gzipped: func() []byte { return gzipped }}
}

func pack(plain []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(plain)                                 // a buffer never fails
	_ = z.Close()                                         // a buffer never fails
	return b.Bytes()
}

// Serve writes the body as the response to r. The caller sets the Content-Type.
func (b *Body) Serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	switch {
	case accepts(r):
		body := b.gzipped()
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // the client may have gone
	case b.plain != nil:
		h.Set("Content-Length", strconv.Itoa(len(b.plain)))
		_, _ = w.Write(b.plain) // the client may have gone
	default:
		z, err := gzip.NewReader(bytes.NewReader(b.gzipped()))
		if err != nil {
			http.Error(w, "the file cannot be decompressed", http.StatusInternalServerError)
			return
		}
		_, _ = io.Copy(w, z) //nolint:gosec // the data is our own; the client may have gone
	}
}

// accepts reports whether the client accepts gzip: it names gzip, and not with q=0.
func accepts(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			coding, weight, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			_, q, given := strings.Cut(strings.ReplaceAll(strings.ToLower(weight), " ", ""), "q=")
			return !given || strings.Trim(q, "0.") != ""
		}
	}
	return false
}
