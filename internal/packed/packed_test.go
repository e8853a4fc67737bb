package packed_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/packed"
)

func TestBodiesAreGzippedForClientsThatAcceptIt(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a body that is the same for every client.  ", 100)
	plain := packed.New([]byte(text))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		accept string
		gzip   bool
	}{
		{"", false},
		{"gzip", true},
		{"br, GZIP;q=0.5", true},
		{"deflate, gzip ; q=1", true},
		{"gzip;q=0", false},
		{"gzip; q=0.000", false},
		{"identity", false},
		{"x-gzip-not", false},
	}
	for _, tt := range tests {
		for _, body := range []*packed.Body{plain, packed.FromGzip(b.Bytes())} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if tt.accept != "" {
				r.Header.Set("Accept-Encoding", tt.accept)
			}
			w := httptest.NewRecorder()
			body.Serve(w, r)
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != tt.gzip {
				t.Errorf("Accept-Encoding %q: gzipped %t, want %t", tt.accept, got, tt.gzip)
			}
			if w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("Accept-Encoding %q: a cache may serve it to other clients", tt.accept)
			}
			if got := read(t, w, tt.gzip); got != text {
				t.Errorf("Accept-Encoding %q: %d bytes that are not the body", tt.accept, len(got))
			}
		}
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder, gzipped bool) string {
	t.Helper()
	var body io.Reader = w.Body
	if gzipped {
		if w.Body.Len() > 400 {
			t.Errorf("gzipped it has %d bytes", w.Body.Len())
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Error(err)
			return ""
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
