package handlers_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

// logBuffer is a log that a test can search.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// secretContent is content that only a valid link may return.
const secretContent = "the-content-of-the-attachment"

// fileServer stores a message with two attachments and returns the tokens of
// its three links.
func fileServer(t *testing.T, s *server) (m store.Message, tokens []string) {
	t.Helper()
	m = s.receive(t, s.newInbox(t), "Subject: Files\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n"+secretContent+
		"\n--b\nContent-Disposition: attachment; filename=a.html\nContent-Type: text/html\n\n<script>"+secretContent+" a</script>\n--b\n"+
		"Content-Disposition: attachment; filename=b.txt\n\n"+secretContent+" b\n--b--")
	tokens = []string{strings.TrimPrefix(s.rawLink(t, m), "/v1/files/")}
	for _, at := range m.Content.Attachments.V {
		link := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/attachments/"+at.ID, "").want(t, http.StatusOK).str(t, "download_url")
		tokens = append(tokens, strings.TrimPrefix(s.linked(t, link), "/v1/files/"))
	}
	return m, tokens
}

// withLog writes the log of a server to log.
func withLog(log io.Writer) func(*handlers.Config) {
	return func(c *handlers.Config) {
		c.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

// H10: none of 10,000 forged, truncated or spliced tokens returns any content.
func TestForgedFileTokensAreRefused(t *testing.T) {
	s := serve(t)
	m, tokens := fileServer(t, s)
	_, foreign := fileServer(t, newServer(t, s.store, s.clock, func(c *handlers.Config) { c.FileKey = bytes.Repeat([]byte("g"), 32) }))
	served, statuses, n, made := 0, map[int]int{}, 10_000, 0
	for token := range forgeries(m, tokens, foreign[0], n) {
		client := s.web.Client()
		if made++; made%50 == 1 { // validating all against the contract would take too long
			client = &http.Client{Transport: s.check.Transport(t, client.Transport)}
		}
		res, err := client.Get(s.url + "/v1/files/" + token)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil {
			t.Fatal(err)
		}
		statuses[res.StatusCode]++
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusNotFound || bytes.Contains(body, []byte(secretContent)) {
			served++
			t.Errorf("%s: %s", token, res.Status)
		}
	}
	t.Logf("%d served, statuses %v", served, statuses)
}

// forgeries yields at least n tokens that were never issued.
func forgeries(m store.Message, tokens []string, foreign string, n int) func(yield func(string) bool) {
	r := rand.New(rand.NewPCG(1, 2))
	enc := base64.RawURLEncoding
	decoded := make([][]byte, len(tokens))
	for i, token := range tokens {
		decoded[i], _ = enc.DecodeString(token) // valid, so it decodes
	}
	const mac = 32
	made := []string{
		foreign, enc.EncodeToString(decoded[0][mac:]), enc.EncodeToString(decoded[0][:mac]),
		enc.EncodeToString(append(make([]byte, mac), decoded[0][mac:]...)),
		enc.EncodeToString(append(bytes.Clone(decoded[0][:mac]), decoded[1][mac:]...)), // the signature of one link on another file
		enc.EncodeToString(append(bytes.Clone(decoded[1][:mac]), decoded[2][mac:]...)),
		base64.StdEncoding.EncodeToString(decoded[0]) + "==", tokens[0] + tokens[1], tokens[0] + "." + tokens[1],
		m.ID, m.Content.Attachments.V[0].ID, "null", "undefined", "0",
	}
	return func(yield func(string) bool) {
		for _, token := range made {
			if !yield(url.PathEscape(token)) {
				return
			}
		}
		for i := range n {
			token := tokens[i%len(tokens)]
			b := bytes.Clone(decoded[i%len(tokens)])
			switch i % 4 {
			case 0: // one bit
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
				token = enc.EncodeToString(b)
			case 1: // truncated
				token = token[:1+r.IntN(len(token)-1)]
			case 2: // extended
				token += string("ABCxyz019-_"[r.IntN(11)])
			case 3: // random
				for j := range b {
					b[j] = byte(r.IntN(256)) //nolint:gosec // it fits
				}
				token = enc.EncodeToString(b)
			}
			if !yield(token) {
				return
			}
		}
	}
}

// H10: a link works for 15 minutes, for one file, any number of times, and
// browsers never run its content.
func TestFileLinksServeOneFileFor15Minutes(t *testing.T) {
	s := serve(t)
	_, tokens := fileServer(t, s)
	want := []string{"Subject: Files", "<script>" + secretContent + " a</script>", secretContent + " b"}
	s.clock.Add(15*time.Minute - time.Second)
	for i, token := range tokens {
		for range 3 {
			res := s.do(t, http.MethodGet, "/v1/files/"+token, "", as("")).want(t, http.StatusOK)
			if !strings.Contains(string(res.body), want[i]) || i > 0 && strings.Contains(string(res.body), want[3-i]) {
				t.Errorf("link %d serves %q", i, res.body)
			}
			for header, value := range map[string]string{
				"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff",
				"Cache-Control": "private, no-store", "Content-Security-Policy": "sandbox",
			} {
				if got := res.header.Get(header); got != value {
					t.Errorf("%s: %q, want %q", header, got, value)
				}
			}
			if d := res.header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment;") {
				t.Errorf("Content-Disposition: %q", d)
			}
		}
		part := s.do(t, http.MethodGet, "/v1/files/"+token, "", as(""), with("Range", "bytes=0-6")).want(t, http.StatusPartialContent)
		if len(part.body) != 7 {
			t.Errorf("a range of 7 bytes has %d", len(part.body))
		}
	}
	s.do(t, http.MethodGet, "/v1/files/"+tokens[0], "", as("sk_live_bad")).want(t, http.StatusOK) // only the token counts
	s.clock.Add(2 * time.Second)
	for _, token := range tokens {
		s.do(t, http.MethodGet, "/v1/files/"+token, "", as("")).wantError(t, http.StatusForbidden, "link_invalid")
		s.do(t, http.MethodGet, "/v1/files/"+token, "").wantError(t, http.StatusForbidden, "link_invalid") // also with a key
	}
}

// H10: a link has only one spelling, and no spelling of its token appears in a
// log.
func TestFileLinkHasOneSpelling(t *testing.T) {
	var log logBuffer
	s := serve(t, withLog(&log))
	_, tokens := fileServer(t, s)
	good := tokens[1]
	if response := s.raw(t, "/v1/files/"+good); !strings.Contains(response, secretContent) {
		t.Fatalf("the link itself: %s", response)
	}
	forms := []string{
		"//v1/files/%s", "/v1//files/%s", "/v1/files//%s", "/v1/files/%s/", "/v1/files/./%s", "/v1/files/../files/%s",
		"/v1/files/%%2e%%2e/files/%s", "/v1/%%2e%%2e/v1/files/%s", "/v1/files/..%%2f%s", "/v1/files/..%%2ffiles%%2f%s",
		"/v1/files%%2f%s", "/v1/files/%s%%00", "/v1/files/%%00%s", "/v1/files/%s%%2f", "/v1/files/%s%%20", "/v1/files/%s.eml",
		"/v1/files/%s;a=b", "/V1/FILES/%s", "/v1/files/%s%%0d%%0aX-Y:%%20z", "/v1/messages/../files/%s", `/v1/files\%s`,
		"/v1/files/%%252e%%252e%%252f%s", "/v1/files/x?token=%s", "/v1/files/%s%%ff", "/files/%s", "/v1/files/%s/../%[1]s",
	}
	for _, form := range forms {
		path := fmt.Sprintf(form, good)
		response := s.raw(t, path)
		status := strings.SplitN(response+"  ", " ", 3)[1]
		if status != "403" && status != "404" || strings.Contains(response, secretContent) {
			t.Errorf("%s: %s", form, response)
		}
	}
	for _, etc := range []string{
		"/v1/files/../../../../etc/passwd", "/v1/files/..%2f..%2f..%2f..%2fetc%2fpasswd", "/v1/files/%2e%2e/%2e%2e/etc/passwd",
		"/v1/files//etc/passwd", "/v1/files/%00", "/v1/files/", "/v1/files",
	} {
		if response := s.raw(t, etc); strings.Contains(response, "root:") || !regexp.MustCompile(`^HTTP/1.1 40[34] `).MatchString(response) {
			t.Errorf("%s: %s", etc, response)
		}
	}
	for _, token := range tokens {
		if strings.Contains(log.String(), token) {
			t.Errorf("a token is in the log:\n%s", log.String())
		}
	}
	if !strings.Contains(log.String(), "/v1/files/…") {
		t.Error("the log has no entry of the requests")
	}
}

// raw sends a request for an unescaped path and returns the raw response.
func (s *server) raw(t *testing.T, path string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", path)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := io.ReadAll(bufio.NewReader(conn))
	must(t, err)
	s.check.Text(t, request, string(response))
	return string(response)
}
