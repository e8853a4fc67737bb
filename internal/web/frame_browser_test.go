package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mailhtml/hostilemail"
)

// The origin that the frame shares with the page gives nothing to hostile messages:
// unsanitized, and with the policy and the sandbox of the frame only, they run no
// script, open no dialog, and request the same as with an opaque origin.
func TestBrowserSharedOriginGivesHostileMailNothing(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "origin", gen.SendPolicyOpen)
	m := s.put(t, in, htmlMail("Hello", "News", "a.pdf", "<p>Hello</p>"))
	v := s.visitAsUser(t)
	framed := v.get("/messages/"+m.ID+"/view", "Sec-Fetch-Dest", "iframe").want(t, http.StatusOK).header.Get("Content-Security-Policy")
	alone := v.get("/messages/"+m.ID+"/view", "Sec-Fetch-Dest", "document").want(t, http.StatusOK).header.Get("Content-Security-Policy")
	if framed != alone+" allow-same-origin" || strings.Contains(framed, "allow-scripts") {
		t.Fatalf("the policy in a frame is %q, and of the document alone %q", framed, alone)
	}
	b := s.browse(t)
	b.open("/messages/" + m.ID)
	if got := b.attribute("iframe", "sandbox"); got != "allow-popups allow-popups-to-escape-sandbox allow-same-origin" {
		t.Errorf("the sandbox is %q", got)
	}
	var requested [][]string
	for _, tt := range []struct{ policy, sandbox string }{
		{alone, "allow-popups allow-popups-to-escape-sandbox"},
		{framed, "allow-popups allow-popups-to-escape-sandbox allow-same-origin"},
	} {
		requested = append(requested, s.framesAsTheyCame(t, tt.policy, tt.sandbox))
	}
	if !slices.Equal(requested[0], requested[1]) {
		t.Errorf("with an origin, hostile messages requested %v; without, %v", requested[1], requested[0])
	}
}

// framesAsTheyCame shows hostile messages, unsanitized, in frames with this policy
// and sandbox, and returns what they requested. It fails the test if one ran a
// script: they write to the page, to storage or to the trap.
func (s *site) framesAsTheyCame(t *testing.T, policy, sandbox string) []string {
	t.Helper()
	tr := newTrap(t)
	messages := slices.DeleteFunc(some(hostilemail.All(tr.url)), func(m hostilemail.Message) bool { return len(m.HTML) > 10_000 })
	const probe = `<script>parent.ran = 1; localStorage.ran = 1; document.cookie = 'ran=1'</script><img src=x onerror="parent.ran=1;document.cookie='ran=1'">` +
		`<svg onload="parent.ran=1"></svg><a id=self href="javascript:parent.ran=1">x</a><form id=f action="/ran" method=get><button>x</button></form>`
	url := framing(t, messages, sandbox, policy, func(html string) string { return probe + html })
	b := s.browseSignedOut(t)
	b.elsewhere = true
	for _, blocked := range []string{"Content Security Policy", "sandbox", "404", "Blocked", "preload", "Unsafe attempt", "Refused to refresh"} { // browsers log what they block
		b.expect(blocked)
	}
	b.watchDialogs()
	b.do(chromedp.Navigate(url), givingTime)
	if got := b.eval(`String(window.ran) + localStorage.ran + document.cookie`); got != "undefinedundefined" {
		t.Errorf("with the sandbox %q, a message ran a script: %s", sandbox, got)
	}
	_, paths := tr.caught()
	t.Logf("sandbox %q: %d hostile messages requested %v", sandbox, len(messages), paths)
	return paths
}
