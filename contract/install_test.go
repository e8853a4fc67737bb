package contract_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// mailDomain is the domain of all inboxes and of the examples in the
	// contract.
	mailDomain = "agents.example.com"
	// firstKey is the full-access key of every installation.
	firstKey = "sk_live_contract_0123456789abcdefghijklmn"
	// patience limits the time for anything that must happen.
	patience = 60 * time.Second
)

// install is a running program with its own empty database. A relay discards
// its mail to other domains, and a receiver validates its webhooks against the
// contract.
type install struct {
	engine   storetest.Engine
	database string // address or path, not through the gate
	gate     *gate  // nil on SQLite
	check    *contractcheck.Checker
	base     http.RoundTripper

	api     string // http://host:port
	smtp    string // host:port
	metrics string // http://host:port/metrics

	receiver string // URL that accepts all webhooks
	relay    *smtptest.MX

	secrets secrets
	dns     *smtptest.ChangingDNS // initially empty
	domains atomic.Int64          // names used so far
}

// onEachEngine runs test on its engines (storetest.Engines), as parallel subtests
// with their names.
func onEachEngine(t *testing.T, test func(t *testing.T, e storetest.Engine)) {
	t.Helper()
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// start runs the program on e until the test ends, with settings as environment
// variables. It returns once the program is ready. check counts the exchanges.
func start(t *testing.T, e storetest.Engine, check *contractcheck.Checker, settings ...string) *install {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32}
	t.Cleanup(transport.CloseIdleConnections)
	in := &install{engine: e, check: check, base: transport}
	data := t.TempDir()
	served := filepath.Join(data, "postroom.db")
	in.database = served
	if e == storetest.PostgreSQL {
		in.database = testpg.Schema(t)
		in.gate, served = newGate(t, in.database)
	}
	in.dns = smtptest.NewChangingDNS(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if event, err := io.ReadAll(r.Body); err == nil {
			if err := check.Event(event); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(receiver.Close)
	in.receiver = receiver.URL + "/hooks/mail"
	in.relay = smtptest.NewMX(t, smtptest.MXConfig{})
	in.run(t, append(environ(),
		"POSTROOM_DATA="+data, "POSTROOM_DATABASE="+served, "POSTROOM_MAIL_DOMAIN="+mailDomain,
		"POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_BOOTSTRAP_KEY="+firstKey,
		"POSTROOM_SECRET="+installSecret, "POSTROOM_METRICS=127.0.0.1:0", "POSTROOM_RESOLVER="+in.dns.Addr(), "POSTROOM_RELAY=smtp://"+in.relay.Addr()+"?tls=maybe",
		"POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8"), settings)
	return in
}

// environ returns the environment without Postroom settings of the machine.
func environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") {
			env = append(env, v)
		}
	}
	return env
}

func (in *install) run(t *testing.T, env, settings []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "serve")
	cmd.Env = append(env, settings...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	dieWithUs(cmd)
	var log bytes.Buffer // written by one goroutine of cmd, until Wait returns
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		in.follow(out, ready)
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { // the test's context has ended, which stops the program
		if err := <-ended; err != nil && !errors.Is(err, t.Context().Err()) {
			t.Errorf("the program did not end well: %v", err)
		}
		checkLog(t, log.String())
		in.secrets.wantKept(t, map[string]string{"the log": log.String(), "the database": in.dump(t)})
	})
	select {
	case <-ready:
		if in.smtp == "" {
			t.Fatal("the program ended instead of serving")
		}
	case <-time.After(patience):
		t.Fatalf("the program was not ready within %v", patience)
	}
}

// follow reads the program's output until it ends. It closes ready once the
// output has the addresses or ends without them.
func (in *install) follow(out io.Reader, ready chan<- struct{}) {
	said := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case said || len(fields) < 2:
		case fields[0] == "API":
			in.api = fields[1]
		case fields[0] == "SMTP":
			in.smtp = fields[1]
		case fields[0] == "Metrics":
			in.metrics = fields[1]
		case fields[0] == "Key": // the last line
			said = true
			close(ready)
		}
	}
	if !said {
		close(ready)
	}
}

// checkLog checks the log for messages that no request may cause.
func checkLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
			t.Errorf("the log says: %s", line)
		}
	}
	if t.Failed() {
		t.Logf("the end of the log:\n%s", log[max(0, len(log)-2000):])
	}
}
