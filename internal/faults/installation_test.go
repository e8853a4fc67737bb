package faults_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// mailDomain is the domain of all inboxes.
	mailDomain = "faults.example"
	// firstKey is the full-access key of every installation.
	firstKey = "sk_live_faults_0123456789abcdefghijklmn"
	// testTimeout is how long the tests wait for anything that must happen.
	testTimeout = 60 * time.Second
)

// installation is a data folder with its database, and the process that serves it, if
// there is one.
type installation struct {
	t        *testing.T
	engine   storetest.Engine
	dir      string
	database string   // path or URL
	settings []string // additional environment variables
	program  string   // path of another build of the program, if any

	mu      sync.Mutex
	serving *node
	changed chan struct{} // closed when serving is set
}

// onEachEngine runs test on an empty installation on each of its engines
// (storetest.Engines), as subtests named after them.
func onEachEngine(t *testing.T, test func(t *testing.T, in *installation)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, newInstallation(t, e))
		})
	}
}

// newInstallation creates an empty installation that no process serves yet.
func newInstallation(t *testing.T, e storetest.Engine) *installation {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if e == storetest.PostgreSQL {
		return installationAt(t, e, dir, testpg.Schema(t))
	}
	return installationAt(t, e, dir, filepath.Join(dir, "postroom.db"))
}

// installationAt is newInstallation with the folder and database that the test chooses.
func installationAt(t *testing.T, e storetest.Engine, dir, database string) *installation {
	t.Helper()
	in := &installation{t: t, engine: e, dir: dir, database: database, changed: make(chan struct{})}
	t.Cleanup(func() {
		if n := in.current(); n != nil {
			n.kill()
		}
		in.checkLog()
	})
	return in
}

// environ returns the environment of the program: the test's own, without Postroom
// settings of the machine.
func (in *installation) environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") {
			env = append(env, v)
		}
	}
	env = append(env,
		"POSTROOM_DATA="+in.dir, "POSTROOM_DATABASE="+in.database, "POSTROOM_MAIL_DOMAIN="+mailDomain,
		"POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_SMTP_MAX_CONNS_PER_IP=1000",
		"POSTROOM_BOOTSTRAP_KEY="+firstKey, "POSTROOM_RATE_LIMITS=off", "POSTROOM_HTTP_MAX_CONNS_PER_IP=10000",
		"POSTROOM_INBOX_QUOTA=off", // long runs fill inboxes
	)
	return append(env, in.settings...)
}

// command returns the program with these arguments, on this installation. It is
// killed when ctx ends.
func (in *installation) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = in.environ()
	dieWithUs(cmd)
	return cmd
}

// run returns the program that a node runs.
func (in *installation) run() string {
	if in.program != "" {
		return in.program
	}
	return program
}

// start serves the installation and returns when the program reports that it is ready.
// With wrap, that command runs the program.
func (in *installation) start(wrap ...string) *node {
	in.t.Helper()
	log, err := os.OpenFile(in.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	n := &node{
		cmd:    in.command(context.Background(), append(wrap, in.run(), "serve")...),
		ready:  make(chan struct{}),
		exited: make(chan struct{}),
	}
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		in.t.Fatal(err)
	}
	n.began = time.Now()
	if err := n.cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	go n.follow(out)
	select {
	case <-n.ready:
	case <-n.exited:
		in.t.Fatalf("the program ended instead of serving: %v\n%s", n.err, in.logTail())
	case <-time.After(testTimeout):
		n.kill()
		in.t.Fatalf("the program was not ready within %v\n%s", testTimeout, in.logTail())
	}
	in.set(n)
	return n
}

// set makes n the node that clients find, or nil for none.
func (in *installation) set(n *node) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.serving == nil && n != nil {
		close(in.changed)
	}
	if in.serving != nil && n == nil {
		in.changed = make(chan struct{})
	}
	in.serving = n
}

func (in *installation) current() *node {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.serving
}

// await returns the node that serves. While there is none, it waits for one.
func (in *installation) await(ctx context.Context) (*node, error) {
	for ctx.Err() == nil {
		in.mu.Lock()
		n, changed := in.serving, in.changed
		in.mu.Unlock()
		if n != nil {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// crash kills the node that serves with SIGKILL.
func (in *installation) crash() {
	n := in.current()
	in.set(nil)
	n.kill()
}

// seconds formats a duration so that it is easy to compare.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
