//go:build clients

package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/internal/s3test"
	"github.com/postroom/postroom/store"
)

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// config returns the Config for a test server, parsed from an address.
func config(t *testing.T, s *s3test.Server, more ...string) s3blob.Config {
	t.Helper()
	cfg, err := s3blob.Parse(s.Address(more...))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = s3blob.Credentials{AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
	return cfg
}

func open(t *testing.T, cfg s3blob.Config) *s3blob.Blobs {
	t.Helper()
	b, err := s3blob.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func put(t *testing.T, b store.Blobs, content []byte) string {
	t.Helper()
	key, err := b.Put(t.Context(), bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func read(t *testing.T, b store.Blobs, key string) []byte {
	t.Helper()
	r, err := b.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestBlobsAreReadByteForByte(t *testing.T) {
	t.Parallel()
	b := open(t, config(t, s3test.Start(t)))
	for _, size := range []int{0, 1, 256<<10 + 1, 5 << 20, 30 << 20} {
		content := random(size)
		for name, r := range map[string]io.Reader{
			"a file": bytes.NewReader(content), "a stream": struct{ io.Reader }{bytes.NewReader(content)},
		} {
			key, err := b.Put(t.Context(), r, int64(size))
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, b, key); !bytes.Equal(got, content) {
				t.Errorf("%s of %d bytes: %d others came back", name, size, len(got))
			}
		}
	}
}

func TestBlobsAreReadFromAnywhere(t *testing.T) {
	t.Parallel()
	b := open(t, config(t, s3test.Start(t)))
	content := random(1 << 20)
	r, err := b.Open(t.Context(), put(t, b, content))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(r, content); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestHalfABlobIsNotStored(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t)
	b := open(t, config(t, s))
	for name, r := range map[string]io.Reader{
		"the sender goes away": io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("gone"))),
		"it is shorter":        strings.NewReader("half"),
	} {
		if key, err := b.Put(t.Context(), r, 8); err == nil {
			t.Errorf("%s: stored as %s", name, key)
		}
	}
	if err := b.Each(t.Context(), time.Now().Add(time.Hour), func(key string) error { return errors.New(key) }); err != nil {
		t.Errorf("stored: %v", err)
	}
}

func TestDeletedBlobsAreGone(t *testing.T) {
	t.Parallel()
	b := open(t, config(t, s3test.Start(t)))
	key := put(t, b, []byte("mail"))
	for range 2 {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if _, err := b.Open(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open: %v, want ErrNotFound", err)
	}
}

// A bucket may be shared with other installations and other data.
func TestPrefixesKeepToThemselves(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t)
	one, other := config(t, s), config(t, s)
	one.Prefix, other.Prefix = "mail/one", "mail/one-more"
	a, b := open(t, one), open(t, other)
	key := put(t, a, []byte("mail"))
	put(t, b, []byte("other mail"))
	for _, name := range []string{"mail/one/README", "mail/one/zz/01k5ttb2f6m1t8z4q7k2c9x3ye"} {
		file := filepath.Join(s.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for before, want := range map[time.Time][]string{time.Now().Add(time.Hour): {key}, time.Now().Add(-time.Hour): nil} {
		var got []string
		err := a.Each(t.Context(), before, func(key string) error { got = append(got, key); return nil })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("before %v: %v, %v, want %v", before, got, err, want)
		}
	}
	if _, err := b.Open(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another prefix: %v", err)
	}
}

func TestLinksAreTheBucketsOwn(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t)
	content := random(300 << 10)
	without := open(t, config(t, s))
	key := put(t, without, content)
	if link, err := without.Link(t.Context(), key, "a.eml", time.Minute); link != "" || err != nil {
		t.Errorf("not configured: %q, %v", link, err)
	}
	b := open(t, config(t, s, "links="+s.Endpoint))
	link, err := b.Link(t.Context(), key, `a "b".eml`, 15*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	res, body := fetch(t, link)
	if res.StatusCode != http.StatusOK || !bytes.Equal(body, content) {
		t.Errorf("%s, %d bytes", res.Status, len(body))
	}
	for header, want := range map[string]string{
		"Content-Disposition": `attachment; filename="a \"b\".eml"`, "Content-Type": "application/octet-stream",
		"Cache-Control": "private, no-store",
	} {
		if got := res.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	u, err := url.Parse(link)
	if err != nil || u.Query().Get("X-Amz-Expires") != "900" {
		t.Errorf("%s: valid for %s seconds", link, u.Query().Get("X-Amz-Expires"))
	}
	for name, forged := range map[string]string{
		"another object":    strings.Replace(link, key, strings.Repeat("0", len(key)), 1),
		"a longer TTL":      strings.Replace(link, "X-Amz-Expires=900", "X-Amz-Expires=9000", 1),
		"another signature": strings.Replace(link, "X-Amz-Signature=", "X-Amz-Signature=0", 1),
		"another type":      strings.Replace(link, "octet-stream", "html", 1),
		"no signature":      u.Scheme + "://" + u.Host + u.Path,
	} {
		if res, _ := fetch(t, forged); forged == link || res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}

func fetch(t *testing.T, link string) (*http.Response, []byte) {
	t.Helper()
	res, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

func TestUnreachableStorage(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t)
	b := open(t, config(t, s))
	content := random(300 << 10)
	key := put(t, b, content)
	s.Stop()
	_, putErr := b.Put(t.Context(), bytes.NewReader(content), int64(len(content)))
	_, openErr := b.Open(t.Context(), key)
	for name, err := range map[string]error{
		"put": putErr, "open": openErr, "delete": b.Delete(t.Context(), key),
		"each": b.Each(t.Context(), time.Now(), func(string) error { return nil }),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	if _, err := s3blob.Open(t.Context(), config(t, s)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("open the bucket: %v, want ErrUnavailable", err)
	}
	s.Resume()
	if got := read(t, b, key); !bytes.Equal(got, content) {
		t.Error("the blob is not what it was")
	}
}

func TestCallerThatCancels(t *testing.T) {
	t.Parallel()
	b := open(t, config(t, s3test.Start(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Put(ctx, strings.NewReader("mail"), 4); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v, want Canceled", err)
	}
}

func TestWrongBucketOrCredentials(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t)
	for name, edit := range map[string]func(*s3blob.Config){
		"no such bucket": func(c *s3blob.Config) { c.Bucket = "another" },
		"a wrong secret": func(c *s3blob.Config) { c.Credentials.SecretKey = "wrong" },
		"an unknown key": func(c *s3blob.Config) { c.Credentials.AccessKey = "UNKNOWN" },
		"a closed port":  func(c *s3blob.Config) { c.Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, s)
			edit(&cfg)
			_, err := s3blob.Open(t.Context(), cfg)
			if err == nil || strings.Contains(err.Error(), s3test.SecretKey) || !strings.Contains(err.Error(), cfg.Endpoint.Host) {
				t.Errorf("error %v", err)
			}
		})
	}
}
