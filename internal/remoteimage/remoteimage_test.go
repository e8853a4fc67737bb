package remoteimage_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/remoteimage"
)

// fetcher returns a Fetcher that may also reach this range.
func fetcher(allow string) *remoteimage.Fetcher {
	var cfg netguard.Config
	if allow != "" {
		cfg.Allow = []netip.Prefix{netip.MustParsePrefix(allow)}
	}
	return remoteimage.New(remoteimage.Config{Targets: netguard.NewTargets(netguard.New(cfg), nil), Timeout: 2 * time.Second})
}

const local = "127.0.0.1/32"

func encoded(t *testing.T, encode func(*bytes.Buffer, image.Image) error, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(b *bytes.Buffer, m image.Image) error  { return png.Encode(b, m) }
func asJPEG(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }
func asGIF(b *bytes.Buffer, m image.Image) error  { return gif.Encode(b, m, nil) }

// X2: the result is a bitmap image, whatever the response claims.
func TestOnlyImagesOfPixels(t *testing.T) {
	t.Parallel()
	pixel := encoded(t, asPNG, 1, 1)
	wide := bytes.Clone(pixel)
	copy(wide[16:24], "\x00\x00\xff\xff\x00\x00\xff\xff") // its header says 65,535 by 65,535
	tests := []struct {
		name, want string
		body       []byte
	}{
		{"a PNG", "image/png", pixel},
		{"a JPEG", "image/jpeg", encoded(t, asJPEG, 3, 2)},
		{"a GIF", "image/gif", encoded(t, asGIF, 3, 2)},
		{"a WebP", "image/webp", []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88")},
		{"a WebP too large", "", []byte("RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\x00\x00")},
		{"an SVG", "", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="x"/>`)},
		{"a page", "", []byte("<!doctype html><script>x</script>")},
		{"nothing", "", nil},
		{"the beginning of a PNG", "", pixel[:12]},
		{"more pixels than are shown", "", wide},
		{"more bytes than are fetched", "", append(bytes.Clone(pixel), make([]byte, remoteimage.MaxBytes)...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "image/svg+xml")
				_, _ = w.Write(tt.body)
			}))
			t.Cleanup(srv.Close)
			got, err := fetcher(local).Fetch(t.Context(), srv.URL+"/x.svg#y")
			if got.Type != tt.want || (err == nil) != (tt.want != "") || tt.want == "" && !errors.Is(err, remoteimage.ErrNoImage) {
				t.Errorf("got %q and %v, want %q", got.Type, err, tt.want)
			}
		})
	}
}

// W1 for images: only public addresses are reached, whether by address, name or
// redirect, and the request does not identify the user.
func TestGuard(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, address := range []string{
		inside.URL, "https://127.0.0.1" + port, "http://localhost" + port, "https://localhost" + port, "http://127.0.0.1", "https://[::1]" + port,
		"https://[::ffff:127.0.0.1]" + port, "https://2130706433" + port, "https://0x7f.1" + port, "https://10.0.0.1/", "http://169.254.169.254/latest/meta-data",
		"ftp://127.0.0.1/", "file:///etc/passwd", "https://user@127.0.0.1" + port, "gopher://x", "",
	} {
		if _, err := fetcher("").Fetch(t.Context(), address); !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s: %v, want it refused", address, err)
		}
	}
	// Only one address is allowed, and it redirects to another.
	for _, to := range []string{"http://127.0.0.2" + port, "https://[::1]" + port, "http://10.0.0.1/", "file:///etc/passwd"} {
		hop := httptest.NewServer(http.RedirectHandler(to, http.StatusFound))
		t.Cleanup(hop.Close)
		if _, err := fetcher(local).Fetch(t.Context(), hop.URL); !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("a redirect to %s: %v, want it refused", to, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestRequestRevealsNothing(t *testing.T) {
	t.Parallel()
	pixel := encoded(t, asPNG, 1, 1)
	header := make(chan http.Header, 5)
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"}) //nolint:gosec // only for this test
		if r.URL.Path == "/a" {
			http.Redirect(w, r, srv.URL+"/b", http.StatusFound)
			return
		}
		_, _ = w.Write(pixel)
	}))
	t.Cleanup(srv.Close)
	f := fetcher(local)
	if _, err := f.Fetch(t.Context(), srv.URL+"/a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h := <-header
		for _, name := range []string{"Cookie", "Referer", "Authorization", "Accept-Language", "X-Forwarded-For"} {
			if h.Get(name) != "" {
				t.Errorf("%s: %s", name, h.Get(name))
			}
		}
	}
}

// Endless responses and redirect loops are aborted.
func TestBounds(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/round":
			http.Redirect(w, r, srv.URL+"/round", http.StatusFound)
		case "/drip":
			_, _ = fmt.Fprint(w, "\x89PNG")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-stuck:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(func() { close(stuck); srv.Close() })
	for _, path := range []string{"/round", "/drip", "/none"} {
		if _, err := fetcher(local).Fetch(t.Context(), srv.URL+path); err == nil {
			t.Errorf("%s: an image", path)
		}
	}
}
