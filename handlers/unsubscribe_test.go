package handlers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// follow opens a link like a mail client: without key or cookies, and without
// validation, because these links are not part of the contract.
func (s *server) follow(t *testing.T, method, path, body string, opts ...option) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, opt := range opts {
		req = opt(req)
	}
	client := &http.Client{Transport: s.web.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	must(t, err)
	return response{res.StatusCode, res.Header, b}
}

// onList returns the suppression of an address, or nil.
func (s *server) onList(t *testing.T, account int64, email string) *store.Suppression {
	t.Helper()
	l, err := s.store.ListSuppressions(t.Context(), account, nil, store.Page{Limit: 100})
	must(t, err)
	for _, sup := range l.Rows {
		if sup.EmailFold == email {
			return &sup
		}
	}
	return nil
}

const oneClick = "List-Unsubscribe=One-Click"

// Opening the link changes nothing. Posting unsubscribes from the marketing
// email of that account only (O7, O8).
func TestUnsubscribe(t *testing.T) {
	s := serve(t)
	w := s.webhookForAll(t)
	contact := strings.TrimPrefix(s.newContact(t, `{"email":"ann@out.example"}`), "/v1/contacts/")
	e := storetest.Email(t, s.store, s.account, []string{"Ann@out.example"})
	other := storetest.Account(t, s.store).Seq
	link := "/u/" + newFeedback(t).Unsubscribe(feedback.Subscription{Account: s.account, Message: e.Seq, Email: "Ann@out.example"})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		s.follow(t, method, link+"?"+oneClick, "")
	}
	if sup := s.onList(t, s.account, "ann@out.example"); sup != nil {
		t.Fatalf("without a POST: %+v", sup)
	}
	for range 2 {
		s.follow(t, http.MethodPost, link, oneClick).want(t, http.StatusOK)
	}
	sup := s.onList(t, s.account, "ann@out.example")
	if sup == nil || sup.Reason != store.SuppressedUnsubscribe || sup.Category != store.SuppressMarketing || sup.Source == nil || *sup.Source != e.ID {
		t.Fatalf("after a POST: %+v", sup)
	}
	if sup := s.onList(t, other, "ann@out.example"); sup != nil {
		t.Errorf("in another account: %+v", sup)
	}
	marketing := `{"from":"hello@` + mailDomain + `","to":"ann@out.example","subject":"s","text":"t","category":"marketing"}`
	s.do(t, http.MethodPost, "/v1/emails", marketing).wantError(t, http.StatusUnprocessableEntity, "recipient_suppressed to")
	s.do(t, http.MethodPost, "/v1/emails", strings.Replace(marketing, "marketing", "transactional", 1)).want(t, http.StatusCreated)
	s.do(t, http.MethodDelete, "/v1/suppressions/ann@out.example", "").want(t, http.StatusOK)
	s.do(t, http.MethodPost, "/v1/emails", marketing).want(t, http.StatusCreated)
	s.follow(t, http.MethodPost, link, "").want(t, http.StatusOK) // multipart or empty: only the link counts
	if s.onList(t, s.account, "ann@out.example") == nil {
		t.Error("the link works once only")
	}
	got := s.bodies(t, w)
	if n := len(got[store.EventUnsubscribed]); n != 2 || len(got[store.EventSuppressionCreated]) != 2 || len(got[store.EventSuppressionDeleted]) != 1 {
		t.Fatalf("%d events of an unsubscribe: %v", n, got)
	}
	if want := `"data":{"contact_id":"` + contact + `","email":"Ann@out.example","email_id":"` + e.ID + `","object":"unsubscribed"}`; !strings.Contains(got[store.EventUnsubscribed][0], want) {
		t.Errorf("%s, want %s", got[store.EventUnsubscribed][0], want)
	}
}

// The page loads no other resources, runs no scripts, and shows the address as
// text.
func TestUnsubscribePage(t *testing.T) {
	s := serve(t)
	hostile := `"<script>alert(1)</script>"@out.example`
	link := "/u/" + newFeedback(t).Unsubscribe(feedback.Subscription{Account: s.account, Message: 1, Email: hostile})
	page := s.follow(t, http.MethodGet, link, "").want(t, http.StatusOK)
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	policy := page.header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) || strings.Contains(policy, "unsafe") {
			t.Errorf("policy %s", policy)
		}
	}
	body := string(page.body)
	for _, want := range []string{`<form method="post">`, "<button>", `name="viewport"`, "light-dark(", "&lt;script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, never := range []string{"<script", "http:", "https:", "src=", "@import", "url("} {
		if strings.Contains(body, never) {
			t.Errorf("the page has %s", never)
		}
	}
	if cookies := page.header.Values("Set-Cookie"); len(cookies) > 0 {
		t.Errorf("the page sets %v", cookies)
	}
	if head := s.follow(t, http.MethodHead, link, "").want(t, http.StatusOK); len(head.body) > 0 {
		t.Error("HEAD has a body")
	}
}

// Forged links do nothing, however many there are (O8).
func TestForgedUnsubscribeLinks(t *testing.T) {
	s := serve(t)
	sub := feedback.Subscription{Account: s.account, Message: 1, Email: "ann@out.example"}
	token := newFeedback(t).Unsubscribe(sub)
	opened := newFeedback(t).Open(feedback.Tracked{Account: s.account, ID: "em_1"})
	for i := range forgedLinks {
		b := []byte(token)
		at := i % len(b)
		b[at] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[(strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", b[at])+1+i/len(b))%64]
		if string(b) == token {
			continue
		}
		s.follow(t, http.MethodPost, "/u/"+string(b), oneClick).want(t, http.StatusNotFound)
	}
	for _, path := range []string{"", opened, token + "/", token + "%0a", "%2e%2e/" + token, token[:20] + "/" + token[20:]} {
		s.follow(t, http.MethodPost, "/u/"+path, oneClick).want(t, http.StatusNotFound)
	}
	if sup := s.onList(t, s.account, "ann@out.example"); sup != nil {
		t.Errorf("forged links have unsubscribed %+v", sup)
	}
}

// Guesses count against the client address. A real link still works.
func TestGuessedLinksAreLimited(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.RateLimits = true })
	for range 60 {
		s.follow(t, http.MethodPost, "/u/x", oneClick).want(t, http.StatusNotFound)
	}
	s.follow(t, http.MethodPost, "/u/x", oneClick).want(t, http.StatusTooManyRequests)
	link := "/u/" + newFeedback(t).Unsubscribe(feedback.Subscription{Account: s.account, Message: 1, Email: "ann@out.example"})
	s.follow(t, http.MethodPost, link, oneClick).want(t, http.StatusOK)
}
