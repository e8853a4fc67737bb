package handlers_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// newHandler returns the API without a socket.
func newHandler(t *testing.T, st *store.Store, edits ...func(*handlers.Config)) http.Handler {
	t.Helper()
	cfg := handlers.Config{
		Config:     httpapi.Config{Store: st, Now: func() time.Time { return begin }, Log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		MailDomain: mailDomain, BaseURL: &url.URL{Scheme: "http", Host: "x"}, FileKey: make([]byte, 32), KeyPrefix: "sk",
		SendPolicy: store.PolicyOpen, Version: "test", Stopping: make(chan struct{}),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	h, err := handlers.New(cfg)
	must(t, err)
	return h
}

// A panic gets a response without details.
func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v1/inboxes", nil)
	r.Header.Set("Authorization", "Bearer sk_live_any")
	newHandler(t, nil).ServeHTTP(w, r) // panics at the first use of the store
	if w.Code != http.StatusInternalServerError || w.Header().Get("X-Request-Id") == "" {
		t.Errorf("status %d", w.Code)
	}
	want := `{"error":{"code":"internal_error","message":"internal error","request_id":"` + w.Header().Get("X-Request-Id") + `"}}`
	if got := w.Body.String(); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

// socket records the deadlines that a handler sets.
type socket struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.read = append(s.read, t)
	return nil
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.write = append(s.write, t)
	return nil
}

// Only requests with a body have a read deadline: it would end a wait, because
// net/http keeps reading to detect a disconnect. Deadlines use the real clock.
func TestDeadlinesOfTheSocket(t *testing.T) {
	t.Parallel()
	h := newHandler(t, storetest.OpenSQLite(t))
	for _, tt := range []struct {
		method, body string
		reads        int
	}{
		{http.MethodGet, "", 0},
		{http.MethodPost, "{}", 1},
	} {
		before := time.Now()
		w := &socket{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(tt.method, "/v1/inboxes", strings.NewReader(tt.body))
		if tt.body == "" {
			r = httptest.NewRequest(tt.method, "/v1/inboxes", nil)
		}
		h.ServeHTTP(w, r)
		if len(w.read) != tt.reads || len(w.write) != 1 {
			t.Fatalf("%s: deadlines %v and %v", tt.method, w.read, w.write)
		}
		for _, at := range w.read { // H6: a body of one byte per second gets 408 after 30 s
			if left := at.Sub(before); left < 29*time.Second || left > 31*time.Second {
				t.Errorf("%s: a body may take %v", tt.method, left)
			}
		}
		if left := w.write[0].Sub(before); left < 120*time.Second {
			t.Errorf("%s: the deadline of %v is too short for a wait of two minutes", tt.method, left)
		}
	}
}

// An unknown database error is a 500, even during the key lookup. It must not
// look like a bad key.
func TestUnknownFaultOfTheStore(t *testing.T) {
	s := serve(t)
	s.exec(t, `ALTER TABLE api_keys RENAME COLUMN hint TO was_hint`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/inboxes", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+s.key)
	res, err := s.web.Client().Do(r) // not checked: no operation documents 500
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	response{res.StatusCode, res.Header, body}.wantError(t, http.StatusInternalServerError, "internal_error").
		wantAt(t, "error.message", `"internal error"`)
}

// slowly returns its bytes and then blocks until the deadline.
type slowly struct{ io.Reader }

func (b slowly) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// H6: a body that is too slow gets an error, and the connection is closed.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	st := storetest.OpenSQLite(t)
	storetest.Key(t, st, storetest.Account(t, st).Seq, "slow")
	r := httptest.NewRequest(http.MethodPost, "/v1/inboxes", slowly{strings.NewReader(`{"name":`)})
	r.ContentLength = 100
	r.Header.Set("Authorization", "Bearer "+storetest.Secret("slow"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	newHandler(t, st).ServeHTTP(w, r)
	if w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), `"code":"request_timeout"`) || w.Header().Get("Connection") != "close" {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}

// A large body may take longer. Its end clears the read deadline.
func TestDeadlineOfALargeBody(t *testing.T) {
	t.Parallel()
	st := storetest.OpenSQLite(t)
	storetest.Key(t, st, storetest.Account(t, st).Seq, "large")
	r := httptest.NewRequest(http.MethodPost, "/v1/inboxes", strings.NewReader(`{"display_name":"`+strings.Repeat("a", 5<<20)+`"}`))
	r.Header.Set("Authorization", "Bearer "+storetest.Secret("large"))
	r.Header.Set("Content-Type", "application/json")
	w := &socket{ResponseRecorder: httptest.NewRecorder()}
	newHandler(t, st).ServeHTTP(w, r)
	if len(w.read) < 2 || time.Until(w.read[0]) < 2*time.Minute || !w.read[1].IsZero() || !w.read[len(w.read)-1].IsZero() {
		t.Errorf("deadlines for reading: %v", w.read)
	}
}

// HEAD has the status and headers of GET, and no body.
func TestHeadIsGetWithoutTheBody(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: Hi")
	for path, status := range map[string]int{
		"/health": http.StatusOK, "/openapi.json": http.StatusOK, "/v1/inboxes": http.StatusOK, "/v1/inboxes/" + in.ID: http.StatusOK,
		"/v1/messages/" + m.ID: http.StatusOK, "/v1/messages/" + m.ID + "/raw": http.StatusFound, "/v1/inboxes/none": http.StatusNotFound,
		"/v1/files/forged": http.StatusForbidden, "/v1/inboxes/" + in.ID + "/messages/wait?timeout=1": http.StatusOK,
		"/v1/events/stream": http.StatusOK,
	} {
		head := s.do(t, http.MethodHead, path, "").want(t, status)
		if len(head.body) > 0 {
			t.Errorf("HEAD %s has a body: %s", path, head.body)
		}
		if path == "/v1/events/stream" {
			continue // GET does not end
		}
		get := s.do(t, http.MethodGet, path, "").want(t, status)
		if got, want := head.header.Get("Content-Type"), get.header.Get("Content-Type"); got != want {
			t.Errorf("HEAD %s: Content-Type %q, want %q", path, got, want)
		}
	}
	res := s.do(t, http.MethodHead, "/v1/emails/batch", "").want(t, http.StatusMethodNotAllowed)
	if allow := res.header.Get("Allow"); allow != http.MethodPost {
		t.Errorf("Allow %q", allow)
	}
}

// What is reported about a response names the caller and the path, without the query
// and without the token of a link.
func TestResponsesAreReported(t *testing.T) {
	t.Parallel()
	reported := make(chan httpapi.Response, 10)
	s := newServer(t, storetest.OpenSQLite(t), storetest.NewClock(begin), func(c *handlers.Config) {
		c.OnResponse = func(r httpapi.Response) { reported <- r }
	})
	key, err := s.store.KeyByHash(t.Context(), store.HashKey(s.key))
	must(t, err)
	s.do(t, http.MethodGet, "/v1/messages?q=secret", "").want(t, http.StatusOK)
	if r := <-reported; r.Path != "/v1/messages" || r.Caller != key.ID || r.AccountID != s.account || r.Status != http.StatusOK || !r.IP.IsValid() {
		t.Errorf("reported %+v", r)
	}
	s.do(t, http.MethodGet, "/v1/files/forged", "").want(t, http.StatusForbidden)
	if r := <-reported; strings.Contains(r.Path, "forged") || r.Caller != "" || r.AccountID != 0 {
		t.Errorf("reported %+v", r)
	}
}
