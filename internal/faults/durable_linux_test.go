package faults_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/store/storetest"
)

// TestPromisesAreOnDiskBeforeTheyAreSent traces the system calls of the program while
// mail arrives and the API creates inboxes, keys and messages. When the program sends
// 250 or 201, the whole transaction is on the disk, with the row of the idempotency
// key in it, and the blob was there before the transaction. Rows C2 (mail) and C3
// (API) of docs/testing.md.
func TestPromisesAreOnDiskBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		p := &promises{in: in, messages: pick(200, 1000), calls: pick(100, 1000), book: newLedger("durable")}
		p.run(t)
	})
}

// promises runs mail and calls against the program under strace.
type promises struct {
	in              *installation
	messages, calls int // to be accepted

	book  *ledger
	box   inbox
	large atomic.Int64 // messages in the blob folder
}

// traced are the system calls that write, sync, name and respond.
const traced = "read,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdirat"

func (p *promises) run(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	// The program stays our child; strace is a grandchild that keeps our end of
	// its output open until the trace is whole. Strings of SQLite are pages.
	n := p.in.start(findStrace(t), "-D", "-f", "-yy", "-s", "131072", "--seccomp-bpf", "-o", file, "-e", "trace="+traced)
	p.box = p.in.createInboxes("box")[0]
	working, ctx := errgroup.WithContext(t.Context())
	for range clients {
		working.Go(func() error { return p.receive(ctx, n) })
		working.Go(func() error { return p.call(ctx, n) })
	}
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	p.in.stop()
	p.check(t, n, file)
}

// receive sends a share of the mail. Every tenth message goes to the blob folder.
func (p *promises) receive(ctx context.Context, n *node) error {
	c, err := dialSMTP(ctx, n.smtp)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range p.messages / clients {
		size := 1 << 10
		if i%10 == 0 {
			size = 300 << 10
			p.large.Add(1)
		}
		if _, err := c.send(newMessage(p.book.next(), size, p.box.Address)); err != nil {
			return err
		}
	}
	return nil
}

// call makes a share of the API calls: in turn an inbox, a key and a message.
func (p *promises) call(ctx context.Context, n *node) error {
	c := n.caller()
	defer c.close()
	for i := range p.calls / clients {
		id := p.book.next()
		path, body := "/v1/inboxes", map[string]any{"name": id}
		once := []string{"Idempotency-Key", strings.Replace(id, "durable", "once", 1)}
		switch i % 3 {
		case 1:
			path, once = "/v1/keys", nil // its response contains a secret and is never cached
		case 2:
			path, body = "/v1/inboxes/"+p.box.ID+"/messages", map[string]any{"to": p.box.Address, "subject": id, "text": bodyMark(id)}
		}
		if err := c.call(ctx, http.StatusCreated, nil, http.MethodPost, path, body, once...); err != nil {
			return err
		}
	}
	return nil
}

// check reads the trace and reports the faults that it finds.
func (p *promises) check(t *testing.T, n *node, file string) {
	t.Helper()
	trace, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = trace.Close() }()
	rows := database(newWALTrace())
	if p.in.engine == storetest.PostgreSQL {
		rows = newPGTrace()
	}
	d := newDurability(rows, n.smtp, strings.TrimPrefix(n.api, "http://"))
	if err := readTrace(trace, d.take); err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.faults[:min(len(d.faults), 20)] {
		t.Error(fault)
	}
	messages, calls := p.messages/clients*clients, p.calls/clients*clients
	if d.promised["250"] != messages || d.promised["201"] != calls || len(d.blobs.file) != int(p.large.Load()) {
		t.Errorf("the trace shows %v and %d blobs; there were %d messages, %d calls, %d blobs", d.promised, len(d.blobs.file), messages, calls, p.large.Load())
	}
	t.Logf("%d faults in %d promises: %v, %d of them with a blob", len(d.faults), messages+calls, d.promised, p.large.Load())
	if pg, is := rows.(*pgTrace); is {
		p.checkServer(t, pg)
	}
}

// checkServer checks that COMMIT is durable: that neither the program nor the settings
// of the server, database or role weaken it.
func (p *promises) checkServer(t *testing.T, trace *pgTrace) {
	t.Helper()
	for _, text := range trace.weakened {
		t.Errorf("the program wrote: %q", text)
	}
	db, err := p.in.openDatabase()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	settings := []string{"synchronous_commit"}
	if full { // otherwise the server may be configured for speed
		settings = append(settings, "fsync", "full_page_writes")
	}
	for _, name := range settings {
		if got := show(t, db, name); got != "on" {
			t.Errorf("%s is %s on the server", name, got)
		}
	}
}

func show(t *testing.T, db *sql.DB, setting string) string {
	t.Helper()
	var value string
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// findStrace returns the path of a working strace, and installs it when it is missing.
// Outside of CI the test is skipped when that fails.
func findStrace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		install := exec.CommandContext(t.Context(), "sh", "-c",
			`as() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
			as apt-get update -qq; as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends strace`)
		if out, err := install.CombinedOutput(); err != nil {
			skiptest.OutsideCI(t, fmt.Sprintf("strace is missing and cannot be installed: %v: %s", err, out))
		}
		if path, err = exec.LookPath("strace"); err != nil {
			skiptest.OutsideCI(t, err.Error())
		}
	}
	if out, err := exec.CommandContext(t.Context(), path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		skiptest.OutsideCI(t, fmt.Sprintf("strace does not work here: %v: %s", err, out))
	}
	return path
}
