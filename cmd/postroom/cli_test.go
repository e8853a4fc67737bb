package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode"

	"github.com/postroom/postroom/internal/cli"
)

// shell runs commands that call a server.
type shell struct {
	t    *testing.T
	data string
	env  []string
	*served
}

func newShell(t *testing.T, data string, env []string) *shell {
	t.Helper()
	s := serve(t, data, env...)
	return &shell{t, data, []string{cli.ServerEnv + "=" + s.api, cli.KeyEnv + "=" + s.key}, s}
}

// run runs a command, which must end with this exit status, and returns what it
// wrote to its output, or its error if it must fail.
func (s *shell) run(status int, args ...string) string {
	s.t.Helper()
	out, said, err := runCommand(s.t, s.data, s.env, args...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != status {
		s.t.Fatalf("%q ended with %d, want %d:\n%s%s", args, got, status, out, said)
	}
	if status != exitOK {
		return said
	}
	return out
}

// first is the first word that a command writes, which is an id.
func (s *shell) first(args ...string) string {
	s.t.Helper()
	id, _, _ := strings.Cut(s.run(exitOK, args...), " ")
	return strings.TrimSpace(id)
}

// want runs a command and looks for these in what it writes.
func (s *shell) want(args []string, parts ...string) {
	s.t.Helper()
	out := s.run(exitOK, args...)
	for _, part := range parts {
		if !strings.Contains(out, part) {
			s.t.Errorf("%q does not write %q:\n%s", args, part, out)
		}
	}
}

// parsed is what a command writes as JSON.
func (s *shell) parsed(args ...string) (v map[string]any) {
	s.t.Helper()
	out := s.run(exitOK, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		s.t.Fatalf("%q: %v in\n%s", args, err, out)
	}
	return v
}

// receive delivers a message to an inbox.
func (s *shell) receive(inbox, raw string) string {
	s.t.Helper()
	_, in := s.call(s.t, s.key, http.MethodGet, "/v1/inboxes/"+inbox, "")
	raw = strings.ReplaceAll(raw, "\n", "\r\n")
	if err := smtp.SendMail(s.smtp, nil, "noreply@shop.example", []string{fmt.Sprint(in["address"])}, []byte(raw)); err != nil {
		s.t.Fatal(err)
	}
	for _, status := range []string{"quarantined", "received"} {
		_, l := s.call(s.t, s.key, http.MethodGet, "/v1/messages?limit=1&inbox_id="+inbox+"&status="+status, "")
		if newest, _ := l["data"].([]any); len(newest) == 1 {
			return fmt.Sprint(newest[0].(map[string]any)["id"])
		}
	}
	s.t.Fatal("the message is not in the inbox")
	return ""
}

const welcome = `From: Shop <noreply@shop.example>
To: signup@postroom.localhost
Subject: Welcome to the shop
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

Your verification code is 482913. It is good for 10 minutes.
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="../../order.pdf"

%PDF-1.7
--b--
`

// TestCommandsOverTheAPI is a day with two inboxes and a person who approves.
func TestCommandsOverTheAPI(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := newShell(t, data, env)
		signup := s.first("inbox", "create", "signup", "--display-name", "Sign Up")
		helper := s.first("inbox", "create", "helper", "--policy", "approval", "--lasts", "24h")
		s.want([]string{"inbox", "list"}, "signup@postroom.localhost", "helper@postroom.localhost", "approval")
		s.want([]string{"inbox", "get", "signup@postroom.localhost"}, signup, "Sign Up", "7 days")

		mail := s.receive(signup, welcome)
		if got := s.run(exitOK, "wait", "signup@postroom.localhost", "--code", "--from", "*@shop.example"); got != "482913\n" {
			t.Errorf("the code is %q", got)
		}
		s.want([]string{"wait", signup, "--has", "code"}, "Welcome to the shop", "Code     ", "Your verification code is 482913.")
		s.want([]string{"message", "list", "--inbox", signup, "--q", `"verification code"`, "--since", "1h"}, mail, "Shop <noreply@shop.example>")
		attachment := fmt.Sprint(s.parsed("message", "get", mail)["attachments"].([]any)[0].(map[string]any)["id"])
		file := filepath.Join(t.TempDir(), "order.pdf")
		s.run(exitOK, "message", "attachment", mail, attachment, "--output", file)
		if got := readFile(t, file); got != "%PDF-1.7" {
			t.Errorf("the attachment is %q", got)
		}
		s.run(exitFailed, "message", "raw", mail, "-o", file) // which is there
		if got := s.run(exitOK, "message", "raw", mail); got != strings.ReplaceAll(welcome, "\n", "\r\n") {
			t.Errorf("the raw message is %q", got)
		}

		sent := s.first("send", "--inbox", signup, "--to", "helper@postroom.localhost", "--subject", "Hello", "--text", "Are you there?", "--attach", file, "--idempotency-key", "1")
		if again := s.first("send", "--inbox", signup, "--to", "helper@postroom.localhost", "--subject", "Hello", "--text", "Are you there?", "--attach", file, "--idempotency-key", "1"); again != sent {
			t.Errorf("sent %s and %s, want it once", sent, again)
		}
		hello := fmt.Sprint(s.parsed("wait", helper, "--subject", "hello")["id"])
		s.want([]string{"message", "get", hello}, "order.pdf", "Are you there?")
		draft := s.first("reply", hello, "--text", "I am.")
		s.want([]string{"draft", "list"}, draft, "pending", "Re: Hello")
		s.want([]string{"draft", "get", draft}, "signup@postroom.localhost", "I am.")
		if said := s.run(exitFailed, "draft", "approve", draft, "--version", "7"); !strings.Contains(said, "draft_changed") {
			t.Error(said)
		}
		s.want([]string{"draft", "approve", draft, "--version", "1"}, "msg_", "queued")
		s.want([]string{"wait", signup, "--subject", "re:", "--json"}, `"extracted_text":"I am."`)
		s.want([]string{"draft", "reject", s.first("reply", hello, "--text", "No."), "--reason", "too short"}, "rejected")
		s.want([]string{"draft", "list", "--all"}, "sent", "rejected")

		email := s.first("send", "--from", "Shop <shop@postroom.localhost>", "--to", "signup@postroom.localhost", "--subject", "Thanks", "--html-file", writeFile(t, "<p>Thank you.</p>"))
		s.want([]string{"wait", signup, "--subject", "thanks"}, "Thank you.")
		s.want([]string{"email", "get", email}, "Shop <shop@postroom.localhost>", "signup@postroom.localhost", "Thanks")
		s.want([]string{"email", "list", "--limit", "1"}, email)
		if sends := s.parsed("usage")["sends_today"].(map[string]any)["used"]; sends != 3.0 {
			t.Errorf("%v sends", sends)
		}
		s.want([]string{"usage"}, "self_hosted", "Sends today")
		s.want([]string{"inbox", "delete", "helper@postroom.localhost"}, "Deleted "+helper)
		s.run(exitNotFound, "inbox", "get", helper)
	})
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestEventsAreFollowed follows what happens, and ends well when interrupted.
func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	in := s.first("inbox", "create", "a")
	s.receive(in, welcome)
	for _, asJSON := range []bool{false, true} {
		cmd := command(t, s.data, s.env, "events", "--inbox", in, "--after", "evt_none", fmt.Sprint("--json=", asJSON))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan() // the gap
		gap := lines.Text()
		lines.Scan()
		line := lines.Text()
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("interrupted, it ended with %v", err)
		}
		var e struct {
			Type string
			Data struct{ Subject string }
		}
		switch {
		case asJSON && (json.Unmarshal([]byte(line), &e) != nil || e.Type != "message.received" || e.Data.Subject != "Welcome to the shop"):
			t.Errorf("got %s", line)
		case !asJSON && (!strings.Contains(gap, "are lost") || !strings.Contains(line, "message.received") || !strings.HasSuffix(line, "Welcome to the shop")):
			t.Errorf("got %s, %s", gap, line)
		}
	}
}

// hostile is a message with terminal escapes and direction marks.
const hostile = `From: =?utf-8?q?=1B]0;owned=07?= <a@shop.example>
To: a@postroom.localhost
Subject: =?utf-8?q?=1B[31mred=C2=9B2J_=E2=80=AEtxt.exe?=
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

=1B[2Jcleared=C2=9B5m=07
next=09line
`

// Escape sequences in messages are not printed, whether as a table, as text or as
// JSON.
func TestOutputHasNoEscapeSequences(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	in := s.first("inbox", "create", "a")
	id := s.receive(in, hostile)
	for _, args := range [][]string{
		{"message", "list"},
		{"message", "list", "--json"},
		{"message", "get", id},
		{"message", "get", id, "--json"},
		{"wait", in, "--json"},
		{"message", "get", "msg_\x1b[31m"},
		{"inbox", "get", "\x1b[31m@x"},
	} {
		out, said, _ := runCommand(t, s.data, s.env, args...) // the last two fail
		for _, r := range out + said {
			if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) && r != '\n' && r != '\t' {
				t.Errorf("%q writes %q in\n%q", args, r, out+said)
				break
			}
		}
	}
	s.want([]string{"message", "get", id}, `txt.exe`, "\\x1b[2Jcleared\\x9b5m\\x07\nnext\tline")
	if m := s.parsed("message", "get", id); !strings.Contains(fmt.Sprint(m["text"]), "\x1b[2Jcleared\u009b5m") {
		t.Errorf("the JSON output changes the text: %q", m["text"])
	}
}

// An error of a command says what to do.
func TestCommandsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	in := s.first("inbox", "create", "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	send := []string{"send", "--to", "a@b.example", "--subject", "s"}
	tests := []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"a wrong key", []string{"usage", "--key", "sk_live_wrong"}, exitFailed, "unauthorized: "},
		{"a wrong key, with the command that creates one", []string{"usage", "--key", "sk_live_wrong"}, exitFailed, "`postroom key create --name NAME`"},
		{"no server there", []string{"usage", "--server", closed}, exitFailed, "no server at " + closed + ": start `postroom serve`, or set another server"},
		{"not an address", []string{"usage", "--server", "localhost:8080"}, exitUsage, `"localhost:8080" is not the address of a server`},
		{"an address with the version", []string{"usage", "--server", s.api + "/v1"}, exitUsage, "leave /v1 out"},
		{"another path of the server", []string{"usage", "--server", s.api + "/elsewhere"}, exitFailed, "is " + s.api + "/elsewhere the address of a Postroom server?"},
		{"no such message", []string{"message", "get", "msg_none"}, exitNotFound, "not_found"},
		{"no such inbox", []string{"wait", "missing@postroom.localhost"}, exitNotFound, "inbox missing@postroom.localhost not found"},
		{"no message arrived", []string{"wait", in, "--timeout", "1s"}, exitTimedOut, "no message arrived within 1s"},
		{"no code arrived", []string{"wait", in, "--timeout", "1s", "--code"}, exitTimedOut, "no message arrived within 1s"},
		{"an unknown policy", []string{"inbox", "create", "--policy", "closed"}, exitUsage, "open, reply_only, approval"},
		{"a malformed time", []string{"message", "list", "--since", "yesterday"}, exitUsage, "such as 10m"},
		{"a limit of 0", []string{"message", "list", "--limit", "0"}, exitUsage, "use a number from 1"},
		{"an unknown flag", []string{"usage", "--databse", "x"}, exitUsage, "unknown flag"},
		{"a flag of another kind of command", []string{"usage", "--data", "x"}, exitUsage, "unknown flag: --data"},
		{"a missing argument", []string{"reply"}, exitUsage, "usage: postroom reply MESSAGE"},
		{"an unknown command", []string{"message", "lst"}, exitUsage, `did you mean list?`},
		{"a name that is taken", []string{"inbox", "create", "a"}, exitFailed, "address_taken"},
		{"several faults", []string{"inbox", "create", "a", "--retention-days", "99"}, exitFailed, "retention_days"},
		{"no sender", append(send, "--text", "t"), exitUsage, "[inbox from]"},
		{"nothing to send", append(send, "--inbox", in), exitUsage, "[text text-file html-file]"},
		{"a missing file", append(send, "--inbox", in, "--text-file", "/nowhere/text"), exitFailed, "/nowhere/text"},
		{"a foreign sender", append(send, "--from", "a@elsewhere.example", "--text", "t"), exitFailed, "domain_not_verified"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			here := *s
			here.t = t
			if said := here.run(tt.status, tt.args...); !strings.HasPrefix(said, "postroom: ") || !strings.Contains(said, tt.want) {
				t.Errorf("it says %q, want %q", said, tt.want)
			}
		})
	}
	t.Run("no key", func(t *testing.T) {
		t.Parallel()
		_, said, err := runCommand(t, s.data, nil, "usage")
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitUsage || !strings.Contains(said, "set POSTROOM_KEY or --key; create one on the server with `postroom key create --name NAME`") {
			t.Errorf("%v %s", err, said)
		}
	})
	t.Run("a service is not kept from starting by what clients read", func(t *testing.T) {
		t.Parallel()
		if _, said, err := runCommand(t, t.TempDir(), s.env, "config"); err != nil {
			t.Errorf("%v %s", err, said)
		}
	})
}

// TestListsAndQuarantine adds entries, sends and receives under them, and releases what
// they held back.
func TestListsAndQuarantine(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := newShell(t, data, env)
		signup := s.first("inbox", "create", "signup")
		block := s.first("list", "add", "block", "*@rival.example")
		held := s.first("list", "add", "approve", "*@shop.example", "--direction", "inbound", "--inbox", "signup@postroom.localhost")
		s.want([]string{"list", "list"}, "outbound   block    *@rival.example  all inboxes", "inbound    approve  *@shop.example   "+signup)
		if said := s.run(exitUsage, "list", "add", "forbid", "*@rival.example"); !strings.Contains(said, "allow, block, approve") {
			t.Error(said)
		}
		if said := s.run(exitFailed, "send", "--inbox", signup, "--to", "boss@rival.example", "--subject", "s", "--text", "t"); !strings.Contains(said, "recipient_blocked") {
			t.Error(said)
		}
		mail := s.receive(signup, welcome)
		if out := s.run(exitOK, "message", "list"); strings.Contains(out, mail) {
			t.Errorf("the list shows quarantine:\n%s", out)
		}
		s.want([]string{"message", "list", "--status", "quarantined"}, mail)
		s.want([]string{"message", "release", mail}, mail, "received")
		s.want([]string{"wait", signup, "--has", "code"}, "Welcome to the shop")
		drop := s.receive(signup, welcome)
		s.want([]string{"message", "delete", drop}, "Deleted", drop)
		for _, id := range []string{block, held} {
			s.want([]string{"list", "delete", id}, "Deleted", id)
		}
		s.run(exitNotFound, "list", "delete", block)
		s.run(exitOK, "send", "--inbox", signup, "--to", "boss@rival.example", "--subject", "s", "--text", "t")
	})
}

// TestWebhooksOfTheCommandLine creates, tests, replays and deletes an endpoint.
func TestWebhooksOfTheCommandLine(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		var status atomic.Int64
		status.Store(http.StatusNoContent)
		got := make(chan string, 100)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // what was cut off is not JSON
			var event struct{ Type string }
			_ = json.Unmarshal(body, &event)
			w.WriteHeader(int(status.Load()))
			got <- event.Type
		}))
		t.Cleanup(receiver.Close)
		s := newShell(t, data, append(env, "POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8"))
		signup := s.first("inbox", "create", "signup")
		hook := s.first("webhook", "create", receiver.URL, "--event", "message.received,message.sent", "--inbox", "signup@postroom.localhost")
		s.want([]string{"webhook", "list"}, hook, "active", receiver.URL)
		s.want([]string{"webhook", "get", hook}, "message.received, message.sent", signup)
		s.want([]string{"webhook", "test", hook}, "204")
		if typ := <-got; typ == "" {
			t.Error("the test event has no type")
		}
		status.Store(http.StatusInternalServerError)
		s.run(exitFailed, "webhook", "test", hook)
		<-got
		status.Store(http.StatusNoContent)
		s.receive(signup, welcome)
		if typ := <-got; typ != "message.received" {
			t.Errorf("the event is %s", typ)
		}
		s.want([]string{"webhook", "replay", hook, "--since", "1h", "--event", "message.received"}, "1 events")
		if typ := <-got; typ != "message.received" {
			t.Errorf("the event is %s", typ)
		}
		s.run(exitUsage, "webhook", "replay", hook)
		s.run(exitUsage, "webhook", "create", receiver.URL, "--event", "message.recieved")
		s.want([]string{"webhook", "delete", hook}, "Deleted", hook)
		s.run(exitNotFound, "webhook", "get", hook)
	})
}

// TestListsShowAsMuchAsIsAskedFor over pages.
func TestListsShowAsMuchAsIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	for range 5 {
		s.run(exitOK, "inbox", "create")
	}
	for limit, lines := range map[string]int{"3": 1 + 3 + 1, "5": 1 + 5, "9": 1 + 5} {
		if out := s.run(exitOK, "inbox", "list", "--limit", limit); strings.Count(out, "\n") != lines {
			t.Errorf("--limit %s shows\n%s", limit, out)
		}
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(s.run(exitOK, "inbox", "list", "--json", "--limit", "4")), &all); err != nil || len(all) != 4 || all[0]["object"] != "inbox" {
		t.Errorf("%v %v", err, all)
	}
	if out := s.run(exitOK, "message", "list", "--json"); out != "[]\n" {
		t.Errorf("no messages are %q", out)
	}
}

// A command changes only what its flags name.
func TestInboxUpdateChangesWhatIsNamed(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), nil)
	s.run(exitOK, "inbox", "create", "signup", "--alias", "old", "--display-name", "Sign up", "--lasts", "1h")
	const address = "signup@postroom.localhost"
	s.want([]string{"inbox", "update", address, "--alias", "sales,orders", "--policy", "approval"}, address)
	s.want([]string{"inbox", "get", address}, "sales, orders", "approval", "Sign up", "Expires")
	s.run(exitOK, "inbox", "update", address, "--alias", "", "--display-name", "", "--lasts", "0")
	in := s.parsed("inbox", "get", address)
	if fmt.Sprint(in["aliases"]) != "[]" || in["display_name"] != nil || in["expires_at"] != nil || in["send_policy"] != "approval" {
		t.Errorf("after the removal: %v", in)
	}
	if said := s.run(exitUsage, "inbox", "update", address); !strings.Contains(said, "nothing to change") {
		t.Error(said)
	}
	if said := s.run(exitFailed, "inbox", "update", address, "--catch-all"); !strings.Contains(said, "catch_all") {
		t.Error(said)
	}
}
