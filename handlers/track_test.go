package handlers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

func tracking(c *handlers.Config) { c.TrackOpens, c.TrackClicks = true, true }

// person is the User-Agent of a browser.
var person = with("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")

// sentHTML sends an email and returns its id and its final HTML.
func (s *server) sentHTML(t *testing.T, body string, opts ...option) (id, html string) {
	t.Helper()
	res := s.do(t, http.MethodPost, "/v1/emails", body, opts...).want(t, http.StatusCreated)
	id = res.str(t, "id")
	e, err := s.store.Email(t.Context(), s.account, nil, id)
	must(t, err)
	if strings.Contains(e.Content.Body.V.HTML, "/t/") {
		t.Errorf("the stored value differs from the request: %s", e.Content.Body.V.HTML)
	}
	raw, err := s.store.Raw(t.Context(), e.Seq)
	must(t, err)
	defer func() { _ = raw.Close() }()
	b, err := io.ReadAll(raw)
	must(t, err)
	m, err := mime.Parse(bytes.NewReader(b), mail.DefaultLimits())
	must(t, err)
	if strings.Contains(m.Text, "/t/") {
		t.Errorf("the text is changed: %s", m.Text)
	}
	return id, m.HTML
}

// handOver delivers the queue and advances the clock.
func (s *server) handOver(t *testing.T) {
	t.Helper()
	claimed, err := s.store.ClaimRecipients(t.Context(), 100, time.Minute, nil)
	must(t, err)
	for _, c := range claimed {
		a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered, Response: "250 OK"}
		must(t, s.store.RecordAttempt(t.Context(), a))
	}
}

// engagements returns the events of opens and clicks, such as "email.clicked
// bot https://a.example".
func (s *server) engagements(t *testing.T) []string {
	t.Helper()
	all, err := s.store.EventsOf(t.Context(), s.account, 0, math.MaxInt64, 1000)
	must(t, err)
	var events []string
	for _, e := range all {
		if e.Type != store.EventEmailOpened && e.Type != store.EventEmailClicked {
			continue
		}
		var data store.EventData
		must(t, json.Unmarshal([]byte(e.Data), &data))
		who := "person"
		if data.Bot {
			who = "bot"
		}
		events = append(events, strings.TrimSpace(string(e.Type)+" "+who+" "+data.Link))
	}
	return events
}

var tracked = regexp.MustCompile(`(?:href|src)="([^"]*)(/t/[oc]/[^"]*)"`)

const trackedEmail = `{"from":"hello@` + mailDomain + `","to":"ann@out.example","subject":"s",` +
	`"html":"<p><a href='https://shop.example/?a=1&amp;b=2'>Shop</a> <a href='mailto:a@b.example'>Write</a></p>"}`

// Events say whether a person or a machine opened or clicked. Machines change
// no status, HEAD does not count, and the redirect always works (O14).
func TestOpensAndClicks(t *testing.T) {
	s := serve(t, tracking)
	id, html := s.sentHTML(t, trackedEmail)
	found := tracked.FindAllStringSubmatch(html, -1)
	if len(found) != 2 || !strings.Contains(html, `href='mailto:a@b.example'`) || found[0][1] != s.url || found[1][1] != s.url {
		t.Fatalf("html is %s", html)
	}
	click, open := found[0][2], found[1][2]
	status := func(want string) {
		t.Helper()
		s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).wantAt(t, "status", `"`+want+`"`)
	}
	s.follow(t, http.MethodGet, open, "", person).want(t, http.StatusOK) // automatic: before the delivery
	status("queued")
	s.handOver(t)
	s.follow(t, http.MethodGet, click, "", person).want(t, http.StatusFound) // automatic: too soon after the delivery
	s.clock.Add(time.Minute)
	s.follow(t, http.MethodHead, click, "", person).want(t, http.StatusFound)
	s.follow(t, http.MethodHead, open, "", person).want(t, http.StatusOK)
	for _, machine := range []option{
		with("User-Agent", "Mozilla/5.0"), with("User-Agent", "Mozilla/5.0 (compatible; ExampleBot/2.1)"), with("User-Agent", ""),
		func(r *http.Request) *http.Request { return with("Sec-Purpose", "prefetch;prerender")(person(r)) },
		func(r *http.Request) *http.Request { return with("X-Moz", "prefetch")(person(r)) },
	} {
		s.follow(t, http.MethodGet, open, "", machine).want(t, http.StatusOK)
	}
	status("delivered")
	picture := s.follow(t, http.MethodGet, open, "", person).want(t, http.StatusOK)
	if picture.header.Get("Content-Type") != "image/gif" || picture.header.Get("Cache-Control") != "no-store" || len(picture.body) != 42 {
		t.Errorf("the picture is %v, %d bytes", picture.header, len(picture.body))
	}
	status("opened")
	res := s.follow(t, http.MethodGet, click, "", person).want(t, http.StatusFound)
	if to := res.header.Get("Location"); to != "https://shop.example/?a=1&b=2" {
		t.Errorf("the link leads to %s", to)
	}
	status("clicked")
	s.follow(t, http.MethodPost, click, "x=y", person).want(t, http.StatusMethodNotAllowed)
	bots := strings.Split(strings.Repeat("email.opened bot,", 5), ",")[:5]
	want := append([]string{"email.clicked bot https://shop.example/?a=1&b=2"}, bots...)
	want = append(want, "email.opened person", "email.clicked person https://shop.example/?a=1&b=2")
	if d := cmp.Diff(want, s.engagements(t)); d != "" {
		t.Error(d)
	}
}

// Links redirect only to the target in the message (O14).
func TestNoOpenRedirect(t *testing.T) {
	s := serve(t)
	sign := newFeedback(t)
	mail := feedback.Tracked{Account: s.account, ID: "em_1"}
	token := sign.Click(mail, "https://shop.example/")
	for _, path := range []string{
		"/t/c/", "/t/c/https://evil.example/", "/t/c//evil.example", "/t/c/" + token + "x", "/t/c/x" + token, "/t/c/" + token[:30], "/t/c/" + token + "/../x",
		"/t/c/" + token + "%20", "/t/c/%0d%0aLocation:%20https:%2f%2fevil.example", "/t/c/" + sign.Open(mail), "/t/o/" + token, "/t/o/", "/t/x/" + token,
		"/t/c/" + sign.Unsubscribe(feedback.Subscription{Account: 1, Message: 1, Email: "https://evil.example/"}),
		"/t/c/" + sign.Click(mail, "javascript:alert(1)"), "/t/c/" + sign.Click(mail, "//evil.example"), "/t/c/" + sign.Click(mail, "https://a.example\r\nX: y"),
		"/t/c/?url=https://evil.example/", "/t/c?u=https://evil.example/",
	} {
		res := s.follow(t, http.MethodGet, path, "", person).want(t, http.StatusNotFound)
		if to := res.header.Get("Location"); to != "" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	for _, path := range []string{"/t/c/" + token, "/t/c/" + token + "?url=https://evil.example/&next=//evil.example"} {
		res := s.follow(t, http.MethodGet, path, "", person, with("Referer", "https://evil.example/"), with("X-Forwarded-Host", "evil.example")).want(t, http.StatusFound)
		if to := res.header.Get("Location"); to != "https://shop.example/" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
}

// Tracking is off by default and applies only to emails with one recipient.
func TestWhatIsTracked(t *testing.T) {
	without := func(s string) string { return strings.Replace(trackedEmail, `"ann@out.example"`, s, 1) }
	t.Run("by default", func(t *testing.T) {
		s := serve(t)
		if _, html := s.sentHTML(t, trackedEmail); tracked.MatchString(html) {
			t.Errorf("by default: %s", html)
		}
	})
	t.Run("one recipient", func(t *testing.T) {
		s := serve(t, tracking)
		testKey := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
		for name, opts := range map[string][]option{
			trackedEmail: {testKey},
			without(`["ann@out.example","bob@out.example"]`):     nil,
			without(`"ann@out.example","bcc":"bob@out.example"`): nil,
		} {
			if _, html := s.sentHTML(t, name, opts...); tracked.MatchString(html) {
				t.Errorf("%s: %s", name, html)
			}
		}
		in := s.newInbox(t)
		s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"ann@out.example","subject":"s","html":"<a href='https://a.example/'>x</a>"}`).
			want(t, http.StatusCreated).wantAt(t, "html", `"<a href='https://a.example/'>x</a>"`)
	})
	t.Run("clicks alone", func(t *testing.T) {
		s := serve(t, func(c *handlers.Config) { c.TrackClicks = true })
		if _, html := s.sentHTML(t, trackedEmail); strings.Contains(html, "/t/o/") || !strings.Contains(html, "/t/c/") {
			t.Errorf("clicks alone: %s", html)
		}
	})
}
