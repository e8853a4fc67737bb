package main

import (
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
)

func TestServeAnswersAndStops(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		// A machine that tests many packages at a time is slow; what the start
		// really takes is in the test's log.
		t.Logf("ready after %v", s.startup)
		if s.startup > 10*time.Second {
			t.Errorf("ready after %v, want well under a second on an idle machine", s.startup)
		}
		if status, out := s.call(t, "", http.MethodGet, "/health", ""); status != http.StatusOK || out["status"] != "ok" {
			t.Errorf("health: %d %v", status, out)
		}
		if status, out := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"first"}`); status != http.StatusCreated ||
			out["address"] != "first@postroom.localhost" {
			t.Errorf("create an inbox: %d %v", status, out)
		}
		if greeting := smtpDial(t, s.smtp).greeting; !strings.HasPrefix(greeting, "postroom.localhost ") {
			t.Errorf("SMTP greeting: %q", greeting)
		}
		s.stop(t)
		if _, err := net.Dial("tcp", s.smtp); err == nil {
			t.Error("SMTP still answers")
		}
	})
}

func TestFirstKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		first := serve(t, data, env...)
		if n := strings.Count(first.stdout.String(), "sk_live_"); n != 1 {
			t.Errorf("the first start shows %d keys:\n%s", n, first.stdout)
		}
		first.stop(t)
		second := serve(t, data, env...)
		if second.key != "" || strings.Contains(second.stdout.String(), "sk_live_") {
			t.Errorf("the second start shows a key:\n%s", second.stdout)
		}
		if status, out := second.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the first key after a restart: %d %v", status, out)
		}
		second.stop(t)
		for _, s := range []*served{first, second} {
			if strings.Contains(s.log.String(), first.key) {
				t.Errorf("the key is in the log:\n%s", s.log)
			}
		}
	})
}

func TestBootstrapKey(t *testing.T) {
	t.Parallel()
	const given, late = "a-key-that-the-operator-chose", "another-key-that-comes-too-late"
	data := t.TempDir()
	s := serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+given)
	if strings.Contains(s.stdout.String(), given) {
		t.Errorf("the given key is shown:\n%s", s.stdout)
	}
	if status, out := s.call(t, given, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
		t.Errorf("the given key: %d %v", status, out)
	}
	s.stop(t)

	s = serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+given)
	if strings.Contains(s.log.String(), "bootstrap key is not in use") {
		t.Errorf("the second start warns of the key that it knows:\n%s", s.log)
	}
	s.stop(t)

	s = serve(t, data, "POSTROOM_BOOTSTRAP_KEY="+late)
	if status, _ := s.call(t, late, http.MethodGet, "/v1/inboxes", ""); status != http.StatusUnauthorized {
		t.Errorf("a key that was given after the first start: %d, want 401", status)
	}
	if !strings.Contains(s.log.String(), "bootstrap key is not in use") || strings.Contains(s.log.String(), late) {
		t.Errorf("the log must warn of that key without showing it:\n%s", s.log)
	}
}

func TestServeRefusesToServeTwice(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := serve(t, data)
	if text := refused(t, data, nil); !strings.Contains(text, "the data folder "+data+" is in use by another `postroom serve`") {
		t.Errorf("the same data folder: %s", text)
	}
	other := []string{"POSTROOM_DATABASE=" + filepath.Join(data, "postroom.db")}
	if text := refused(t, t.TempDir(), other); !strings.Contains(text, "is in use by another `postroom serve`") ||
		!strings.Contains(text, "POSTROOM_DATABASE") {
		t.Errorf("the same database from another data folder: %s", text)
	}
	s.stop(t)
	serve(t, data).stop(t)
}

func TestServeRefusesAPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	for _, setting := range []string{"POSTROOM_HTTP", "POSTROOM_SMTP"} {
		want := setting + ": " + l.Addr().String() + " is in use by another program"
		if text := refused(t, data, []string{setting + "=" + l.Addr().String()}); !strings.Contains(text, want) {
			t.Errorf("%s: want %q", text, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A start that failed must not have used up the one showing of the key.
	if s := serve(t, data); s.key == "" {
		t.Errorf("no key is shown by the first start that works:\n%s", s.stdout)
	}
}

func TestProfilesAreServed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free, most likely still in a moment
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, t.TempDir(), "POSTROOM_PPROF="+addr)
	res, err := http.Get("http://" + addr + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestServeRefusesAWrongDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	tests := []struct {
		name, database string
		want           []string
	}{
		{
			"a server that is not there", "postgres://mail:hunter2@127.0.0.1:1/mail?sslmode=disable",
			[]string{"postgres://mail:xxxxx@127.0.0.1:1/mail", "connection refused"},
		},
		{"a folder", folder, []string{folder}},
		{"a file that is no database", garbage(t), []string{"not a database"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := refused(t, t.TempDir(), []string{"POSTROOM_DATABASE=" + tt.database})
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\nwant it to say %q", text, want)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("the password is shown: %s", text)
			}
		})
	}
}

func garbage(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("These are notes and no mail.\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMigrateOff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		off := append([]string{"POSTROOM_MIGRATE=off"}, env...)
		if text := refused(t, data, off); !strings.Contains(text, "older than this program: run `postroom migrate`") {
			t.Errorf("an empty database: %s", text)
		}
		for _, want := range []string{"steps taken: 1.", "steps taken: 0."} {
			if out, stderr, err := runCommand(t, data, env, "migrate"); err != nil || !strings.Contains(out, want) {
				t.Errorf("migrate: %v %s%s, want %q", err, out, stderr, want)
			}
		}
		if s := serve(t, data, off...); s.key == "" {
			t.Error("no key is shown by the first start")
		}
	})
}

func TestLostOrWrongSecretIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		waitForSigningKeys(t, data, env)
		s.stop(t)
		path := filepath.Join(data, "secret")
		secret, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the secret's file: %v, %v, want 0600", info.Mode(), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}

		if text := refused(t, data, env); !strings.Contains(text, "belongs to an install whose secret is not in "+data) {
			t.Errorf("without its secret: %s", text)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("a new secret was put in place of the lost one: %v", err)
		}
		wrong := append([]string{"POSTROOM_SECRET=" + strings.Repeat("wrong", 10)}, env...)
		if text := refused(t, data, wrong); !strings.Contains(text, "is this the install secret it was sealed with?") {
			t.Errorf("with another secret: %s", text)
		}
		right := append([]string{"POSTROOM_SECRET=" + strings.TrimSpace(string(secret))}, env...)
		serve(t, data, right...).stop(t)
	})
}

// waitForSigningKeys returns when `postroom domain show` shows both DKIM keys,
// which are made while the first start serves already.
func waitForSigningKeys(t *testing.T, data string, env []string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		out, stderr, err := runCommand(t, data, env, "domain", "show")
		if err == nil {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("domain show: %v\n%s", err, stderr)
		}
	}
}

func TestDomainShow(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	env := []string{"POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_HOSTNAME=mx1.example.com"}
	serve(t, data, env...)
	out := waitForSigningKeys(t, data, env)
	for _, want := range []string{
		"agents.example.com. 3600 IN MX 10 mx1.example.com.",
		`agents.example.com. 3600 IN TXT "v=spf1 mx -all"`,
		`_dmarc.agents.example.com. 3600 IN TXT "v=DMARC1; p=quarantine"`,
	} {
		if !hasLine(out, want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	for _, algorithm := range []string{"rsa", "ed25519"} {
		if n := strings.Count(out, `"v=DKIM1; k=`+algorithm+"; p="); n != 1 {
			t.Errorf("%d %s keys in\n%s", n, algorithm, out)
		}
	}
}

func TestKeyCommandsBesideARunningService(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		out, stderr, err := runCommand(t, data, env, "key", "create", "--name", "from the shell", "--mode", "restricted", "--scopes", "read")
		if err != nil {
			t.Fatalf("key create: %v\n%s", err, stderr)
		}
		secret := strings.TrimSuffix(out, "\n")
		if !strings.HasPrefix(secret, "sk_restr_") || strings.ContainsAny(secret, " \n") {
			t.Fatalf("key create says %q, want the secret alone", out)
		}
		if status, res := s.call(t, secret, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the new key reads: %d %v", status, res)
		}
		if status, res := s.call(t, secret, http.MethodPost, "/v1/inboxes", "{}"); status != http.StatusForbidden {
			t.Errorf("the new key writes: %d %v, want 403", status, res)
		}
		list, stderr, err := runCommand(t, data, env, "key", "list")
		if err != nil || strings.Contains(list, secret) {
			t.Fatalf("key list: %v\n%s%s", err, list, stderr)
		}
		id := keyID(t, list, "from the shell")
		if out, stderr, err := runCommand(t, data, env, "key", "revoke", id); err != nil || out != "Revoked "+id+".\n" {
			t.Errorf("key revoke: %v\n%s%s", err, out, stderr)
		}
		if status, _ := s.call(t, secret, http.MethodGet, "/v1/inboxes", ""); status != http.StatusUnauthorized {
			t.Errorf("the revoked key: %d, want 401", status)
		}
		if _, stderr, err := runCommand(t, data, env, "key", "revoke", id); err == nil || !strings.Contains(stderr, "not found") {
			t.Errorf("revoke it again: %v %s", err, stderr)
		}
	})
}

// keyID finds the id of the key with this name in what `key list` says.
func keyID(t *testing.T, list, name string) string {
	t.Helper()
	for line := range strings.Lines(list) {
		if strings.Contains(line, name) {
			id, _, _ := strings.Cut(line, " ")
			return id
		}
	}
	t.Fatalf("no key %q in\n%s", name, list)
	return ""
}

func TestKeyCreateChecksItsFlags(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve(t, data)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no name", nil, "--name must be 1 to 100 characters"},
		{"an unknown mode", []string{"--name=x", "--mode=real"}, "--mode must be live, test or restricted"},
		{"an unknown scope", []string{"--name=x", "--scopes=read,everything"}, `--scopes: "everything" is not one of * admin`},
		{"a restricted key without scopes", []string{"--name=x", "--mode=restricted"}, "--scopes is required"},
		{"a bad range", []string{"--name=x", "--allowed-ips=10.0.0.300/8"}, "--allowed-ips"},
		{"an unknown inbox", []string{"--name=x", "--inbox-ids=ibx_1"}, "--inbox-ids: ibx_1: inbox: not found"},
		{"an end in the past", []string{"--name=x", "--expires-at=2020-01-01T00:00:00Z"}, "--expires-at must be a time to come"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, stderr, err := runCommand(t, data, nil, append([]string{"key", "create"}, tt.args...)...)
			if err == nil || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v\n%s%s\nwant %q", err, out, stderr, tt.want)
			}
		})
	}
}

func TestCommandsSayThatThereIsNoInstall(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"key", "list"}, {"domain", "show"}} {
		_, stderr, err := runCommand(t, data, nil, args...)
		if err == nil || !strings.Contains(stderr, "there is no database at "+data) {
			t.Errorf("%v: %v %s", args, err, stderr)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the commands made the data folder: %v", err)
	}
	if _, stderr, err := runCommand(t, data, nil, "migrate"); err != nil {
		t.Fatalf("migrate: %v %s", err, stderr)
	}
	if _, stderr, err := runCommand(t, data, nil, "key", "list"); err == nil || !strings.Contains(stderr, "there is no account yet") {
		t.Errorf("key list before the first start: %v %s", err, stderr)
	}
}

func TestNodesOnOnePostgreSQLNeedOneSecret(t *testing.T) {
	t.Parallel()
	database := "POSTROOM_DATABASE=" + testpg.Schema(t)
	secret := "POSTROOM_SECRET=" + strings.Repeat("the same on every node ", 2)
	first := serve(t, t.TempDir(), database, secret)
	second := serve(t, t.TempDir(), database, secret)
	if status, out := second.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
		t.Errorf("the first node's key on the second: %d %v", status, out)
	}
	data := t.TempDir()
	if text := refused(t, data, []string{database}); !strings.Contains(text, "belongs to an install whose secret is not in "+data) {
		t.Errorf("a node without that secret: %s", text)
	}
}

func TestNodesMayShareADataFolder(t *testing.T) {
	t.Parallel()
	data, database := t.TempDir(), "POSTROOM_DATABASE="+testpg.Schema(t)
	serve(t, data, database)
	serve(t, data, database)
	if text := refused(t, data, nil); !strings.Contains(text, "is in use by another") {
		t.Errorf("an SQLite database beside them: %s", text)
	}
}

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"late"}`)
		waited := make(chan map[string]any, 1)
		go func() {
			_, out := s.call(t, s.key, http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=120", inbox["id"]), "")
			waited <- out
		}()
		c := smtpDial(t, s.smtp)
		c.ok(250, "EHLO test")
		c.ok(250, "MAIL FROM:<a@example.org>")
		c.ok(250, "RCPT TO:<late@postroom.localhost>")
		c.ok(354, "DATA")
		c.line("From: a@example.org")

		s.signal(t, syscall.SIGTERM)
		// The wait's answer says that the shutdown has begun.
		if out := <-waited; out["timed_out"] != true {
			t.Errorf("the wait was answered with %v", out)
		}
		c.line("Subject: in flight")
		c.line("")
		c.ok(250, ".")
		if err := s.wait(); err != nil {
			t.Errorf("serve ended with %v; its log:\n%s", err, s.log)
		}

		s = serve(t, data, env...)
		key, _, err := runCommand(t, data, env, "key", "create", "--name", "after")
		if err != nil {
			t.Fatal(err)
		}
		_, list := s.call(t, strings.TrimSpace(key), http.MethodGet, "/v1/messages", "")
		if data, ok := list["data"].([]any); !ok || len(data) != 1 {
			t.Errorf("after the restart there are these messages: %v", list)
		}
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"slow"}`)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		s.call(t, s.key, http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=120", inbox["id"]), "")
	}()
	c := smtpDial(t, s.smtp)
	c.ok(250, "EHLO test")
	c.ok(250, "MAIL FROM:<a@example.org>")
	c.ok(250, "RCPT TO:<slow@postroom.localhost>")
	c.ok(354, "DATA")
	s.signal(t, os.Interrupt)
	<-waited // the shutdown has begun, and waits for the rest of the mail
	start := time.Now()
	s.signal(t, os.Interrupt)
	if err := s.wait(); err == nil {
		t.Error("exit status 0, although mail was cut off")
	}
	if took := time.Since(start); took > stopTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// smtpConn speaks SMTP, line by line.
type smtpConn struct {
	t        *testing.T
	conn     net.Conn
	text     *textproto.Conn
	greeting string
}

func smtpDial(t *testing.T, addr string) *smtpConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &smtpConn{t: t, conn: conn, text: textproto.NewConn(conn)}
	if _, c.greeting, err = c.text.ReadResponse(220); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *smtpConn) line(s string) {
	c.t.Helper()
	if err := c.text.PrintfLine("%s", s); err != nil {
		c.t.Fatal(err)
	}
}

// ok sends a line and wants an answer with this code.
func (c *smtpConn) ok(code int, s string) {
	c.t.Helper()
	c.line(s)
	if _, _, err := c.text.ReadResponse(code); err != nil {
		c.t.Fatalf("%s: %v", s, err)
	}
}
