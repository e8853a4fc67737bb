package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/smtp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// script is one run of the scripted steps on one installation. It records
// requests and responses without the values that differ between runs.
type script struct {
	*install
	t     *testing.T
	key   string            // for the calls
	lines []string          // the transcript
	names map[string]string // maps ids to names such as msg#3 for the third message
	last  map[string]int    // number of names by kind

	arrived map[string]string // the last message that mail delivered to an inbox
}

// TestDatabasesGiveTheSameResponses runs the steps on both databases: the responses are
// equal except for ids and times (row C14).
func TestDatabasesGiveTheSameResponses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	transcripts := map[storetest.Engine][]string{}
	t.Run("play", func(t *testing.T) {
		for _, e := range storetest.Both() {
			t.Run(string(e), func(t *testing.T) {
				t.Parallel()
				s := &script{
					install: start(t, e, newChecker(t), "POSTROOM_RATE_LIMITS=off"), t: t, key: firstKey,
					names: map[string]string{}, last: map[string]int{}, arrived: map[string]string{},
				}
				for _, step := range scriptSteps {
					s.note("=== " + step.name)
					step.play(s)
				}
				mu.Lock()
				defer mu.Unlock()
				transcripts[e] = s.lines
			})
		}
	})
	one := transcripts[storetest.SQLite]
	if len(one) < len(scriptSteps) {
		t.Fatalf("the transcript has %d lines", len(one))
	}
	for e, other := range transcripts {
		if d := cmp.Diff(one, other); d != "" {
			t.Errorf("-%s +%s:\n%s", storetest.SQLite, e, d)
		}
	}
}

func (s *script) note(line string) { s.lines = append(s.lines, line) }

// ask makes a call and records it with its response.
func (s *script) ask(operation, path, body string, edits ...func(call) call) response {
	s.t.Helper()
	c := s.call(operation).as(s.key).breaking()
	if path != "" {
		c = c.at(path)
	}
	if body != "" {
		c = c.saying(body)
	}
	for _, edit := range edits {
		c = edit(c)
	}
	a := s.send(s.t, c)
	if a.status >= http.StatusInternalServerError {
		s.t.Errorf("%s: %d %s", a.call, a.status, a.body)
	}
	var query []string
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		query = append(query, name+"="+c.query.Get(name))
	}
	s.note(s.plain(fmt.Sprintf("%s %s?%s %s", operation, c.path, strings.Join(query, "&"), c.body)))
	s.note(s.plain(fmt.Sprintf("%d %v %s", a.status, telling(a.header), ordered(a.body))))
	return a
}

// withHeader, asking and asKey edit a call.
func withHeader(name, value string) func(call) call {
	return func(c call) call { return c.with(name, value) }
}

func asking(name, value string) func(call) call {
	return func(c call) call { return c.asking(name, value) }
}

func asKey(key string) func(call) call { return func(c call) call { return c.as(key) } }

// telling returns the headers that describe the response.
func telling(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"Content-Type", "Content-Disposition", "Content-Range", "Idempotent-Replayed", "Location", "Retry-After", "Allow", "WWW-Authenticate",
	} {
		if v := h.Get(name); v != "" {
			out[name] = v
		}
	}
	return out
}

// ordered returns a JSON body with sorted fields, and any other body unchanged.
func ordered(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return string(body)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	_ = e.Encode(v) // was valid JSON
	return b.String()
}

var (
	anyID     = regexp.MustCompile(`\b(?:[a-z]+_)?[0-9a-hjkmnp-tv-z]{26}\b|\b(?:[a-z]{2,5}_)[0-9a-hjkmnp-tv-z]{14,17}\b`)
	variables = []struct {
		is   *regexp.Regexp
		name string
	}{
		{regexp.MustCompile(`"key_hint": "[^"]*"`), `"key_hint": "HINT"`},
		{regexp.MustCompile(`"prefix": "sk_live_[^"]*"`), `"prefix": "PREFIX"`},
		{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "SECRET"},
		{regexp.MustCompile(`"(response_time_ms|last_duration_ms)": \d+`), `"$1": N`},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
		{regexp.MustCompile(`[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "DATE"},
		{regexp.MustCompile(`"waited_ms": \d+`), `"waited_ms": N`},
		{regexp.MustCompile(`/v1/files/[\w-]+`), "/v1/files/TOKEN"},
		{regexp.MustCompile(`\bpr-[a-z2-7]{8}-`), "pr-SELECTOR-"},
		{regexp.MustCompile(`p=[\w+/]{40,}=*`), "p=KEY"},
		{regexp.MustCompile(`\b[\w-]{43}\b`), "CURSOR"},
		{regexp.MustCompile(`=_[0-9a-f]{32}`), "BOUNDARY"},
	}
)

// plain replaces the values that differ between runs with names.
func (s *script) plain(text string) string {
	text = strings.NewReplacer(s.receiver, "http://RECEIVER", s.api, "http://HOST").Replace(text)
	for _, v := range variables {
		text = v.is.ReplaceAllString(text, v.name)
	}
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if s.names[id] == "" {
			kind, _, ok := strings.Cut(id, "_")
			if !ok {
				kind = "id"
			}
			s.last[kind]++
			s.names[id] = fmt.Sprintf("%s#%d", kind, s.last[kind])
		}
		return s.names[id]
	})
}

// mail delivers a message over SMTP and returns it once it has arrived.
func (s *script) mail(to inbox, text string) message {
	s.t.Helper()
	text = strings.ReplaceAll(strings.ReplaceAll(text, "OWN", to.Address), "\n", "\r\n")
	edits := []func(call) call{asking("since", "2026-01-01T00:00:00.000Z")}
	if last := s.arrived[to.ID]; last != "" {
		edits = append(edits, asking("after", last))
	}
	if err := smtp.SendMail(s.smtp, nil, "sender@example.org", []string{to.Address}, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	a := s.ask("waitForMessage", "/v1/inboxes/"+to.ID+"/messages/wait", "", edits...)
	found := read[struct{ Message *message }](s.t, a).Message
	if found == nil {
		s.t.Fatal("the message did not arrive")
	}
	s.arrived[to.ID] = found.ID
	return *found
}

// settle polls until no delivery is pending.
func (s *script) settle() {
	s.t.Helper()
	s.settled(s.call("listMessages").asking("direction", "out"))
	s.settled(s.call("listEmails"))
}

// settled waits until no delivery in a list is pending.
func (s *script) settled(list call) {
	s.t.Helper()
	waittest.Until(s.t, "no message is being delivered", func() bool {
		return !onItsWay.Match(s.send(s.t, list.asking("limit", "100")).want(s.t, http.StatusOK).body)
	})
}

// pages reads all pages of a list.
func (s *script) pages(operation, path string, edits ...func(call) call) {
	s.t.Helper()
	for {
		p := read[page](s.t, s.ask(operation, path, "", edits...))
		if p.Cursor == nil {
			return
		}
		edits = append(slices.Clone(edits), asking("cursor", *p.Cursor))
	}
}
