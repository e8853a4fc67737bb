package faults_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// firstRelease is the commit of the first release: its schema is the oldest that is
	// upgraded.
	firstRelease = "85cc66d"
	// oldProgramVar names a program of an older release that is built already.
	oldProgramVar = "POSTROOM_TEST_OLD_PROGRAM"
	// upgradeMessagesVar sets how many messages are received before the upgrade, and how
	// many emails are queued.
	upgradeMessagesVar = "POSTROOM_TEST_UPGRADE_MESSAGES"
)

var errNoHistory = errors.New("the history of the repository is not here")

// buildFirstRelease builds the program of the first release in dir, from the history of
// the repository.
func buildFirstRelease(dir string) (string, error) {
	if path := os.Getenv(oldProgramVar); path != "" {
		return path, nil
	}
	look := exec.Command("git", "cat-file", "-e", firstRelease+"^{commit}")
	if out, err := look.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %w: %s", errNoHistory, err, out)
	}
	source := filepath.Join(dir, "first-release")
	if err := os.Mkdir(source, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "postroom-first-release")
	for _, step := range []struct {
		dir  string
		args []string
	}{
		{"../..", []string{"git", "archive", "--output=" + source + ".tar", firstRelease}},
		{source, []string{"tar", "-xf", source + ".tar"}},
		{source, []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/postroom"}},
	} {
		cmd := exec.Command(step.args[0], step.args[1:]...)
		cmd.Dir, cmd.Env = step.dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", step.args, err, out)
		}
	}
	return path, nil
}

// needFirstRelease returns the program of the first release.
func needFirstRelease(t *testing.T) string {
	t.Helper()
	path, err := firstReleaseProgram()
	if errors.Is(err, errNoHistory) {
		t.Skip(err) // also in CI: its workflow fetches the history, an archive has none
	}
	if err != nil {
		skiptest.OutsideCI(t, fmt.Sprintf("the first release cannot be built: %v", err))
	}
	return path
}

// TestUpgradeUnderKillsLosesNothing fills the first release with mail of all kinds and
// stops it. It kills the new program at random moments of its migration, each time on a
// copy, and then lets it finish. Every row of every table has the values that it had.
// Afterwards everything that was accepted is stored or sent once, `postroom verify` finds
// nothing, and the old program refuses the new schema. Row C13 of docs/testing.md.
func TestUpgradeUnderKillsLosesNothing(t *testing.T) {
	t.Parallel()
	old := needFirstRelease(t)
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			u := &upgrade{t: t, old: old, messages: pick(40, 1000), kills: pick(5, 50)}
			if n, err := strconv.Atoi(os.Getenv(upgradeMessagesVar)); err == nil {
				u.messages, u.kills = n, 5
			}
			u.run(e)
		})
	}
}

// upgrade is an installation of the first release, and copies of it that are upgraded.
type upgrade struct {
	t        *testing.T
	old      string // path of the program
	messages int    // received, and as many emails queued
	kills    int

	base  *installation
	pg    *testpg.Server // nil on SQLite
	relay *smtptest.MX
	open  atomic.Bool // whether the relay accepts mail
	hooks *hookReceiver

	from, to       inbox
	received, sent *ledger
	copies         int
}

func (u *upgrade) run(e storetest.Engine) {
	t := u.t
	u.received, u.sent, u.hooks = newLedger("received"), newLedger("sent"), newHookReceiver(t)
	u.hooks.respondWith(func(string, int) int { return http.StatusInternalServerError })
	u.relay = smtptest.NewMX(t, smtptest.MXConfig{Mail: func(string) error {
		if u.open.Load() {
			return nil
		}
		return smtptest.Refuse(451, [3]int{4, 3, 0}, "later")
	}})
	dir := filepath.Join(t.TempDir(), "data")
	database := filepath.Join(dir, "postroom.db")
	if e == storetest.PostgreSQL {
		u.pg = startPostgres(t)
		database = u.pg.URL(testpg.DefaultDatabase)
	}
	u.base = installationAt(t, e, dir, database)
	u.base.settings = []string{mayPostHere, "POSTROOM_RELAY=smtp://" + u.relay.Addr() + "?tls=maybe"}
	u.base.program, u.base.older = u.old, true
	u.base.start()
	u.fill()
	u.base.stop()
	before := u.base.tables()

	whole := u.copy()
	took := u.migrate(whole, time.Hour)
	moved := u.compare(whole, before)
	t.Logf("upgraded %d rows of %d tables in %s", moved, len(before), seconds(took))

	in := u.killInside(before, took)
	u.finish(in)
}

// killInside kills the migration until enough kills came after its first step and before
// its last, lets each copy finish, and compares it. It returns the last copy.
func (u *upgrade) killInside(before map[string]table, took time.Duration) *installation {
	u.t.Helper()
	var in *installation
	rng, stopped := randomness(u.t), map[int]int{}
	first, last := u.base.count(schemaVersion), 0
	earliest, latest := time.Duration(0), took
	for inside, tries := 0, 0; inside < u.kills; tries++ {
		if tries > 10*u.kills+20 {
			u.t.Fatalf("only %d of %d kills came inside the migration", inside, tries)
		}
		if in != nil {
			u.drop(in)
		}
		in = u.copy()
		after := earliest + upTo(rng, latest-earliest)
		u.migrate(in, after)
		version := in.count(schemaVersion)
		u.migrate(in, time.Hour)
		u.compare(in, before)
		last = in.count(schemaVersion)
		switch version {
		case first: // too early
			earliest = (3*earliest + after) / 4
		case last: // too late
			latest = (3*latest + after) / 4
		default:
			inside++
		}
		stopped[version]++
	}
	u.t.Logf("killed inside the migration %d times; the kills left the schema at %d different versions: %v", u.kills, len(stopped), stopped)
	return in
}

const schemaVersion = `SELECT max(version_id) FROM goose_db_version`

// fill receives and sends mail of all kinds with the old program.
func (u *upgrade) fill() {
	t, in := u.t, u.base
	boxes := in.createInboxes("from", "to", "asks")
	u.from, u.to = boxes[0], boxes[1]
	in.createHook(u.hooks.URL, "message.received")
	p := &pair{t: t, in: in, from: u.from, to: u.to, received: u.received, sent: u.sent}
	for range min(u.messages/10, 20) {
		p.want(small, 250, http.StatusCreated)
		p.want(large, 250, http.StatusCreated)
	}
	in.settle()
	api := in.current().caller()
	defer api.close()
	approval := map[string]any{"send_policy": "approval"}
	if err := api.call(t.Context(), http.StatusOK, nil, http.MethodPatch, "/v1/inboxes/"+boxes[2].ID, approval); err != nil {
		t.Fatal(err)
	}
	post := func(want int, path string, body map[string]any) {
		if err := api.call(t.Context(), want, nil, http.MethodPost, path, body); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		to := fmt.Sprintf("person%d@outside.example", i)
		post(http.StatusAccepted, "/v1/inboxes/"+boxes[2].ID+"/messages", map[string]any{"to": u.to.Address, "subject": "draft", "text": to})
		post(http.StatusCreated, "/v1/suppressions", map[string]any{"email": "no-" + to})
		post(http.StatusCreated, "/v1/templates", map[string]any{"name": to, "subject": "Hello", "html": "<p>{{name}}</p>"})
	}
	u.receiveMany()
	for at := 0; at < u.messages; at += 100 {
		var to []map[string]string
		for i := at; i < min(at+100, u.messages); i++ {
			to = append(to, map[string]string{"to": queuedTo(i)})
		}
		post(http.StatusCreated, "/v1/emails/batch", map[string]any{
			"from": "news@" + mailDomain, "subject": "queued", "text": "t", "recipients": to,
		})
	}
}

func queuedTo(i int) string { return fmt.Sprintf("queued%d@outside.example", i) }

// receiveMany receives messages from four clients.
func (u *upgrade) receiveMany() {
	u.t.Helper()
	var all errgroup.Group
	for range clients {
		all.Go(func() error {
			for u.received.count(accepted) < u.messages {
				c, err := dialSMTP(u.t.Context(), u.base.current().smtp)
				for i := 0; i < 50 && err == nil && u.received.count(accepted) < u.messages; i++ {
					m := newMessage(u.received.next(), small, u.to.Address)
					var o outcome
					o, err = c.send(m)
					u.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
				}
				if err != nil {
					return err
				}
				c.close()
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		u.t.Fatal(err)
	}
}

// copy returns a copy of the old installation, for the new program.
func (u *upgrade) copy() *installation {
	t := u.t
	t.Helper()
	u.copies++
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(u.base.dir)); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(dir, "postroom.db")
	if u.pg != nil {
		name := fmt.Sprintf("copy%d", u.copies)
		u.serverExec("CREATE DATABASE " + name + " TEMPLATE " + testpg.DefaultDatabase)
		database = u.pg.URL(name)
	}
	in := installationAt(t, u.base.engine, dir, database)
	in.settings = u.base.settings
	return in
}

// drop deletes a copy that is not needed any more.
func (u *upgrade) drop(in *installation) {
	u.t.Helper()
	if err := os.RemoveAll(in.dir); err != nil {
		u.t.Fatal(err)
	}
	if u.pg == nil {
		return
	}
	at, err := url.Parse(in.database)
	if err != nil {
		u.t.Fatal(err)
	}
	u.serverExec("DROP DATABASE " + strings.TrimPrefix(at.Path, "/") + " WITH (FORCE)")
}

// serverExec runs a statement outside of the databases that are copied.
func (u *upgrade) serverExec(q string) {
	u.t.Helper()
	db, err := sql.Open("postgres", u.pg.URL("postgres"))
	if err == nil {
		_, err = db.ExecContext(u.t.Context(), q)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		u.t.Fatalf("%s: %v", q, err)
	}
}

// migrate runs `postroom migrate`, kills it after a time, and returns how long it ran.
func (u *upgrade) migrate(in *installation, after time.Duration) time.Duration {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), after)
	defer cancel()
	began := time.Now()
	out, err := in.command(ctx, program, "migrate").CombinedOutput()
	if err != nil && ctx.Err() == nil {
		u.t.Fatalf("migrate: %v: %s", err, out)
	}
	return time.Since(began)
}

// table is one table: its columns, how many rows it has, and a sum over their values
// that does not depend on their order.
type table struct {
	columns []string
	rows    int
	sum     uint64
}

// rewritten lists columns that a migration changes.
var rewritten = []string{"drafts.addresses"}

// tables reads all tables of mail.
func (in *installation) tables() map[string]table {
	in.t.Helper()
	q := `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'goose%' AND m.name NOT LIKE 'search%'`
	if in.engine == storetest.PostgreSQL {
		q = `SELECT table_name, column_name FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%' AND table_name NOT LIKE 'search%'`
	}
	all := map[string]table{}
	in.query(q, func(row []any) {
		name, column := fmt.Sprint(row[0]), fmt.Sprint(row[1])
		if !slices.Contains(rewritten, name+"."+column) {
			t := all[name]
			t.columns = append(t.columns, column)
			all[name] = t
		}
	})
	for name, t := range all {
		all[name] = in.sum(name, t.columns)
	}
	return all
}

// sum reads a table.
func (in *installation) sum(name string, columns []string) table {
	in.t.Helper()
	t := table{columns: columns}
	in.query(`SELECT `+strings.Join(columns, ", ")+` FROM `+name, func(row []any) {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%q", row) // a hash never fails
		t.rows++
		t.sum += h.Sum64()
	})
	return t
}

// query calls each for every row; texts and bytes are strings.
func (in *installation) query(q string, each func(row []any)) {
	in.t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing was written
	rows, err := db.QueryContext(in.t.Context(), q)
	if err != nil {
		in.t.Fatalf("%s: %v", q, err)
	}
	defer func() { _ = rows.Close() }() // Err reports errors
	columns, err := rows.Columns()
	if err != nil {
		in.t.Fatal(err)
	}
	row, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			in.t.Fatal(err)
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		each(row)
	}
	if err := rows.Err(); err != nil {
		in.t.Fatalf("%s: %v", q, err)
	}
}

// compare reads the old columns of all old tables again, and returns the number of rows.
func (u *upgrade) compare(in *installation, before map[string]table) (rows int) {
	u.t.Helper()
	for name, was := range before {
		is := in.sum(name, was.columns)
		if is.rows != was.rows || is.sum != was.sum {
			u.t.Errorf("%s has %d rows after the upgrade and had %d, or their values differ", name, is.rows, was.rows)
		}
		rows += is.rows
	}
	return rows
}

// finish serves an upgraded installation and checks for everything that was promised.
func (u *upgrade) finish(in *installation) {
	t := u.t
	u.open.Store(true)
	u.hooks.respondWith(nil)
	in.hurry(t.Context()) // before the start: what is being delivered must not become due again
	in.start()
	in.auditBoth(u.sent, u.received, u.to, false)
	in.settleHooks()
	sent := map[string]int{}
	for _, m := range u.relay.Messages() {
		for _, to := range m.To {
			sent[to]++
		}
	}
	for i := range u.messages {
		if n := sent[queuedTo(i)]; n != 1 {
			t.Errorf("%s was sent %d times", queuedTo(i), n)
		}
	}
	stored := in.messages("in")
	if events, _ := u.hooks.count(); events != len(stored) {
		t.Errorf("%d events at the endpoint, of %d messages", events, len(stored))
	}
	u.compareRaw(in, stored)
	if n := in.count(`SELECT count(*) FROM drafts WHERE status = 'pending'`); n != 5 {
		t.Errorf("%d drafts wait for approval, want 5", n)
	}
	if n := in.count(`SELECT count(*) FROM recipients WHERE leased OR next_attempt_at IS NOT NULL`); n != 0 {
		t.Errorf("%d recipients are stuck", n)
	}
	out, err := in.command(t.Context(), program, "verify").CombinedOutput()
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	t.Logf("%d emails sent once; verify: %s", len(sent), bytes.TrimSpace(out))
	in.stop()
	u.downgrade(in)
}

// compareRaw downloads messages that were received before the upgrade, and compares them
// with what was sent.
func (u *upgrade) compareRaw(in *installation, stored []message) {
	u.t.Helper()
	api := in.current().caller()
	defer api.close()
	const most = 200
	for _, m := range stored[max(0, len(stored)-most):] {
		e, ok := u.received.entries[m.Subject]
		if !ok {
			continue
		}
		size := small
		if e.size >= large {
			size = large
		}
		raw, err := api.raw(u.t.Context(), m.ID)
		if want := newMessage(m.Subject, size, e.to...).raw; err != nil || !bytes.Equal(raw, want) {
			u.t.Errorf("%s: the raw message is not what was sent (%d bytes, sent %d): %v", m.Subject, len(raw), e.size, err)
		}
	}
}

// downgrade checks that the old program refuses the new schema and changes nothing.
func (u *upgrade) downgrade(in *installation) {
	t := u.t
	is := in.count(schemaVersion)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	in.older = true
	defer func() { in.older = false }()
	out, err := in.command(ctx, u.old, "serve").CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(out), "newer than the program's: use the newer program") {
		t.Errorf("the old program did not refuse the new schema: %v: %s", err, out)
	}
	if now := in.count(schemaVersion); now != is {
		t.Errorf("the old program changed the schema from version %d to %d", is, now)
	}
	t.Logf("the old program says: %s", bytes.TrimSpace(out))
}
