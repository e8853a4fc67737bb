package faults_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// TestAcceptedMailSurvivesPowerCuts cuts the power of the whole machine while small and
// large mail arrives, the API accepts messages, the queue delivers them and webhooks are
// posted. Writes that were not synced are dropped, kept or torn. Everything that got 250
// or 201 is stored whole and once, and whatever else is stored is whole too.
func TestAcceptedMailSurvivesPowerCuts(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			newPowerTest(t, e).run(t)
		})
	}
}

// TestNothingIsPromisedAfterAFailedSync makes one write or sync of the disk fail, the 1st
// to the 50th of a time of load, and then cuts the power. Linux forgets what a failed sync
// should have written, so a service that goes on as if it was written loses mail.
// Row C5 of docs/testing.md.
func TestNothingIsPromisedAfterAFailedSync(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			p := newPowerTest(t, e)
			p.cuts, p.failing = pick(4, 50), true
			p.run(t)
		})
	}
}

// powerTest is an installation whose data and database lie on disks that lose power.
type powerTest struct {
	in    *installation
	cuts  int
	disks []*powerMount
	pg    *testpg.Server // nil on SQLite
	// failing makes a write or a sync fail before each cut. Calls and mail may then be
	// refused.
	failing bool

	small, large *receiving
	sent         *sending
	hooks        *hookReceiver
}

func newPowerTest(t *testing.T, e storetest.Engine) *powerTest {
	t.Helper()
	p := &powerTest{cuts: pick(4, 200)}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.disks = append(p.disks, newPowerMount(t, powerOptions{Path: dir, Seed: randomness(t).Uint64()}))
	database := filepath.Join(dir, "postroom.db")
	if e == storetest.PostgreSQL {
		p.pg = startPostgres(t)
		database = p.pg.URL(testpg.DefaultDatabase)
		p.moveDatabase(t)
	}
	p.in = installationAt(t, e, dir, database)
	p.in.settings = append(p.in.settings, mayPostHere)
	return p
}

// moveDatabase moves the data of the PostgreSQL server to a disk of its own.
func (p *powerTest) moveDatabase(t *testing.T) {
	t.Helper()
	if err := p.pg.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(p.pg.Dir(), "data")
	p.disks = append(p.disks, newPowerMount(t, powerOptions{
		Path: data, Seed: randomness(t).Uint64(), NamesWithFiles: true, Load: data,
	}))
	if err := p.pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (p *powerTest) run(t *testing.T) {
	t.Helper()
	in := p.in
	in.start()
	boxes := in.createInboxes("small0", "small1", "large0", "large1", "from", "to0", "to1")
	p.small = &receiving{in: in, refusals: p.failing, size: 2 << 10, book: newLedger("small"), boxes: boxes[:2]}
	p.large = &receiving{in: in, refusals: p.failing, size: 300 << 10, book: newLedger("large"), boxes: boxes[2:4]}
	p.sent = &sending{in: in, refusals: p.failing, book: newLedger("sent"), from: boxes[4], to: boxes[5:]}
	p.hooks = newHookReceiver(t)
	in.createHook(p.hooks.URL, "message.received")
	k := newKiller(t, in, 60)
	enough := func() bool { return k.kills >= p.cuts }
	const workers = 6
	k.underKills(t, workers+1, enough, func() { p.cut(t) }, func(ctx context.Context, i int) error {
		if i == workers {
			return p.fail(ctx, t)
		}
		switch i % 3 {
		case 0:
			return p.sent.client(ctx, k)
		case 1:
			return p.large.client(ctx, k, i)
		default:
			return p.small.client(ctx, k, i)
		}
	})
	for _, d := range p.disks {
		t.Logf("disk at %s: %s", d.path, d.lost)
	}
	p.audit(t)
}

// cut ends the time without power: the service is dead already.
func (p *powerTest) cut(t *testing.T) {
	t.Helper()
	if p.pg != nil {
		killPostgres(t, p.pg)
	}
	for _, d := range p.disks {
		d.cut(t)
	}
	if p.pg != nil {
		if err := p.pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.in.hurry(t.Context())
	}
}

// fail makes a write or sync of the data folder's disk fail after each start, once the
// service is ready: one that cannot read its database does not start. What PostgreSQL does
// when its own disk fails is not ours to test.
func (p *powerTest) fail(ctx context.Context, t *testing.T) error {
	for nth := 0; p.failing; nth++ {
		n, err := p.in.await(ctx)
		if err != nil {
			return nil //nolint:nilerr // the test is over
		}
		p.disks[0].fail(t, 1+nth%50)
		select {
		case <-n.exited:
		case <-ctx.Done():
		}
	}
	return nil
}

func (p *powerTest) audit(t *testing.T) {
	t.Helper()
	p.in.settle()
	stored := p.in.messages("in")
	for _, b := range []struct {
		book  *ledger
		boxes []inbox
	}{{p.small.book, p.small.boxes}, {p.large.book, p.large.boxes}, {p.sent.book, p.sent.to}} {
		var of []message
		for _, m := range stored {
			if strings.HasPrefix(m.Subject, b.book.prefix) {
				of = append(of, m)
			}
		}
		t.Logf("%s: %s", b.book.prefix, b.book)
		b.book.audit(t, of, byAddress(b.boxes...), p.failing)
	}
	p.compareRaw(t, stored)
	p.auditHooks(t, stored)
}

// compareRaw downloads every message that came over SMTP, and compares it with what was
// sent.
func (p *powerTest) compareRaw(t *testing.T, stored []message) {
	t.Helper()
	api := p.in.current().caller()
	defer api.close()
	compared := 0
	for _, m := range stored {
		for _, r := range []*receiving{p.small, p.large} {
			e, ok := r.book.entries[m.Subject]
			if !ok {
				continue
			}
			raw, err := api.raw(t.Context(), m.ID)
			if want := newMessage(m.Subject, r.size, e.to...).raw; err != nil || !bytes.Equal(raw, want) {
				t.Errorf("%s: the raw message is not what was sent (%d bytes, sent %d): %v", m.Subject, len(raw), len(want), err)
			}
			compared++
		}
	}
	t.Logf("%d raw messages compared", compared)
}

// auditHooks checks that each stored message was posted at least once, and nothing else.
func (p *powerTest) auditHooks(t *testing.T, stored []message) {
	t.Helper()
	p.in.settleHooks()
	p.hooks.mu.Lock()
	defer p.hooks.mu.Unlock()
	posted := map[string]int{}
	for id := range p.hooks.taken {
		posted[p.hooks.about[id]]++
	}
	again := 0
	for _, m := range stored {
		if posted[m.ID] != 1 {
			t.Errorf("%s (%s) has %d events at the endpoint", m.Subject, m.ID, posted[m.ID])
		}
		delete(posted, m.ID)
	}
	for id := range posted {
		// A post may leave before the transaction that it reports is durable elsewhere;
		// it may not report a message that was never stored.
		t.Errorf("%s was posted and is not stored", id)
	}
	for _, n := range p.hooks.seen {
		again += n - 1
	}
	t.Logf("%d events posted, %d posts repeated", len(p.hooks.taken), again)
}

// killPostgres kills all processes of a server at once, and returns when they are gone.
func killPostgres(t *testing.T, s *testpg.Server) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir(), "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	all := append(children(postmaster), postmaster)
	_ = syscall.Kill(postmaster, syscall.SIGSTOP) // it starts no more
	all = append(all, children(postmaster)...)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
	waittest.Until(t, "PostgreSQL is gone", func() bool {
		for _, pid := range all {
			if parent, state := process(pid); parent != 0 && state != "Z" {
				return false
			}
		}
		return true
	})
}

// children returns the processes that a process has started.
func children(of int) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if parent, _ := process(pid); parent == of {
			pids = append(pids, pid)
		}
	}
	return pids
}

// process returns the parent and state of a process; the parent is 0 if it is gone.
func process(pid int) (parent int, state string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0]
}

// TestPowerCutsLoseWhatIsNotSynced shows that the disk of these tests can lose data: a
// database that does not sync loses committed rows, and one that does loses none.
func TestPowerCutsLoseWhatIsNotSynced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		synchronous string
		loses       bool
	}{{"FULL", false}, {"OFF", true}} {
		t.Run(tt.synchronous, func(t *testing.T) {
			t.Parallel()
			lost := 0
			for seed := range uint64(pick(6, 50)) {
				lost += rowsLost(t, tt.synchronous, seed)
			}
			if lost > 0 != tt.loses {
				t.Errorf("synchronous=%s: %d committed rows lost", tt.synchronous, lost)
			}
		})
	}
}

// rowsLost commits rows, cuts the power, and returns how many are missing.
func rowsLost(t *testing.T, synchronous string, seed uint64) int {
	t.Helper()
	m := newPowerMount(t, powerOptions{Path: t.TempDir(), Seed: seed})
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(m.path, "rows.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous("+synchronous+")")
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	const rows = 20
	db := open()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE rows (n INTEGER PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO rows VALUES ($1)`, n); err != nil {
			t.Fatal(err)
		}
	}
	m.cut(t)
	_ = db.Close() // it cannot write any more
	db = open()
	defer func() { _ = db.Close() }() // the disk is discarded
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM rows`).Scan(&n); err != nil {
		return rows // not even the table is left
	}
	return rows - n
}
