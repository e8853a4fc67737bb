package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// submit submits a message of these header fields to bob, or to others.
func (s *server) submit(t *testing.T, key, header string, to ...string) (handlers.Submitted, error) {
	t.Helper()
	if to == nil {
		to = []string{"bob@far.example"}
	}
	raw := strings.ReplaceAll(header, "\n", "\r\n") + "\r\nHello from " + t.Name() + ".\r\n"
	return s.service.Submit(t.Context(), key, loopback, handlers.RawMail{
		MailFrom: "ann@mail.example", RcptTo: to, Host: "mx.in.example", With: "ESMTPSA",
		Open: func() (io.ReadSeeker, error) { return strings.NewReader(raw), nil },
	})
}

func (s *server) submits(t *testing.T, key, header string, to ...string) handlers.Submitted {
	t.Helper()
	done, err := s.submit(t, key, header, to...)
	if err != nil {
		t.Fatalf("%v, after\n%s", err, header)
	}
	return done
}

// refuses wants a submission to be refused with a code and a part of the text.
func (s *server) refuses(t *testing.T, key, header, want string, to ...string) {
	t.Helper()
	done, err := s.submit(t, key, header, to...)
	if e, ok := errors.AsType[*httpapi.Error](err); !ok || !strings.Contains(e.Error(), want) {
		t.Errorf("%v %v, want %q, after\n%s", done, err, want, header)
	}
}

// fields are those of a successful response.
func (s *server) fields(t *testing.T, r response) map[string]any {
	t.Helper()
	if r.status >= 300 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	var out map[string]any
	must(t, json.Unmarshal(r.body, &out))
	return out
}

func (s *server) rawText(t *testing.T, id string) string {
	t.Helper()
	raw := s.rawOfEmail(t, id)
	b, err := io.ReadAll(raw)
	must(t, err)
	return string(b)
}

func TestSubmitIsSentAsComposed(t *testing.T) {
	s := serve(t)
	const header = "From: Shop <shop@mail.example>\nTo: Bob <bob@far.example>, list@far.example\nBcc: eve@far.example\nSubject: Hi\n" +
		"X-Odd:  kept \n\tas it is\nX-Postroom-Tag: flow=welcome\nX-Postroom-Tag: n=1=2\nX-Postroom-Metadata: {\"order\": 7}\n" +
		"X-Postroom-Category: marketing\nReturn-Path: <x@mail.example>\nSender: Desk <desk@MAIL.example>\n" +
		"Authentication-Results: mail.example; dmarc=pass\nauthentication-results: (x) MAIL.example. 1;\n\tdmarc=pass\n" +
		"Authentication-Results: \"mx.in.example\"; dmarc=pass\nAuthentication-Results: mx.far.example; dmarc=pass\n" +
		"Resent-Sender: ceo@bank.example\nResent-From: ceo@bank.example\nresent-to: a@far.example\nMessage-ID: <own@mail.example>\n"
	done := s.submits(t, s.key, header, "bob@far.example", "eve@far.example")
	if !strings.HasPrefix(done.ID, "em_") || done.Held || done.Repeated {
		t.Fatalf("%+v", done)
	}
	e := s.fields(t, s.do(t, http.MethodGet, "/v1/emails/"+done.ID, ""))
	for path, want := range map[string]any{
		"from": "Shop <shop@mail.example>", "subject": "Hi", "text": "Hello from " + t.Name() + ".\n", "category": "marketing",
		"to": []any{"Bob <bob@far.example>", "list@far.example"}, "bcc": []any{"eve@far.example"},
		"tags": map[string]any{"flow": "welcome", "n": "1=2"}, "metadata": map[string]any{"order": 7.0},
	} {
		if got := e[path]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if rcpts, _ := e["recipients"].([]any); len(rcpts) != 2 {
		t.Errorf("recipients %v", e["recipients"])
	}
	raw := s.rawText(t, done.ID)
	trace, rest, _ := strings.Cut(raw, "From: ")
	want := "From: Shop <shop@mail.example>\r\nTo: Bob <bob@far.example>, list@far.example\r\nSubject: Hi\r\nX-Odd:  kept \r\n\tas it is\r\n" +
		"Sender: Desk <desk@MAIL.example>\r\nAuthentication-Results: mx.far.example; dmarc=pass\r\nMessage-ID: <own@mail.example>\r\n\r\nHello from " + t.Name() + ".\r\n"
	if "From: "+rest != want || !strings.HasPrefix(trace, "Received: by mx.in.example with ESMTPSA id ") || strings.Count(trace, "\r\nDate: ") != 1 {
		t.Errorf("sent as\n%q\nwant\n%q", raw, want)
	}
}

// A line over 998 bytes would be folded on the way, which breaks the signature.
func TestSubmittedLongLinesAreEncoded(t *testing.T) {
	s := serve(t)
	raw, err := os.ReadFile("../internal/mail/testdata/reports/47-long-line.eml")
	must(t, err)
	header, body, _ := strings.Cut(strings.Replace(string(raw), "shop@cases.example", "shop@mail.example", 1), "\r\n\r\n")
	submit := func(raw string) (handlers.Submitted, error) {
		return s.service.Submit(t.Context(), s.key, loopback, handlers.RawMail{
			MailFrom: "shop@mail.example", RcptTo: []string{"bob@far.example"}, Host: "mx.in.example", With: "ESMTPSA",
			Open: func() (io.ReadSeeker, error) { return strings.NewReader(raw), nil },
		})
	}
	done, err := submit(header + "\r\n\r\n" + body)
	must(t, err)
	sent := s.rawText(t, done.ID)
	for line := range strings.SplitSeq(sent, "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes: %.80s", len(line), line)
		}
	}
	m, err := mime.Parse(strings.NewReader(sent), mail.DefaultLimits())
	if want := strings.ReplaceAll(body, "\r\n", "\n"); err != nil || m.HTML != want {
		t.Errorf("HTML %q, %v, want %q", m.HTML, err, want)
	}
	e := s.fields(t, s.do(t, http.MethodGet, "/v1/emails/"+done.ID, ""))
	if e["html"] != m.HTML {
		t.Errorf("the email has the HTML %v", e["html"])
	}
	_, err = submit(strings.Replace(header, "Content-Type: text/html", "Content-Type: message/rfc822", 1) + "\r\n\r\n" + body)
	if err == nil || !strings.Contains(err.Error(), "message has a line of more than 998 bytes") {
		t.Errorf("a message that cannot be encoded: %v", err)
	}
}

func TestSubmitOnce(t *testing.T) {
	s := serve(t)
	const header = "From: shop@mail.example\nSubject: Hi\n"
	first := s.submits(t, s.key, header+"Message-ID: <1@mail.example>\n")
	again := s.submits(t, s.key, header+"Message-ID: <1@mail.example>\n")
	if first.Repeated || !again.Repeated || again.ID != first.ID {
		t.Errorf("%+v, then %+v", first, again)
	}
	for name, other := range map[string]handlers.Submitted{
		"another recipient":   s.submits(t, s.key, header+"Message-ID: <1@mail.example>\n", "bob@far.example", "eve@far.example"),
		"another Message-ID":  s.submits(t, s.key, header+"Message-ID: <2@mail.example>\n"),
		"another key":         s.submits(t, s.newKey(t), header+"Message-ID: <1@mail.example>\n"),
		"no Message-ID":       s.submits(t, s.key, header),
		"no Message-ID again": s.submits(t, s.key, header),
	} {
		if other.Repeated || other.ID == first.ID {
			t.Errorf("%s: %+v", name, other)
		}
	}
	key := header + "X-Postroom-Idempotency-Key: order-7\n"
	first = s.submits(t, s.key, key+"Message-ID: <3@mail.example>\n")
	if again := s.submits(t, s.key, key+"Message-ID: <4@mail.example>\n"); !again.Repeated || again.ID != first.ID {
		t.Errorf("with a key: %+v, then %+v", first, again)
	}
	s.refuses(t, s.key, strings.Replace(key, "Hi", "Other", 1), "idempotency_key_reused")
	s.clock.Add(25 * time.Hour)
	if late := s.submits(t, s.key, header+"Message-ID: <1@mail.example>\n"); late.Repeated {
		t.Errorf("after a day: %+v", late)
	}
}

func TestSubmitFromAnInbox(t *testing.T) {
	s := serve(t)
	open := s.fields(t, s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"agent"}`))
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"held","send_policy":"approval"}`).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"shy","send_policy":"reply_only"}`).want(t, http.StatusCreated)
	done := s.submits(t, s.key, "From: Agent <agent@mail.example>\nTo: bob@far.example\nSubject: Hi\nMessage-ID: <1@mail.example>\n")
	m := s.fields(t, s.do(t, http.MethodGet, "/v1/messages/"+done.ID, ""))
	if m["inbox_id"] != open["id"] || m["status"] != "queued" || m["rfc_message_id"] != "<1@mail.example>" {
		t.Errorf("%v", m)
	}
	reply := s.submits(t, s.key, "From: agent@mail.example\nSubject: Re: Hi\nIn-Reply-To: <1@mail.example>\nMessage-ID: <2@mail.example>\n")
	if r := s.fields(t, s.do(t, http.MethodGet, "/v1/messages/"+reply.ID, "")); r["thread_id"] != m["thread_id"] {
		t.Errorf("the reply is in thread %v, not %v", r["thread_id"], m["thread_id"])
	}
	held := s.submits(t, s.key, "From: held@mail.example\nSubject: Hi\nMessage-ID: <3@mail.example>\n")
	if !held.Held || !strings.HasPrefix(held.ID, "drf_") {
		t.Errorf("%+v", held)
	}
	if again := s.submits(t, s.key, "From: held@mail.example\nSubject: Hi\nMessage-ID: <3@mail.example>\n"); !again.Held || !again.Repeated || again.ID != held.ID {
		t.Errorf("again: %+v", again)
	}
	sent := s.fields(t, s.do(t, http.MethodPost, "/v1/drafts/"+held.ID+"/send", ""))
	if sent["text"] != "Hello from "+t.Name()+".\n" {
		t.Errorf("sent after approval: %q", sent["text"])
	}
	s.refuses(t, s.key, "From: shy@mail.example\nTo: bob@far.example\nSubject: Hi\n", "recipient_not_allowed: to[0]")
	s.refuses(t, s.key, "From: shy@mail.example\nSubject: Hi\n", "recipient_not_allowed: bcc[0]")
	if email := s.submits(t, s.key, "From: held@mail.example\nX-Postroom-Tag: a=b\n"); !email.Held || !strings.HasPrefix(email.ID, "drf_") {
		t.Errorf("an email: %+v", email)
	}
}

func TestSubmitRefuses(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.RateLimits = false })
	const from = "From: shop@mail.example\n"
	for _, tt := range []struct{ header, want string }{
		{"Subject: Hi\n", "invalid_request: from must have exactly one address"},
		{"From: a@mail.example, b@mail.example\n", "from must have exactly one"},
		{from + "From: ceo@bank.example\n", "from must occur once"},
		{"From: ceo@bank.example\n", "domain_not_verified: from ceo@bank.example must be"},
		{"From: ceo@bank.example <shop@mail.example>\n", "from must have the form"},
		{"From: <ceo@bank.example> shop@mail.example\n", "from must"},
		{"From: shop@mail.example (x) <ceo@bank.example>\n", "from must"},
		{from + "Sender: ceo@bank.example\n", "domain_not_verified: sender ceo@bank.example must be on"},
		{from + "Sender: CEO <ceo@bank.example>\nX-Postroom-Template: tpl_none\n", "domain_not_verified: sender ceo@bank.example must be on"},
		{from + "Sender: Postroom <No-Reply@mail.example>\n", "domain_not_verified: sender No-Reply@mail.example is the address of the service"},
		{from + "Sender: a@mail.example, b@mail.example\n", "sender must have exactly one address"},
		{from + "Sender: shop@mail.example\nSender: ceo@bank.example\n", "sender must occur once"},
		{from + "Sender: postmaster@mail.example <ceo@bank.example>\n", "sender must have the form"},
		{from + "no field\n", "line in its header that is not a header field"},
		{from + "Subject: a\nSubject: b\n", "subject must occur once"},
		{from + "X-Postroom-Tag: a\n", "X-Postroom-tag must have the form name=value"},
		{from + "X-Postroom-Metadata: [1]\n", "must be a JSON object"},
		{from + "X-Postroom-Category: spam\n", "must be transactional or marketing"},
		{from + "X-Postroom-Scheduled-At: tomorrow\n", "must be a time"},
		{from + "X-Postroom-Scheduled-At: 2099-01-01T00:00:00Z\n", "scheduledAt must be at most 30 days ahead"},
		{from + "X-Postroom-Template: tpl_none\n", "template not found"},
		{from + "X-Postroom-Whatever: 1\n", "X-Postroom-whatever is not an option"},
	} {
		s.refuses(t, s.key, tt.header, tt.want)
	}
	mine, theirs := s.newInbox(t), s.newInbox(t)
	agent := s.newKey(t, scopes("send"), onlyInboxes(mine.ID))
	s.refuses(t, agent, "From: "+mine.Address+"\nSender: "+theirs.Address+"\n", "insufficient_scope: this key sends from its inboxes only")
	s.submits(t, agent, "From: "+mine.Address+"\nSender: "+mine.Address+"\n")
	s.refuses(t, "sk_live_wrong", from, "unauthorized")
	s.refuses(t, s.newKey(t, func(k *store.Key) { k.Scopes.V = []string{"read"} }), from, "insufficient_scope: this key lacks the scope emails:send")
	s.refuses(t, s.newKey(t, func(k *store.Key) { k.AllowedIPs.V = []string{"192.0.2.0/24"} }), from, "ip_not_allowed")
	s.do(t, http.MethodPost, "/v1/suppressions", `{"email":"gone@far.example"}`).want(t, http.StatusCreated)
	s.refuses(t, s.key, from, "recipient_suppressed", "gone@far.example")
	e := s.submits(t, s.key, from, "gone@far.example", "bob@far.example")
	if got := fmt.Sprint(s.fields(t, s.do(t, http.MethodGet, "/v1/emails/"+e.ID, ""))["recipients"]); !strings.Contains(got, "status:suppressed") {
		t.Errorf("recipients %s", got)
	}
	for key, good := range map[string]bool{
		s.newKey(t, func(k *store.Key) { k.Scopes.V = []string{"emails:send"} }): true, s.newKey(t, func(k *store.Key) { k.Scopes.V = []string{"send"} }): true, s.key: true,
		s.newKey(t, func(k *store.Key) { k.Scopes.V = []string{"read"} }): false, s.newKey(t, func(k *store.Key) { k.AllowedIPs.V = []string{"192.0.2.0/24"} }): false, "": false,
	} {
		if err := s.service.Login(t.Context(), key, loopback); (err == nil) != good {
			t.Errorf("login: %v, want success %t", err, good)
		}
	}
}

func TestSubmitWithATemplate(t *testing.T) {
	s := serve(t)
	tpl := s.fields(t, s.do(t, http.MethodPost, "/v1/templates", `{"name":"welcome","subject":"Welcome","html":"<p>Hello {{name}}</p>"}`))
	header := fmt.Sprintf("From: shop@mail.example\nTo: bob@far.example\nSubject: Hi {{name}}\nX-Postroom-Template: %s\n", tpl["id"])
	done := s.submits(t, s.key, header+"X-Postroom-Variables: {\"name\":\"Bob\"}\n")
	e := s.fields(t, s.do(t, http.MethodGet, "/v1/emails/"+done.ID, ""))
	if e["html"] != "<p>Hello Bob</p>" || e["subject"] != "Hi Bob" || strings.Contains(s.rawText(t, done.ID), "Hello from") {
		t.Errorf("%v", e)
	}
	s.refuses(t, s.key, header, "template_variable_missing")
}

func TestSubmitCountsWrongKeysByAddress(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.RateLimits = true })
	for range 60 {
		if err := s.service.Login(t.Context(), "sk_live_wrong", loopback); !strings.Contains(err.Error(), "unauthorized") {
			t.Fatal(err)
		}
	}
	if err := s.service.Login(t.Context(), "sk_live_wrong", loopback); !strings.Contains(fmt.Sprint(err), "rate_limited") {
		t.Errorf("the 61st wrong key: %v", err)
	}
}
