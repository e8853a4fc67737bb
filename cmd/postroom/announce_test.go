package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// onTerminal is `postroom serve` as a person starts it, whose stdout is a
// terminal. It runs in the test, since the program of other tests has none.
type onTerminal struct {
	served

	cancel context.CancelFunc
}

func serveOnTerminal(t *testing.T, data string, env ...string) *onTerminal {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &onTerminal{served{stdout: &syncBuffer{}, log: &syncBuffer{}, ended: make(chan error, 1)}, cancel}
	r, w := io.Pipe()
	root := newCommand(program{
		environ: append([]string{"POSTROOM_DATA=" + data, "POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0"}, env...),
		stdin:   strings.NewReader(""), stdout: io.MultiWriter(s.stdout, w), stderr: s.log, terminal: true,
	})
	root.SetArgs([]string{"serve"})
	go func() {
		err := root.ExecuteContext(ctx)
		_ = w.CloseWithError(io.ErrUnexpectedEOF) // it never fails
		s.ended <- err
	}()
	lines := bufio.NewReader(r)
	if err := s.read(lines); err != nil {
		t.Fatalf("it did not say that it is ready (%v): %s%s", err, s.stdout, s.log)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	t.Cleanup(func() { s.leave(t) })
	return s
}

func (s *onTerminal) leave(t *testing.T) {
	t.Helper()
	s.endOnce.Do(func() {
		s.cancel()
		if err := s.await(); err != nil {
			t.Errorf("serve ended with %v; its log:\n%s", err, s.log)
		}
	})
}

func TestFirstStartOnATerminalShowsAKeyAndALinkOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		first := serveOnTerminal(t, data, env...)
		if n := strings.Count(first.stdout.String(), "sk_live_"); n != 1 {
			t.Errorf("the first start shows %d keys:\n%s", n, first.stdout)
		}
		if status, out := first.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the first key: %d %v", status, out)
		}
		link := setupLink.FindString(first.stdout.String())
		if status := first.page(t, link); status != http.StatusOK {
			t.Errorf("the link %q of the first start: %d", link, status)
		}
		if status := first.page(t, first.api+"/"); status != http.StatusSeeOther {
			t.Errorf("the dashboard without a session: %d", status)
		}
		if status, out := first.call(t, "", http.MethodGet, "/nowhere", ""); status != http.StatusNotFound || out["error"] == nil {
			t.Errorf("an unknown path: %d %v, want the JSON of the API", status, out)
		}
		first.leave(t)
		second := serveOnTerminal(t, data, env...)
		if second.key != "" || hasSecret(second.stdout.String()) {
			t.Errorf("the second start shows a secret:\n%s", second.stdout)
		}
		if status, out := second.call(t, first.key, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the first key after a restart: %d %v", status, out)
		}
		for _, s := range []*onTerminal{first, second} {
			if hasSecret(s.log.String()) {
				t.Errorf("a secret is in the log:\n%s", s.log)
			}
		}
	})
}

func hasSecret(text string) bool {
	return strings.Contains(text, "sk_live_") || strings.Contains(text, "/setup/")
}

// TestNoSecretIsSaidWhereItIsKept starts a service as a container or systemd does,
// which keep both of its streams.
func TestNoSecretIsSaidWhereItIsKept(t *testing.T) {
	t.Parallel()
	data, none := t.TempDir(), "POSTROOM_BOOTSTRAP_KEY="
	s := serve(t, data, none)
	said := s.stdout.String()
	for _, want := range []string{"`postroom key create --name first` makes one", "`postroom user reset admin` makes the link"} {
		if !strings.Contains(said, want) {
			// What comes after the line of the key may still be on its way.
			s.stop(t)
			if said = s.stdout.String(); !strings.Contains(said, want) {
				t.Errorf("it does not say %q:\n%s", want, said)
			}
		}
	}
	s.stop(t)
	if hasSecret(said + s.log.String()) {
		t.Errorf("a secret is said:\n%s%s", said, s.log)
	}
	if keys, _, err := runCommand(t, data, nil, "key", "list"); err != nil || strings.Count(keys, "\n") != 1 {
		t.Errorf("a key was made that nobody knows (%v):\n%s", err, keys)
	}
	if link, _, err := runCommand(t, data, nil, "user", "reset", "admin"); err != nil || !setupLink.MatchString(link) {
		t.Errorf("the link of the first user: %q %v", link, err)
	}
}

// TestLogOfJSONIsJSON on both streams together.
func TestLogOfJSONIsJSON(t *testing.T) {
	t.Parallel()
	cmd := command(t, t.TempDir(), []string{"POSTROOM_LOG=json"}, "serve")
	both, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready map[string]any
	for lines := bufio.NewScanner(both); lines.Scan(); {
		var record map[string]any
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			t.Errorf("%v: %s", err, lines.Text())
		}
		if record["msg"] == "ready" {
			ready = record
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, fact := range []string{"api", "smtp", "key", "dashboard"} {
		if text, _ := ready[fact].(string); text == "" || hasSecret(text) {
			t.Errorf("%s is %q in %v", fact, text, ready)
		}
	}
}
