//go:build clients

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/smtp/smtptest"
)

// submitted is a message to submit.
type submitted struct {
	From    string   `json:"from"`
	To      []string `json:"to"`
	Bcc     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject"`
	Text    string   `json:"text"`
	HTML    string   `json:"html,omitempty"`
	Files   []struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	} `json:"files,omitempty"`

	fields string // more header fields, for the clients that send raw mail
}

// raw is the mail as a program composes it that knows no MIME library.
func (m submitted) raw() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: %s\r\n%s", m.From, strings.Join(m.To, ",\r\n "), m.Subject, m.fields)
	if len(m.Bcc) > 0 {
		fmt.Fprintf(&b, "Bcc: %s\r\n", strings.Join(m.Bcc, ", "))
	}
	b.WriteString("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n")
	fmt.Fprintf(&b, "--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n%s\r\n", m.Text)
	if m.HTML != "" {
		fmt.Fprintf(&b, "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n%s\r\n", m.HTML)
	}
	for _, f := range m.Files {
		fmt.Fprintf(&b, "--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=%s\r\n\r\n", f.Name)
		text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0123456789abcdef"), f.Size/16+1)[:f.Size])
		for len(text) > 76 {
			b.WriteString(text[:76] + "\r\n")
			text = text[76:]
		}
		b.WriteString(text + "\r\n")
	}
	b.WriteString("--b--\r\n")
	return b.Bytes()
}

func (m submitted) rcpts() []string { return slices.Concat(m.To, m.Bcc) }

func address(from string) string {
	if _, in, ok := strings.Cut(from, "<"); ok {
		return strings.TrimSuffix(in, ">")
	}
	return from
}

// door is where a client submits.
type door struct {
	addr   string
	secure bool // TLS from the start
	key    string
}

// submitClient sends m and returns what the user of the client sees: the reply, or
// the error.
type submitClient func(t *testing.T, d door, m submitted) string

// script runs a client written in another language.
func script(t *testing.T, d door, m submitted, stdin []byte, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		skiptest.OutsideCI(t, name+" is not installed")
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(d.addr)
	if err != nil {
		t.Fatal(err)
	}
	secure := "0"
	if d.secure {
		secure = "1"
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdin = "testdata/submit", bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "HOST="+host, "PORT="+port, "SECURE="+secure, "KEY="+d.key, "MAIL="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "refused: " + err.Error() + "\n" + string(out)
	}
	return string(out)
}

var submitClients = map[string]submitClient{
	"Go": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		host, _, err := net.SplitHostPort(d.addr)
		if err != nil {
			t.Fatal(err)
		}
		dial := func() (net.Conn, error) { return net.Dial("tcp", d.addr) }
		if d.secure {
			dial = func() (net.Conn, error) { return tls.Dial("tcp", d.addr, &tls.Config{InsecureSkipVerify: true}) }
		}
		conn, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		c, err := smtp.NewClient(conn, host)
		if err != nil {
			t.Fatal(err)
		}
		if !d.secure {
			if err := c.StartTLS(&tls.Config{InsecureSkipVerify: true}); err != nil {
				t.Fatal(err)
			}
		}
		send := func() error {
			if err := c.Auth(smtp.PlainAuth("", "api", d.key, host)); err != nil {
				return err
			}
			if err := c.Mail(address(m.From)); err != nil {
				return err
			}
			for _, rcpt := range m.rcpts() {
				if err := c.Rcpt(rcpt); err != nil {
					return err
				}
			}
			w, err := c.Data()
			if err != nil {
				return err
			}
			if _, err := w.Write(m.raw()); err != nil {
				return err
			}
			return w.Close()
		}
		if err := send(); err != nil {
			return "refused: " + err.Error()
		}
		return "250 queued"
	},
	"smtplib": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		return script(t, d, m, nil, "python3", "send.py")
	},
	"Nodemailer": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		if _, err := os.Stat("testdata/submit/node_modules"); err != nil {
			skiptest.OutsideCI(t, "Nodemailer is not installed: make cmd/postroom/testdata/submit/node_modules")
		}
		return script(t, d, m, nil, "node", "send.mjs")
	},
	"PHPMailer": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		return script(t, d, m, nil, "php", "-d", "memory_limit=1G", "send.php")
	},
	"Action Mailer": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		return script(t, d, m, nil, "ruby", "send.rb")
	},
	"swaks": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		start := "--tls"
		if d.secure {
			start = "--tls-on-connect"
		}
		file := filepath.Join(t.TempDir(), "mail.eml")
		if err := os.WriteFile(file, m.raw(), 0o600); err != nil {
			t.Fatal(err)
		}
		return script(t, d, submitted{}, nil, "swaks", "--server", d.addr, start, "--auth", "LOGIN", "--auth-user", "api", "--auth-password", d.key,
			"--from", address(m.From), "--to", strings.Join(m.rcpts(), ","), "--data", "@"+file, "--suppress-data")
	},
	"msmtp": func(t *testing.T, d door, m submitted) string {
		t.Helper()
		host, port, err := net.SplitHostPort(d.addr)
		if err != nil {
			t.Fatal(err)
		}
		start := "on"
		if d.secure {
			start = "off"
		}
		args := append([]string{
			"--host=" + host, "--port=" + port, "--tls=on", "--tls-starttls=" + start, "--tls-certcheck=off", "--auth=plain", "--user=api",
			"--passwordeval=echo $KEY", "--from=" + address(m.From), "--debug", "--",
		}, m.rcpts()...)
		return script(t, d, submitted{}, bytes.ReplaceAll(m.raw(), []byte("\r\n"), []byte("\n")), "msmtp", args...)
	},
}

func submissionService(t *testing.T, o *outside, data string) (s *served, key string) {
	t.Helper()
	cert, private, _ := certFiles(t, t.TempDir(), "out.example.com")
	o.env = append(o.env, "POSTROOM_SUBMISSION=127.0.0.1:0", "POSTROOM_SUBMISSIONS=127.0.0.1:0", "POSTROOM_TLS_CERT="+cert, "POSTROOM_TLS_KEY="+private)
	s = o.serve(t, data)
	status, k := s.call(t, s.key, http.MethodPost, "/v1/api-keys", `{"name":"app","scopes":["emails:send"]}`)
	if status != http.StatusCreated {
		t.Fatalf("create a key: %d %v", status, k)
	}
	return s, fmt.Sprint(k["key"])
}

// Clients send what programs send, and it arrives as composed,
// with both signatures.
func TestClientsSubmitMail(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	data := t.TempDir()
	s, key := submissionService(t, o, data)
	records := waitForSigningKeys(t, data, o.env)
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("r%d@outside.example", i))
	}
	file := func(size int) (f struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}) {
		f.Name, f.Size = "file.bin", size
		return f
	}
	const from = "shop@agents.example.com"
	cases := map[string]submitted{
		"text": {From: from, To: many[:1], Text: "Hello."},
		"html, files": {From: "Shop <" + from + ">", To: many[:1], Text: "Hello.", HTML: "<p>Hello.</p>", Files: []struct {
			Name string `json:"name"`
			Size int    `json:"size"`
		}{file(5000), file(70_000)}},
		"many":  {From: from, To: many[:18], Bcc: many[18:], Text: "Hello."},
		"UTF-8": {From: "Bücher <" + from + ">", To: many[:1], Text: "Grüße aus 東京."},
		"large": {From: from, To: many[:1], Text: "Hello.", Files: []struct {
			Name string `json:"name"`
			Size int    `json:"size"`
		}{file(20_000_000)}},
	}
	for name, send := range submitClients {
		t.Run(name, func(t *testing.T) {
			for kind, m := range cases {
				m.Subject = fmt.Sprintf("%s from %s", kind, name)
				d := door{s.submission, false, key}
				if kind == "text" || kind == "many" {
					d = door{s.submissions, true, key}
				}
				if got := send(t, d, m); strings.Contains(got, "refused") || !strings.Contains(got, "250") {
					t.Fatalf("%s: %.2000s", kind, got)
				}
				for _, mail := range o.takeSubject(t, m.Subject, len(m.rcpts())) {
					wantAuthenticated(t, mail, records)
					head, _, _ := bytes.Cut(mail.Data, []byte("\r\n\r\n"))
					for _, bad := range []string{"Bcc:", "r19@", "X-Postroom", "127.0.0.1"} {
						if bytes.Contains(bytes.ToLower(head), []byte(strings.ToLower("\n"+bad))) || kind == "many" && bad == "r19@" && bytes.Contains(head, []byte(bad)) {
							t.Errorf("%s: the header has %s:\n%s", kind, bad, head)
						}
					}
					for _, want := range []string{"\r\nMessage-Id: ", "\r\nDate: ", "\r\nReceived: by out.example.com with ESMTPSA id "} {
						if !bytes.Contains(bytes.ToLower(mail.Data), []byte(strings.ToLower(want))) {
							t.Errorf("%s: the header lacks %q:\n%s", kind, want, head)
						}
					}
				}
			}
		})
	}
}

// takeSubject waits until so many recipients have got the mail with a subject.
func (o *outside) takeSubject(t *testing.T, subject string, recipients int) []smtptest.Message {
	t.Helper()
	for n := 0; ; n++ {
		have := 0
		var found []smtptest.Message
		messages := o.mx.Wait(t, n)
		for _, m := range messages {
			if bytes.Contains(m.Data, []byte("\nSubject: "+subject+"\r\n")) {
				have += len(m.To)
				found = append(found, m)
			}
		}
		if have >= recipients {
			return found
		}
		n = max(n, len(messages))
	}
}

// The user of a client reads in its error why a message was refused.
func TestClientsShowWhyMailIsRefused(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	s, key := submissionService(t, o, t.TempDir())
	s.call(t, s.key, http.MethodPost, "/v1/suppressions", `{"email":"gone@outside.example"}`)
	_, reading := s.call(t, s.key, http.MethodPost, "/v1/api-keys", `{"name":"reader","scopes":["read"]}`)
	_, sender := s.call(t, s.key, http.MethodPost, "/v1/api-keys", `{"name":"sender","scopes":["send"]}`)
	_, limited := s.call(t, s.key, http.MethodPost, "/v1/api-keys", `{"name":"limited","scopes":["emails:send"],"limits":{"sends_per_day":1}}`)
	if status, sent := s.call(t, fmt.Sprint(limited["key"]), http.MethodPost, "/v1/emails",
		`{"from":"shop@agents.example.com","to":"bob@outside.example","subject":"The first","text":"Hello."}`); status != http.StatusCreated {
		t.Fatalf("send within the budget: %d %v", status, sent)
	}
	s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"agent","send_policy":"approval"}`)
	s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"open"}`)
	const from = "shop@agents.example.com"
	for name, send := range submitClients {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct{ key, from, to, want string }{
				{"sk_live_wrong", from, "bob@outside.example", "unauthorized: this API key is wrong: no key has this value"},
				{fmt.Sprint(reading["key"]), from, "bob@outside.example", "insufficient_scope: this key lacks the scope send or emails:send"},
				{key, "ceo@bank.example", "bob@outside.example", "domain_not_verified: from ceo@bank.example must be on the mail domain"},
				{key, from, "gone@outside.example", "recipient_suppressed: "},
				{fmt.Sprint(limited["key"]), from, "bob@outside.example", "budget_exceeded: "},
			} {
				m := submitted{From: tt.from, To: []string{tt.to}, Subject: "Refused", Text: "Hello."}
				if got := send(t, door{s.submission, false, tt.key}, m); !strings.Contains(got, "refused") || !strings.Contains(got, tt.want) {
					t.Errorf("want %q, the client shows:\n%.1500s", tt.want, got)
				}
			}
			if name == "Go" || name == "smtplib" || name == "Action Mailer" {
				return // they do not show a positive reply
			}
			m := submitted{From: "agent@agents.example.com", To: []string{"bob@outside.example"}, Subject: "Approval from " + name, Text: "Hello."}
			if got := send(t, door{s.submission, false, fmt.Sprint(sender["key"])}, m); !strings.Contains(got, "250 2.0.0 held for approval as drf_") {
				t.Errorf("approval: the client shows:\n%.1500s", got)
			}
			m.From = "open@agents.example.com"
			if got := send(t, door{s.submission, false, fmt.Sprint(sender["key"])}, m); !strings.Contains(got, "250 2.0.0 queued as msg_") {
				t.Errorf("an inbox: the client shows:\n%.1500s", got)
			}
		})
	}
	for _, m := range o.mx.Messages() {
		if bytes.Contains(m.Data, []byte("Subject: Refused")) {
			t.Error("a refused message was sent")
		}
	}
}
