package main

import (
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// The service tells approvers about a draft, and the link in the email approves it.
func TestApproverApprovesByEmail(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		relay := smtptest.NewMX(t, smtptest.MXConfig{})
		s := newShell(t, data, append(env,
			"POSTROOM_APPROVERS=ann@far.example", "POSTROOM_RELAY=smtp://"+relay.Addr()+"?tls=maybe", "POSTROOM_UNDO=0s"))
		in := s.first("inbox", "create", "held", "--policy", "approval")
		draft := s.first("send", "--inbox", in, "--to", "cy@out.example", "--subject", "Order", "--text", "Twenty chairs.")

		notice := relay.Wait(t, 1)[0]
		if len(notice.To) != 1 || notice.To[0] != "ann@far.example" || notice.From == "" {
			t.Fatalf("the first email is from %s to %q", notice.From, notice.To)
		}
		parsed, err := mail.ReadMessage(strings.NewReader(string(notice.Data)))
		if err != nil {
			t.Fatal(err)
		}
		body := parsed.Body
		if parsed.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		link := strings.TrimSpace(regexp.MustCompile(`(?m)^http://\S+/approve/\S+`).FindString(string(text)))
		page, err := http.Get(link) //nolint:gosec // the link is one of the service
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = page.Body.Close() }()
		if shown, err := io.ReadAll(page.Body); err != nil || page.StatusCode != http.StatusOK || !strings.Contains(string(shown), "Twenty chairs.") {
			t.Fatalf("%d %v\n%s", page.StatusCode, err, shown)
		}
		s.want([]string{"draft", "get", draft}, "pending")
		done, err := http.PostForm(link, url.Values{"decision": {"approve"}}) //nolint:gosec // as above
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = done.Body.Close() }()
		if done.StatusCode != http.StatusOK {
			t.Fatalf("approving by the link: %s", done.Status)
		}
		if sent := relay.Wait(t, 2)[1]; len(sent.To) != 1 || sent.To[0] != "cy@out.example" {
			t.Errorf("the second email is to %q", sent.To)
		}
		s.want([]string{"draft", "get", draft}, "sent")
	})
}
