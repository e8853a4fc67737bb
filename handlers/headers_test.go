package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// TestForgedAuthenticationResultsAreHidden is row A5: forged Authentication-Results in our name are
// hidden, and ours come first. The raw message stays unchanged.
func TestForgedAuthenticationResultsAreHidden(t *testing.T) {
	forged := []string{
		"Authentication-Results: mx.in.example; dmarc=pass",
		"authentication-results: MX.IN.EXAMPLE; dmarc=pass",
		"Authentication-Results : mx.in.example; dmarc=pass",
		"Authentication-Results: mx.in.example 1; dmarc=pass",
		"Authentication-Results: mx.in.example(1) / 2; dmarc=pass",
		"Authentication-Results: (a (nested) \\) comment) mx.in.example; dmarc=pass",
		"Authentication-Results:\r\n (one)\r\n\tmx.in.example\r\n ; dmarc=pass",
		"Authentication-Results: \"mx.in.example\"; dmarc=pass",
		"Authentication-Results: \"mx\\.in.example\"; dmarc=pass",
		"Authentication-Results: mx.in.example.; dmarc=pass",
		"Authentication-Results: mx.in.example",
		"Authentication-Results: =?utf-8?q?mx.in.example?=; dmarc=pass",
		"Authentication-Results: \uff4dx.in.example; dmarc=pass",
		"Authentication-Results: former.in.example; dmarc=pass",
	}
	foreign := []string{
		"Authentication-Results: mx.out.example; dmarc=pass",
		"Authentication-Results: mx.in.example.out.example; dmarc=pass",
		"ARC-Authentication-Results: i=1; mx.in.example; dmarc=pass",
		"X-Authentication-Results: mx.in.example; dmarc=pass",
	}
	s := serve(t)
	in := s.newInbox(t)
	raw := strings.Join(forged, "\r\n") + "\r\n" + strings.Join(foreign, "\r\n") + "\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHi.\r\n"
	for name, body := range map[string]string{"small": "", "kept beside its text": strings.Repeat("x\r\n", 200<<10)} {
		sent := raw + body
		n := s.received(t, in, []byte(sent))
		n.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{
			SPF: "fail", DKIM: "none", DMARC: "fail", Field: "former.in.example;\r\n\tspf=fail;\r\n\tdmarc=fail",
		}}
		m := s.add(t, n)

		res := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
		res.wantAt(t, "auth", `{"dkim":"none","dmarc":"fail","spf":"fail","internal":null,"internal_account":null}`)
		res.wantAt(t, "headers.0", `{"name":"Authentication-Results","value":"former.in.example; spf=fail; dmarc=fail"}`)
		names := res.strs(t, "headers", "name")
		if want := 1 + len(foreign) + 1; len(names) != want {
			t.Errorf("%s: %d fields are shown, want %d: %s", name, len(names), want, res.body)
		}
		for i, want := range foreign {
			_, value, _ := strings.Cut(want, ": ")
			if got := res.strs(t, "headers", "value")[i+1]; got != value {
				t.Errorf("%s: field %q, want %q", name, got, value)
			}
		}
		if values := res.strs(t, "headers", "value"); values[len(values)-1] != "Grüße" {
			t.Errorf("%s: the subject is %q", name, values[len(values)-1])
		}
		link := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").want(t, http.StatusFound).header.Get("Location")
		if got := s.do(t, http.MethodGet, strings.TrimPrefix(link, s.url), "", as("")).want(t, http.StatusOK); string(got.body) != sent {
			t.Errorf("%s: the raw message was changed", name)
		}
		s.do(t, http.MethodGet, "/v1/messages", "").want(t, http.StatusOK).wantAt(t, "data.0.headers", `null`)
	}
}

// Forged results are hidden even in a message without results of ours (A5).
func TestForgedResultsAreHiddenWithoutOurs(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Authentication-Results: mx.in.example; dmarc=pass\nSubject: Hi")
	res := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
	res.wantAt(t, "auth", `null`)
	if strings.Contains(string(res.body), "dmarc=pass") {
		t.Errorf("shown: %s", res.body)
	}
}
