package main

import (
	"fmt"
	"net/http"
	"net/smtp"
	"strings"
	"sync"
	"testing"
)

// dev runs `postroom dev`. Settings of a real service must not reach it.
func dev(t *testing.T) *served {
	t.Helper()
	cmd := command(t, t.TempDir(), []string{"POSTROOM_DATABASE=postgres://nowhere.example/real", "POSTROOM_RELAY=smtp://nowhere.example"},
		"dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", "--submission", "127.0.0.1:0")
	return begin(t, cmd)
}

func TestDevNeedsNoKeyAndNothingLeaves(t *testing.T) {
	t.Parallel()
	s := dev(t)
	t.Logf("ready after %v", s.startup)
	// An inbox created over the API receives mail from a client with any credentials.
	status, in := s.call(t, "", http.MethodPost, "/v1/inboxes", `{"name":"signup"}`)
	if status != http.StatusCreated {
		t.Fatalf("create an inbox: %d %v", status, in)
	}
	host := strings.Split(s.submission, ":")[0]
	text := "From: Shop <noreply@shop.example>\r\nSubject: Hi\r\n\r\nYour code is 482913.\r\n"
	to := []string{"signup@postroom.localhost", "someone+x@gmail.com", "other@company.example"}
	if err := smtp.SendMail(s.submission, smtp.PlainAuth("", "any", "thing", host), "noreply@shop.example", to, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, wait := s.call(t, "", http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=20&has=code", in["id"]), "")
	if wait["timed_out"] != false {
		t.Errorf("the wait: %v", wait)
	}
	// Addresses without an inbox receive mail too, on both ports.
	if err := smtp.SendMail(s.smtp, nil, "a@b.example", []string{"new@anything.example"}, []byte(text)); err != nil {
		t.Fatal(err)
	}
	status, sent := s.call(t, "", http.MethodPost, "/v1/emails", `{"from":"me@real.example","to":"you@real.example","subject":"Hi","text":"Hello."}`)
	if status != http.StatusCreated {
		t.Fatalf("send: %d %v", status, sent)
	}
	for _, address := range []string{"someone@gmail.com", "other@company.example", "new@anything.example", "you@real.example"} {
		id := s.inboxAt(t, address)
		if _, wait := s.call(t, "", http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=20&since=2020-01-01T00:00:00Z", id), ""); wait["timed_out"] != false {
			t.Errorf("%s: %v", address, wait)
		}
	}
	// A page of another site gets no key.
	for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Host": "evil.example"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/inboxes", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		if header == "Host" {
			req.Host = value
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: status %d, want 401", header, value, res.StatusCode)
		}
	}
}

// inboxAt waits for the inbox of an address, which its first message makes.
func (s *served) inboxAt(t *testing.T, address string) string {
	t.Helper()
	var all map[string]any
	for range 2000 {
		_, all = s.call(t, "", http.MethodGet, "/v1/inboxes?limit=100", "")
		list, _ := all["data"].([]any)
		for _, in := range list {
			if in, _ := in.(map[string]any); in["address"] == address {
				return fmt.Sprint(in["id"])
			}
		}
	}
	t.Fatalf("%s has no inbox: %v", address, all)
	return ""
}

func TestDevServesManySignUpsAtOnce(t *testing.T) {
	t.Parallel()
	s := dev(t)
	const flows = 500
	var all sync.WaitGroup
	for i := range flows {
		all.Go(func() {
			_, in := s.call(t, "", http.MethodPost, "/v1/inboxes", fmt.Sprintf(`{"name":"user-%d"}`, i))
			to, code := fmt.Sprint(in["address"]), fmt.Sprint(100_000+i*37)
			text := "From: noreply@shop.example\r\nTo: " + to + "\r\nSubject: Welcome\r\n\r\nYour verification code is " + code + ".\r\n"
			if err := smtp.SendMail(s.submission, nil, "noreply@shop.example", []string{to}, []byte(text)); err != nil {
				t.Error(err)
				return
			}
			_, wait := s.call(t, "", http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=60&has=code", in["id"]), "")
			m, _ := wait["message"].(map[string]any)
			found, _ := m["extracted"].(map[string]any)
			if found["otp"] != code {
				t.Errorf("%s got the code %v, want %s", to, found["otp"], code)
			}
		})
	}
	all.Wait()
}

func TestDevListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--http", "--smtp", "--submission"} {
		if _, stderr, err := runCommand(t, t.TempDir(), nil, "dev", flag, "0.0.0.0:0"); err == nil || !strings.Contains(stderr, "not a loopback address") {
			t.Errorf("%s: %v %s", flag, err, stderr)
		}
	}
}
