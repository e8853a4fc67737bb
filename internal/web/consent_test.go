package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/store"
)

// The verifier of RFC 7636, appendix B, and its challenge.
const (
	pkceVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	pkceChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorization registers an application and returns the address to which it sends a
// person.
func (s *site) authorization(t *testing.T, name, redirect string) string {
	t.Helper()
	c, err := s.store.RegisterClient(t.Context(), name, []string{redirect})
	must(t, err)
	return oauth.AuthorizePath + "?" + url.Values{
		"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {redirect}, "code_challenge": {pkceChallenge}, "code_challenge_method": {"S256"},
		"state": {"x"},
	}.Encode()
}

// connect connects an application.
func (s *site) connect(t *testing.T, name string) {
	t.Helper()
	at, err := url.Parse(s.authorization(t, name, "https://client.example/callback"))
	must(t, err)
	req, err := s.apps.Request(t.Context(), at.Query())
	must(t, err)
	to, err := s.apps.Approve(t.Context(), req, s.account, store.Rights{Name: name, Scopes: []string{"read"}})
	must(t, err)
	s.exchange(t, req.Client.ID, to)
}

// exchange uses the code that an application got at an address.
func (s *site) exchange(t *testing.T, client, at string) {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	s.visit(t).post("/oauth/token", []string{
		"grant_type", "authorization_code", "client_id", client, "code", u.Query().Get("code"), "code_verifier", pkceVerifier,
	}).want(t, http.StatusOK).has(t, `"access_token":"sk_oauth_`)
}

// A person reads who asks, chooses an inbox, and comes back to the application on this
// computer: the browser lets the form redirect there. Then the person disconnects it.
func TestBrowserConnectsAnApplication(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "signup", gen.SendPolicyOpen)
		s.newInbox(t, "billing", gen.SendPolicyOpen)
		came := make(chan string, 4)
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" {
				came <- r.URL.String()
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<!doctype html><title>The application</title><p id=back>Connected")) // the browser may be gone
		}))
		t.Cleanup(app.Close)
		var b *tab
		back := func() string {
			t.Helper()
			select {
			case at := <-came:
				b.do(chromedp.WaitVisible(chromedp.CSS("#back"))) // else the next page could meet the redirect
				return at
			case <-time.After(patience):
				t.Fatal("the browser did not come back to the application")
				return ""
			}
		}
		asks := s.authorization(t, "Claude <b>Code</b>", app.URL+"/callback")
		b = s.browse(t)
		b.elsewhere = true
		b.open(asks)
		b.shows("Claude <b>Code</b>", "not verified", "this computer (127.0.0.1)", in.Address)
		if got := b.eval(`document.querySelector('[name=preset]:checked').value + ' ' + document.querySelector('[name=inboxes]:checked').value`); got != "read some" {
			t.Errorf("selected first: %s", got)
		}
		b.shoot("consent")
		b.do(chromedp.SendKeys(chromedp.CSS("[data-filter]"), "\r")) // approves nothing
		b.expect("400")
		b.loads(http.StatusBadRequest, chromedp.Click(chromedp.CSS("button[value=approve]")))
		b.shows("Select at least one inbox")
		b.shoot("consent-refused")
		b.do(chromedp.Click(chromedp.CSS("[name=preset][value=agent]")), chromedp.Click(chromedp.CSS("[name=inbox_ids][value="+in.ID+"]")))
		b.do(chromedp.Click(chromedp.CSS("button[value=approve]")))
		at := back()
		u, err := url.Parse(asks)
		must(t, err)
		s.exchange(t, u.Query().Get("client_id"), at)
		b.open(asks)
		b.do(chromedp.Click(chromedp.CSS("button[value=deny]")))
		if at := back(); !strings.Contains(at, "error=access_denied") {
			t.Errorf("the refusal came as %s", at)
		}

		s.connect(t, "Another application")
		b.open("/keys")
		b.shows("Connected applications", "Claude <b>Code</b>", "this computer (127.0.0.1)", "send", "in 1 inbox", "client.example")
		b.shoot("applications")
		b.do(chromedp.Click(chromedp.CSS("tr:last-child .sure summary")))
		b.click("tr:last-child .sure form button")
		b.shows("Application disconnected", "Another application")
		if strings.Contains(b.text("main"), "Claude") {
			t.Error("the application is still listed")
		}
		b.expect("400")
		b.loads(http.StatusBadRequest, chromedp.Navigate(s.url+strings.ReplaceAll(asks, "S256", "plain")))
		b.shows("This application cannot connect", "PKCE")
	})
}
