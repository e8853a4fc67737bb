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
	// firstKey is the full-access key of every install.
	firstKey = "sk_live_faults_0123456789abcdefghijklmn"
	// patience is how long anything that is bound to happen may take.
	patience = 60 * time.Second
)

// install is a data folder with its database, and the process that serves it
// while one does.
type install struct {
	t        *testing.T
	engine   storetest.Engine
	dir      string
	database string   // path or address
	settings []string // further settings, as in the environment
	program  string   // what is run, when it is not the program as it is released

	mu      sync.Mutex
	serving *node
	changed chan struct{} // closed when serving is set
}

// onEachEngine runs test on an empty install on SQLite and on one on
// PostgreSQL, as subtests named after them.
func onEachEngine(t *testing.T, test func(t *testing.T, in *install)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, newInstall(t, e))
		})
	}
}

// newInstall makes an empty install that nothing serves yet.
func newInstall(t *testing.T, e storetest.Engine) *install {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if e == storetest.PostgreSQL {
		return installAt(t, e, dir, testpg.Schema(t))
	}
	return installAt(t, e, dir, filepath.Join(dir, "postroom.db"))
}

// installAt is newInstall with a folder and a database of the test's choice.
func installAt(t *testing.T, e storetest.Engine, dir, database string) *install {
	t.Helper()
	in := &install{t: t, engine: e, dir: dir, database: database, changed: make(chan struct{})}
	t.Cleanup(func() {
		if n := in.current(); n != nil {
			n.kill()
		}
		in.checkLog()
	})
	return in
}

// environ is the environment of the program: ours, without settings of the
// machine that the tests run on.
func (in *install) environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") {
			env = append(env, v)
		}
	}
	env = append(env,
		"POSTROOM_DATA="+in.dir, "POSTROOM_DATABASE="+in.database, "POSTROOM_MAIL_DOMAIN="+mailDomain,
		"POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_SMTP_MAX_CONNS_PER_IP=1000",
		"POSTROOM_BOOTSTRAP_KEY="+firstKey, "POSTROOM_RATE_LIMITS=off",
	)
	return append(env, in.settings...)
}

// command is the program with these arguments, on this install. It is killed
// when ctx ends.
func (in *install) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = in.environ()
	dieWithUs(cmd)
	return cmd
}

// run is what a node runs.
func (in *install) run() string {
	if in.program != "" {
		return in.program
	}
	return program
}

// start serves the install and returns when the program says that it is ready.
// With wrap, the program is run by that command.
func (in *install) start(wrap ...string) *node {
	in.t.Helper()
	log, err := os.OpenFile(in.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own
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
	case <-time.After(patience):
		n.kill()
		in.t.Fatalf("the program was not ready within %v\n%s", patience, in.logTail())
	}
	in.set(n)
	return n
}

// set makes n the node that clients find, nil for none.
func (in *install) set(n *node) {
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

func (in *install) current() *node {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.serving
}

// await returns the node that serves, and waits for one while there is none.
func (in *install) await(ctx context.Context) (*node, error) {
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

// crash kills the node that serves, as `kill -9` does.
func (in *install) crash() {
	n := in.current()
	in.set(nil)
	n.kill()
}

// seconds shows a time in figures that are easy to compare.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
