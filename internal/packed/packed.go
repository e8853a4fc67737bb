// Package packed serves bodies that are the same for everybody: gzipped to
// clients that take that (RFC 9110 section 12.5.3), and as they are to others.
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
	plain   []byte // nil: unpacked for who asks
}

// New returns a body that is packed when it is first asked for so.
func New(plain []byte) *Body {
	return &Body{plain: plain, gzipped: sync.OnceValue(func() []byte { return pack(plain) })}
}

// FromGzip returns a body that is packed already.
func FromGzip(gzipped []byte) *Body {
	return &Body{gzipped: func() []byte { return gzipped }}
}

func pack(plain []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // there is such a level
	_, _ = z.Write(plain)                                 // a buffer takes everything
	_ = z.Close()                                         // as above
	return b.Bytes()
}

// Serve answers r with the body. The caller has set what kind it is.
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
		_, _ = w.Write(b.plain) // as above
	default:
		z, err := gzip.NewReader(bytes.NewReader(b.gzipped()))
		if err != nil {
			http.Error(w, "the file cannot be unpacked", http.StatusInternalServerError)
			return
		}
		_, _ = io.Copy(w, z) //nolint:gosec // of our own; the client may have gone
	}
}

// accepts says whether the client takes gzip: it names it, and not with q=0.
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
