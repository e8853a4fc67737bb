package handlers_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// H8: a forged cursor, or one of another list, filter or account, gets 400 and
// reveals nothing.
func TestCursorsThatAreNotOurs(t *testing.T) {
	skiptest.UnderRace(t)
	s := serve(t)
	in := s.newInbox(t)
	for i := range 4 {
		s.receive(t, in, fmt.Sprintf("From: a%d@out.example\nSubject: red %d", i, i))
	}
	s.index(t, 2)
	lists := []string{
		"/v1/messages?limit=1", "/v1/messages?limit=1&q=red", "/v1/messages?limit=1&q=red&direction=in", "/v1/messages?limit=1&q=%22red+1%22",
		"/v1/inboxes/" + in.ID + "/messages?limit=1", "/v1/inboxes/" + in.ID + "/messages?limit=1&q=red",
		"/v1/inboxes/" + in.ID + "/threads?limit=1", "/v1/messages?limit=1&subject=red", "/v1/messages?limit=1&from=*@out.example",
		"/v1/messages?limit=1&since=2020-01-01T00:00:00Z",
	}
	refused := func(list, cursor string) {
		t.Helper()
		s.do(t, http.MethodGet, list+"&cursor="+url.QueryEscape(cursor), "").wantError(t, http.StatusBadRequest, "invalid_request cursor")
	}
	cursors := map[string]string{}
	for _, list := range lists {
		page := s.do(t, http.MethodGet, list, "").want(t, http.StatusOK)
		if has, _ := page.get(t, "has_more"); has != true {
			if !strings.Contains(list, "%22") {
				t.Fatalf("%s has no second page", list)
			}
			continue
		}
		cursors[list] = page.str(t, "cursor")
	}
	for list, cursor := range cursors {
		for _, other := range lists {
			if other != list {
				refused(other, cursor)
			}
		}
		for _, bad := range []string{cursor + "A", cursor[1:], strings.Repeat("A", 43), strings.Repeat("A", 200), cursor + "\n", " " + cursor} {
			refused(list, bad)
		}
		s.do(t, http.MethodGet, list+"&cursor="+strings.Repeat("A", 201), "", broken).wantError(t, http.StatusBadRequest, "invalid_request cursor")
	}
	flips := 0
	for list, cursor := range cursors {
		for _, bad := range flipped(t, cursor) {
			refused(list, bad)
			if flips++; flips%200 == 0 {
				break // enough for this list
			}
		}
	}
	if flips < 1000 {
		t.Errorf("tried only %d flips", flips)
	}
	s.account = s.otherInbox(t).AccountID
	key := s.newKey(t)
	for list, cursor := range cursors {
		if strings.HasPrefix(list, "/v1/messages") {
			s.do(t, http.MethodGet, list+"&cursor="+cursor, "", as(key)).wantError(t, http.StatusBadRequest, "invalid_request cursor")
		}
	}
}

// flipped returns cursors that differ from cursor in one bit.
func flipped(t *testing.T, cursor string) []string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	must(t, err)
	var all []string
	for i := range 8 * len(b) {
		one := slices.Clone(b)
		one[i/8] ^= 1 << (i % 8)
		all = append(all, base64.RawURLEncoding.EncodeToString(one))
	}
	return all
}

// H19: no search input is an operator, a wildcard or SQL. It has its literal
// meaning on both databases and never fails.
func TestHostileSearchesAreLiteral(t *testing.T) {
	skiptest.UnderRace(t)
	t.Parallel()
	messages := hostileMessages()
	found := map[storetest.Engine][]string{}
	asked := hostileQueries()
	t.Run("ask", func(t *testing.T) {
		for _, e := range storetest.Both() {
			t.Run(string(e), func(t *testing.T) {
				clock := storetest.NewClock(begin)
				s := newServer(t, storetest.Open(t, e, storetest.WithNow(clock.Now)), clock)
				in := s.newInbox(t)
				for _, m := range messages {
					s.receive(t, in, "From: "+m.from+"\nSubject: "+m.subject+"\n\n"+m.text)
				}
				s.index(t, len(messages)/2)
				var got []string
				for i, q := range asked {
					got = append(got, strings.Join(s.subjectsOf(t, in, q.params), "|"))
					if i%20 > 0 {
						continue // below HTTP all are the same
					}
					if d := cmp.Diff(got[i], strings.Join(s.found(t, "/v1/messages", q.params), "|")); d != "" {
						t.Errorf("%s: the API found (-want +got):\n%s", q.params.Encode(), d)
					}
				}
				found[e] = got
			})
		}
	})
	for i, q := range asked {
		var want []string
		for _, m := range slices.Backward(messages) {
			if q.match(m) {
				want = append(want, m.subject)
			}
		}
		for _, e := range storetest.Both() {
			if d := cmp.Diff(strings.Join(want, "|"), found[e][i]); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", e, q.params.Encode(), d)
			}
		}
	}
	if len(asked) < 1000 {
		t.Errorf("asked only %d questions", len(asked))
	}
}

// subjectsOf returns the subjects that the store finds for these list
// parameters.
func (s *server) subjectsOf(t *testing.T, in store.Inbox, params url.Values) []string {
	t.Helper()
	f := store.MessageFilter{
		AccountID: in.AccountID, FromLike: mail.LikePattern(params.Get("from")), Subject: strings.ToLower(params.Get("subject")),
	}
	if q := params.Get("q"); q != "" {
		f.Text = search.Parse(q)
	}
	l, err := s.store.ListMessages(t.Context(), f, store.Page{Limit: 100})
	if err != nil {
		t.Fatalf("%s: %v", params.Encode(), err)
	}
	var subjects []string
	for _, m := range l.Rows {
		subjects = append(subjects, m.Subject)
	}
	return subjects
}

type hostileMail struct {
	from, subject, text string
	folded              [2]string // subject and text, as searched
}

// hostileMessages returns messages that contain the parts of the queries.
func hostileMessages() []hostileMail {
	froms := []string{"a%b@x_y.example", "axb@xzy.example", "a_b@sub.x_y.example", `o'hara@quote.example`, "star+tag@example.org"}
	subjects := []string{
		"100% off_now", "100x off now", `Back\slash path`, "near and not or", "it's a test; drop table messages", "col words rowid",
		"plain alpha beta", "beta alpha", "alpha-beta", "gamma NEAR delta", "(paren) [bracket] {brace}", "caret^hat star* colon:",
	}
	var messages []hostileMail
	for i, subject := range subjects {
		for j := range 2 {
			n := i*2 + j
			m := hostileMail{from: froms[n%len(froms)], subject: subject + fmt.Sprintf(" %d", n), text: subjects[(i+3*j+1)%len(subjects)] + " in the text."}
			m.folded = [2]string{" " + plaintext.FoldForSearch(m.subject) + " ", " " + plaintext.FoldForSearch(m.text) + " "}
			messages = append(messages, m)
		}
	}
	return messages
}

// hostileQuery is a query with its expected result, computed without a
// database.
type hostileQuery struct {
	params url.Values
	match  func(hostileMail) bool
}

// hostileQueries are queries in the syntax of FTS5, tsquery, LIKE and SQL.
func hostileQueries() []hostileQuery {
	pieces := []string{
		"AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR/3", "(", ")", "((", "))", "*", "alpha*", "^alpha", `"`, `""`, `"alpha beta"`, `"beta alpha`, ":", "words:alpha",
		"{words}:", "-alpha", "+beta", "- rowid", "&", "|", "!", "<->", "<2>", ":*", ":A", `\`, `\'`, "'", "''", ";", "--", "/*", "*/", "%", "_", "100%", "off_now",
		"alpha", "beta", "gamma delta", "drop table messages", "' OR '1'='1", "1=1", "$1", "?1", "@a", "x'00'", "paren", "(paren)", "[bracket]", "caret^hat",
		"star*", "colon:", "near", "not or", "it's", "rowid", "search_index", "text", "ünïcode", "ＡＬＰＨＡ", "\t", "é́", "☃",
	}
	r := rand.New(rand.NewPCG(19, 19))
	var all []hostileQuery
	add := func(q string) {
		if q = strings.TrimSpace(q); q != "" && len([]rune(q)) <= 200 {
			all = append(all, hostileQuery{url.Values{"q": {q}, "limit": {"100"}}, literally(q)})
		}
	}
	for _, p := range pieces {
		add(p)
		add(p + " alpha")
		add("alpha " + p)
		add(strings.Repeat(p+" ", 200/(len([]rune(p))+1)))
	}
	for len(all) < 1000 {
		var q []string
		for range 1 + r.IntN(5) {
			q = append(q, pieces[r.IntN(len(pieces))])
		}
		add(strings.Join(q, []string{" ", "", "  "}[r.IntN(3)]))
	}
	for _, from := range []string{
		"*@*%_", "%", "_", "*", "**", "*%*", "*_*", "a%b@x_y.example", "A%B@*", "*@x_y.example", "*@*.x_y.example", `o'hara@*`, `*\*`, `\`, "a?b@*", "star+tag@example.org",
		"' OR 1=1 --", "*@", "@*", "*@*@*", strings.Repeat("*a", 127),
	} {
		// A "*" matches any characters; all other characters match themselves.
		pattern := strings.ReplaceAll(regexp.QuoteMeta(mail.FoldAddress(from)), `\*`, ".*")
		match := regexp.MustCompile("(?s)^" + pattern + "$")
		all = append(all, hostileQuery{url.Values{"from": {from}, "limit": {"100"}}, func(m hostileMail) bool { return match.MatchString(mail.FoldAddress(m.from)) }})
	}
	for _, part := range []string{"%", "_", "100%", "f_n", `k\s`, `\`, "'s", "; DROP", "*", "(PAREN)", "alpha-", "-- ", "  "} {
		all = append(all, hostileQuery{url.Values{"subject": {part}, "limit": {"100"}}, func(m hostileMail) bool {
			return strings.Contains(strings.ToLower(m.subject), strings.ToLower(part))
		}})
	}
	return all
}

// literally reports whether a message contains the words and phrases of q.
func literally(q string) func(hostileMail) bool {
	var phrases []string
	for i, part := range strings.Split(q, `"`) {
		texts := []string{part}
		if i%2 == 0 {
			texts = strings.Fields(part)
		}
		for _, text := range texts {
			if phrase := plaintext.FoldForSearch(text); phrase != "" {
				phrases = append(phrases, " "+phrase+" ")
			}
		}
	}
	return func(m hostileMail) bool {
		for _, phrase := range phrases {
			if !strings.Contains(m.folded[0], phrase) && !strings.Contains(m.folded[1], phrase) {
				return false
			}
		}
		return len(phrases) > 0
	}
}
