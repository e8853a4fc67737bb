package faults_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// TestHostileWebhookResponsesUseLittleMemory makes endpoints respond with 1 GB, without
// end, with a small body that decompresses to 1 GB, and with 1 MB of headers. The
// service uses no more memory for them than for endpoints with empty responses. Row W5
// of docs/testing.md.
func TestHostileWebhookResponsesUseLittleMemory(t *testing.T) {
	const most = 5 // MiB more
	in := newInstallation(t, storetest.SQLite)
	in.settings = append(in.settings, mayPostHere)
	alone.Lock()
	defer alone.Unlock()
	in.start()
	server := httptest.NewServer(hostileResponses(t))
	t.Cleanup(server.Close)
	paths := []string{"/large", "/endless", "/packed", "/header"}
	hooks := map[string]string{}
	for _, path := range append(paths, "/nothing") {
		hooks[path] = in.createHook(server.URL + path)
	}
	calls := pick(200, 4000)
	// The baseline is the peak after as many harmless calls, repeated until the peak
	// no longer grows.
	before, grown := 0, true
	for grown {
		inParallel(t, calls, func(ctx context.Context, _ int) error { return in.testHook(ctx, hooks["/nothing"], true) })
		now := in.peak()
		before, grown = now, now > before
	}
	inParallel(t, calls, func(ctx context.Context, i int) error {
		path := paths[i%len(paths)]
		return in.testHook(ctx, hooks[path], path != "/header")
	})
	after := in.peak()
	t.Logf("%d calls; peak %d MiB before, %d MiB after", calls, before, after)
	if after-before >= most {
		t.Errorf("it used %d MiB more", after-before)
	}
}

// testHook sends a test event to an endpoint through the API.
func (in *installation) testHook(ctx context.Context, id string, success bool) error {
	c := in.current().caller()
	defer c.close()
	a, err := c.do(ctx, http.MethodPost, "/v1/webhooks/"+id+"/test", nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK || !strings.Contains(string(a.body), `"success":`+strconv.FormatBool(success)) {
		return &unwanted{"test", a}
	}
	return nil
}

func hostileResponses(t *testing.T) http.Handler {
	t.Helper()
	const gib = 1 << 30
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.CopyN(z, same('0'), int64(gib/pick(16, 1))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(gib))
		_, _ = io.CopyN(w, same('x'), gib) // until the client closes the connection
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, same('x')) })
	mux.HandleFunc("/packed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 1 << 10 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 1<<10))
		}
	})
	return mux
}

// same reads as one byte without end.
type same byte

func (s same) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s)
	}
	return len(b), nil
}
