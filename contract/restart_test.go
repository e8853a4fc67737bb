package contract_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store/storetest"
)

// restarting is a program that ends and starts again on a POST to its control, at the
// same address and with the same data: at first in order, then killed, and so on.
type restarting struct {
	api, control string

	env []string
	mu  sync.Mutex
	cmd *exec.Cmd
	n   int
}

func startRestarting(t *testing.T) *restarting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close() // the program listens there
	r := &restarting{api: "http://" + addr, env: append(environ(),
		"POSTROOM_DATA="+t.TempDir(), "POSTROOM_HTTP="+addr, "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_BOOTSTRAP_KEY="+firstKey, "POSTROOM_RATE_LIMITS=off")}
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.end(syscall.SIGTERM); err != nil {
			t.Errorf("the program did not end well: %v", err)
		}
	})
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := r.restart(); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(control.Close)
	r.control = control.URL
	return r
}

// start runs the program and returns once it is ready.
func (r *restarting) start() error {
	cmd := exec.Command(program, "serve") //nolint:noctx // end ends it, in order
	cmd.Env = r.env
	dieWithUs(cmd)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the program is not ready: %w\n%s", errors.Join(err, cmd.Wait()), &log)
		}
		if strings.Contains(line, "is ready") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // until the program ends
	r.cmd = cmd
	return nil
}

func (r *restarting) end(how syscall.Signal) error {
	if err := r.cmd.Process.Signal(how); err != nil {
		return err
	}
	if err := r.cmd.Wait(); err != nil && how != syscall.SIGKILL {
		return err
	}
	return nil
}

func (r *restarting) restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	how := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[r.n%2]
	r.n++
	if err := r.end(how); err != nil {
		return err
	}
	return r.start()
}

// TestGoClientAndRestarts restarts the program in the middle of each kind of call of
// the Go client. The tests of the packages in sdk do the same.
func TestGoClientAndRestarts(t *testing.T) {
	t.Parallel()
	r := startRestarting(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c, err := client.New(r.api, firstKey, client.WithRetries(1000, 2*patience))
	if err != nil {
		t.Fatal(err)
	}
	shop, err := c.NewInbox(ctx, gen.InboxCreate{})
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := c.NewInbox(ctx, gen.InboxCreate{})
	if err != nil {
		t.Fatal(err)
	}
	restart := func() {
		if err := r.restart(); err != nil {
			t.Fatal(err)
		}
	}
	send := func(subject, text string) error {
		_, err := c.Send(ctx, shop.ID, gen.MessageSend{To: client.To(inbox.Address), Subject: subject, Text: client.Body(text)})
		return err
	}

	var calls sync.WaitGroup
	calls.Go(func() {
		m, err := c.WaitForMessage(ctx, inbox.ID, client.Wait{Has: gen.WaitHasCode})
		if err != nil || m.Extracted.Value.Otp.Value != "482913" {
			t.Errorf("the wait returns %+v, %v", m, err)
		}
	})
	restart() // during the wait
	want := []string{"Message code"}
	var sends sync.WaitGroup
	for i := range 10 {
		subject := fmt.Sprintf("Message %d", i)
		want = append(want, subject)
		sends.Go(func() {
			if err := send(subject, "Hello."); err != nil {
				t.Error(err)
			}
		})
	}
	restart() // during the sends
	sends.Wait()
	if err := send("Message code", "Your verification code is 482913."); err != nil {
		t.Error(err)
	}
	calls.Wait()

	var received []string
	for e, err := range c.Events(ctx, client.Stream{InboxID: inbox.ID, LastEventID: "evt_0"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "message.received" {
			received = append(received, e.ID)
			if len(received) == 4 {
				restart() // during the stream
			}
		}
		if len(received) == len(want) {
			break
		}
	}
	if slices.Sort(received); len(slices.Compact(received)) != len(want) {
		t.Errorf("the stream has %d events, want %d", len(received), len(want))
	}

	var listed []string
	for m, err := range c.Messages(ctx, gen.ListMessagesParams{InboxID: gen.NewOptString(inbox.ID), Limit: gen.NewOptInt(4)}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, m.Subject)
		if len(listed) == 4 {
			restart() // between pages
		}
	}
	slices.Sort(want)
	slices.Sort(listed)
	if d := cmp.Diff(want, listed); d != "" {
		t.Errorf("the messages (-want +got):\n%s", d)
	}
}

// sdkSettings let many sign-ups run at once with one key.
var sdkSettings = []string{"POSTROOM_RATE_LIMITS=off"}

// sdkFlows returns the number of sign-ups that the tests of the SDKs run at once.
func sdkFlows(t *testing.T) string {
	t.Helper()
	const flows = "50"
	if v := os.Getenv("POSTROOM_TEST_FLOWS"); v != "" {
		if _, err := strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return flows
}

// TestGoSDK runs as many sign-ups at once with the Go client as the tests of the
// packages in sdk do.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	in := start(t, storetest.SQLite, newChecker(t), sdkSettings...)
	flows, err := strconv.Atoi(sdkFlows(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(in.api, firstKey)
	if err != nil {
		t.Fatal(err)
	}
	shop, err := c.NewInbox(t.Context(), gen.InboxCreate{})
	if err != nil {
		t.Fatal(err)
	}
	signUp := func(code string) error {
		inbox, err := c.NewInbox(t.Context(), gen.InboxCreate{})
		if err != nil {
			return err
		}
		if _, err := c.Send(t.Context(), shop.ID, gen.MessageSend{
			To: client.To(inbox.Address), Subject: "Your sign-in code", Text: client.Body("Your verification code is " + code + "."),
		}); err != nil {
			return err
		}
		m, err := c.WaitForMessage(t.Context(), inbox.ID, client.Wait{Has: gen.WaitHasCode})
		if err == nil && m.Extracted.Value.Otp.Value != code {
			return fmt.Errorf("got the code %s, want %s", m.Extracted.Value.Otp.Value, code)
		}
		return err
	}
	var all sync.WaitGroup
	for i := range flows {
		all.Go(func() {
			if err := signUp(strconv.Itoa(300_000 + i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
