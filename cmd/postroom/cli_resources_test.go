package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/client"
)

// TestCommandsForResources uses each command for templates, contacts, suppressions,
// domains, threads and stats.
func TestCommandsForResources(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := newShell(t, data, env)
		signup := s.first("inbox", "create", "signup")
		mail := s.receive(signup, welcome)

		html := filepath.Join(t.TempDir(), "welcome.html")
		if err := os.WriteFile(html, []byte("<p>Hello {{name}}</p>"), 0o600); err != nil {
			t.Fatal(err)
		}
		tpl := s.first("template", "create", "--name", "welcome", "--subject", "Hi {{name}}", "--html-file", html)
		s.run(exitOK, "template", "update", tpl, "--subject", "Dear {{name}}")
		s.want([]string{"template", "list"}, tpl, "welcome", "Dear {{name}}")
		s.want([]string{"template", "get", tpl}, "<p>Hello {{name}}</p>")
		s.want([]string{"template", "preview", tpl, "--data", `{"name":"Ana"}`, "--html"}, "Dear Ana", "<p>Hello Ana</p>")
		s.want([]string{"template", "preview", tpl}, "Missing", "name")
		s.run(exitUsage, "template", "preview", tpl, "--data", "[")
		s.want([]string{"template", "delete", tpl}, "Deleted template "+tpl)
		s.run(exitNotFound, "template", "get", tpl)

		s.run(exitOK, "contact", "create", "ana@example.org", "--first-name", "Ana")
		s.want([]string{"contact", "update", "ANA@example.org", "--last-name", "Bar"}, "ana@example.org")
		s.want([]string{"contact", "list", "--email", "ana@example.org"}, "Ana Bar")
		s.want([]string{"contact", "delete", "ana@example.org"}, "Deleted contact")
		s.run(exitNotFound, "contact", "delete", "ana@example.org")

		s.want([]string{"suppression", "create", "gone@example.org", "--category", "marketing"}, "gone@example.org", "marketing")
		s.want([]string{"suppression", "list"}, "gone@example.org")
		s.want([]string{"suppression", "delete", "gone@example.org"}, "Deleted the suppression of gone@example.org")
		s.run(exitNotFound, "suppression", "delete", "gone@example.org")

		s.want([]string{"domain", "create", "agents.example.com"}, "agents.example.com", "pending", "MX", "_dmarc")
		s.want([]string{"domain", "list"}, "agents.example.com")
		s.want([]string{"domain", "get", "Agents.example.com"}, "TXT", "pending, optional")
		s.want([]string{"domain", "verify", "agents.example.com"}, "agents.example.com", "MX")
		s.want([]string{"domain", "delete", "agents.example.com"}, "Deleted domain")
		s.run(exitNotFound, "domain", "get", "agents.example.com")

		s.want([]string{"thread", "list", "signup@postroom.localhost"}, "Welcome to the shop", "noreply@shop.example")
		thread := s.run(exitOK, "thread", "list", signup, "--jq", ".[0].id")
		s.want([]string{"thread", "get", signup, strings.TrimSpace(thread)}, mail, "Your verification code is 482913.")
		s.want([]string{"stats", "--inbox", "signup@postroom.localhost", "--days", "2"}, "RECEIVED", "total")

		s.want([]string{"claim", "next", "--inbox", signup, "--for", "1m"}, mail, "Token")
		s.run(exitFailed, "claim", "next", "--inbox", signup)
		s.want([]string{"claim", "extend", mail, "--token", "1", "--for", "2m"}, "claimed")
		s.want([]string{"claim", "done", mail, "--token", "1"}, mail, "done")
		if said := s.run(exitFailed, "claim", "release", mail, "--token", "1"); !strings.Contains(said, "claim_lost") {
			t.Errorf("release what is done: %s", said)
		}
		s.want([]string{"message", "mark", mail, "--add", "Urgent", "--read"}, "urgent")
		s.want([]string{"message", "list", "--label", "urgent"}, mail)
		s.want([]string{"thread", "mark", strings.TrimSpace(thread), "--add", "shop"}, "shop")
		s.want([]string{"thread", "list", signup, "--label", "shop"}, "Welcome to the shop")

		s.want([]string{"message", "forward", mail, "--to", "Ana <ana@example.org>", "--text", "For you."}, "msg_", "queued")
		s.want([]string{"message", "list", "--q", `"For you"`}, "Ana <ana@example.org>")
		s.want([]string{"message", "delete", mail}, "Deleted message "+mail)
		s.run(exitNotFound, "message", "get", mail)
	})
}

// TestListenForwardsEvents: what listen sends is a webhook that the client verifies.
func TestListenForwardsEvents(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	signup := s.first("inbox", "create", "signup")
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8Xb0Q2d1nCk="
	verify, err := client.NewWebhookVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan client.Event, 10)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := verify.Event(r)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		select {
		case got <- e:
		default: // enough
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(app.Close)

	cmd := command(t, s.data, s.env, "listen", "--forward-to", app.URL+"/hook", "--secret", secret, "--types", "message.received")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // it does not end by itself
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, secret) {
		t.Fatalf("%q, %v", line, err)
	}
	// The stream begins with the events after it is open, which cannot be seen from
	// here: messages are received until one is forwarded.
	mail := ""
	for len(got) == 0 {
		mail = s.receive(signup, welcome)
	}
	e := <-got
	if e.Type != "message.received" || e.InboxID != signup || !strings.HasPrefix(e.ID, "evt_") {
		t.Errorf("forwarded %+v, the last message is %s", e, mail)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, fmt.Sprintf("%s  %s  418", e.Type, e.ID)) {
		t.Errorf("it writes %q, %v", line, err)
	}
	s.run(exitUsage, "listen", "--forward-to", "localhost:3000")
	s.run(exitUsage, "listen", "--forward-to", app.URL, "--secret", "secret!")
}
