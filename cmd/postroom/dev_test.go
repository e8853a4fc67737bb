package main

import (
	"fmt"
	"net"
	"net/http"
	"net/smtp"
	"net/textproto"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dev runs `postroom dev`. Settings of a real service must not reach it.
func dev(t *testing.T, flags ...string) *served {
	t.Helper()
	cmd := command(t, t.TempDir(), []string{"POSTROOM_DATABASE=postgres://nowhere.example/real", "POSTROOM_RELAY=smtp://nowhere.example"},
		append([]string{"dev", "--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0", "--submission", "127.0.0.1:0"}, flags...)...)
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
	// The dashboard opens without sign-in, unless another name leads here.
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusSeeOther} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/inboxes", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("the dashboard called as %q: %d, want %d", host, res.StatusCode, want)
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
		want := http.StatusUnauthorized
		if header == "Host" {
			want = http.StatusForbidden
		}
		if res.StatusCode != want {
			t.Errorf("%s %s: status %d, want %d", header, value, res.StatusCode, want)
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

func TestDevListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--http", "--smtp", "--submission"} {
		if _, stderr, err := runCommand(t, t.TempDir(), nil, "dev", flag, "0.0.0.0:0"); err == nil || !strings.Contains(stderr, "not a loopback address") {
			t.Errorf("%s: %v %s", flag, err, stderr)
		}
	}
}

func TestDevHostsThatNeedNoKey(t *testing.T) {
	t.Parallel()
	listed, err := parseDevHosts("ci.example.com, 100.64.0.0/10,2001:db8::1")
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]bool{
		"127.0.0.1:9": true, "[::1]:9": true, "10.1.2.3:9": true, "172.16.0.1:9": true, "192.168.0.1:9": true, "[::ffff:10.0.0.1]:9": true,
		"[fd00::1]:9": true, "[fe80::1%eth0]:9": true, "100.64.3.4:9": true, "[2001:db8::1]:9": true,
		"8.8.8.8:9": false, "172.32.0.1:9": false, "[2001:db8::2]:9": false, "0.0.0.0:9": false, "@": false, "": false,
	} {
		if text := listed.refusal(peer); (text == "") != want {
			t.Errorf("client %s: %q", peer, text)
		}
	}
	for host, want := range map[string]bool{
		"localhost:8025": true, "postroom": true, "mail.test": true, "a.B.Localhost": true, "mail.internal.": true, "10.0.0.1:8025": true,
		"[::1]:8025": true, "[fd00::1]": true, "CI.example.com:1": true, "100.64.3.4": true,
		"evil.example": false, "test.evil.example": false, "8.8.8.8": false, "[2001:db8::2]:1": false, "": false, "x.ci.example.com": false,
	} {
		if got := listed.called(host); got != want {
			t.Errorf("Host %s: %t, want %t", host, got, want)
		}
	}
	if _, err := parseDevHosts("a b!"); err == nil {
		t.Error("an invalid name is accepted")
	}
}

func TestDevFindsTheInboxOfAnyAddress(t *testing.T) {
	t.Parallel()
	s := dev(t)
	var ids []any
	for _, address := range []string{"Some@Name.test", "some%2Btag@name.test"} {
		_, all := s.call(t, "dev", http.MethodGet, "/v1/inboxes?address="+address, "")
		list, _ := all["data"].([]any)
		if len(list) != 1 {
			t.Fatalf("%s: %v", address, all)
		}
		in, _ := list[0].(map[string]any)
		ids = append(ids, in["id"])
	}
	if ids[0] != ids[1] {
		t.Errorf("two inboxes: %v", ids)
	}
	if _, all := s.call(t, "", http.MethodGet, "/v1/inboxes?address=nonsense", ""); len(all["data"].([]any)) != 0 {
		t.Errorf("an invalid address: %v", all)
	}
}

// Clients that end lines with LF alone, and leave out what a message should have.
func TestDevWelcomesOddClients(t *testing.T) {
	t.Parallel()
	s := dev(t)
	for port, at := range map[string]string{"submission": s.submission, "receiving": s.smtp} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		text := textproto.NewConn(c)
		to := port + "@name.test"
		for _, step := range []struct {
			send string
			code int
		}{
			{"", 220}, {"EHLO x\n", 250}, {"MAIL FROM:<a@SHOP.example> AUTH=<>\n", 250}, {"RCPT TO:<" + port + "@NAME.TEST>\n", 250},
			{"DATA\n", 354}, {"From: a@SHOP.EXAMPLE\nSubject: Hi\n\nYour code is 482913.\n" + strings.Repeat("x", 5000) + "\n..dot\n.\nQUIT\n", 250}, {"", 221},
		} {
			if _, err := c.Write([]byte(step.send)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := text.ReadResponse(step.code); err != nil {
				t.Fatalf("%s, after %.40q: %v", port, step.send, err)
			}
		}
		_ = c.Close()
		_, wait := s.call(t, "", http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=20&has=code", s.inboxAt(t, to)), "")
		if wait["timed_out"] != false {
			t.Errorf("%s: %v", port, wait)
		}
	}
}

// A message that cannot be sent as an email arrives as it is.
func TestDevWelcomesOddMessages(t *testing.T) {
	t.Parallel()
	s := dev(t)
	for name, text := range map[string]string{
		"nofrom": "Subject: Hi\r\n\r\nYour code is 482913.\r\n", "empty": "", "text": "Your code is 482913.\r\n", "bad": "From: me\r\n\r\nx\r\n",
		"two": "From: a@b.test\r\nFrom: c@d.test\r\n\r\nx\r\n", "nodate": "From: a@b.test\r\n\r\nx\r\n",
	} {
		to := name + "@name.test"
		if err := smtp.SendMail(s.submission, nil, "a@shop.example", []string{to}, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, wait := s.call(t, "", http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=20", s.inboxAt(t, to)), ""); wait["timed_out"] != false {
			t.Errorf("%s: %v", name, wait)
		}
	}
}

// MCP and links work under every name that a client on a private network may use.
func TestDevIsCalledByManyNames(t *testing.T) {
	t.Parallel()
	s := dev(t, "--hosts", "ci.example.com")
	if err := smtp.SendMail(s.smtp, nil, "a@shop.example", []string{"a@name.test"}, []byte("Subject: Hi\r\n\r\nx\r\n")); err != nil {
		t.Fatal(err)
	}
	_, list := s.call(t, "", http.MethodGet, "/v1/messages", "")
	raw := fmt.Sprintf("/v1/messages/%v/raw", list["data"].([]any)[0].(map[string]any)["id"])
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(host, path, body string) *http.Response {
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.api+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer dev")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	for host, want := range map[string]int{
		"postroom:8025": 200, "mail.test:8025": 200, "x.localhost": 200, "mail.internal:1": 200, "ci.example.com": 200, "10.0.0.1:8025": 200,
		"evil.example": 403, "8.8.8.8": 403,
	} {
		if got := ask(host, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).StatusCode; got != want {
			t.Errorf("MCP at %s: %d, want %d", host, got, want)
		}
		if at := ask(host, raw, "").Header.Get("Location"); want == 200 && !strings.HasPrefix(at, "http://"+host+"/v1/files/") {
			t.Errorf("a link at %s: %s", host, at)
		}
	}
}

func TestDevStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := dev(t)
	for _, at := range []string{strings.TrimPrefix(s.api, "http://"), s.smtp, s.submission} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := <-s.ended
	if took := time.Since(began); err != nil || took > 3*time.Second { // a server on a busy machine
		t.Errorf("it ended after %v with %v", took, err)
	}
	s.ended <- nil // for the clean-up
}
