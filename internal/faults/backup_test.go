package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// TestBackupUnderLoadRestoresOnePointInTime makes a backup while messages arrive,
// leave and are deleted and webhooks are posted, and restores it into a second
// installation. The copy contains everything accepted before the backup, nothing
// deleted before it and nothing accepted after it. The first installation continues
// and delivers everything that was queued in the backup. The copy sends and posts
// none of that again until the operator releases it, and otherwise works normally.
// Row C12 of docs/testing.md.
func TestBackupUnderLoadRestoresOnePointInTime(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		b := newBackingUp(t, in)
		b.underLoad(t)
		b.restore(t)
		b.auditPoint(t)
		b.auditSilence(t)
		b.auditRelease(t)
	})
}

// backingUp is an installation under load, its backup, and the installation that
// was restored from the backup.
type backingUp struct {
	old, in *installation
	box     inbox
	relay   *smtptest.MX
	hook    *hookReceiver
	gate    *gate // blocks the responses of the relay and the webhook endpoint
	folder  string
	ended   time.Time

	phase   atomic.Int32 // 0 before, 1 during and 2 after the backup
	last    atomic.Int64
	mu      sync.Mutex
	made    map[string]span // by subject
	deleted map[string]span // by id
	counts  [3]int          // of made, by phase
	queued  int             // calls that returned while the gate was shut
}

// span holds the phases in which a call began and returned.
type span struct{ from, to int32 }

// gate blocks callers of pass while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

const scheduledEmails = 3

func newBackingUp(t *testing.T, in *installation) *backingUp {
	t.Helper()
	b := &backingUp{
		old: in, gate: &gate{}, folder: filepath.Join(t.TempDir(), "backups", "first"),
		made: map[string]span{}, deleted: map[string]span{},
	}
	b.relay = smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error { b.gate.pass(); return nil }})
	b.hook = newHookReceiver(t)
	b.hook.respondWith(func(string, int) int { b.gate.pass(); return http.StatusOK })
	t.Cleanup(b.gate.unlock) // before the servers that wait at the gate are closed
	in.settings = append(in.settings, mayPostHere, "POSTROOM_RELAY=smtp://"+b.relay.Addr()+"?tls=maybe")
	in.start()
	b.box = in.createInboxes("box")[0]
	in.createHook(b.hook.URL)
	for i := range scheduledEmails {
		b.email(t, in, fmt.Sprintf("scheduled-%d-end", i), map[string]any{"scheduledAt": time.Now().Add(time.Hour).Format(time.RFC3339)})
	}
	return b
}

// email sends an email to an external address.
func (b *backingUp) email(t *testing.T, in *installation, subject string, more map[string]any) {
	t.Helper()
	c := in.current().caller()
	defer c.close()
	body := map[string]any{"from": "hello@" + mailDomain, "to": "bob@out.example", "subject": subject, "text": bodyMark(subject)}
	maps.Copy(body, more)
	if err := c.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/emails", body); err != nil {
		t.Fatal(err)
	}
}

// underLoad runs clients before, during and after the backup, stops them, and
// waits until the old installation has delivered everything.
func (b *backingUp) underLoad(t *testing.T) {
	t.Helper()
	each := pick(25, 500)
	ctx, cancel := context.WithCancel(t.Context())
	working, ctx := errgroup.WithContext(ctx)
	for _, work := range []func(context.Context) error{b.receive, b.receive, b.receiveLarge, b.send, b.send, b.delete} {
		working.Go(func() error {
			for ctx.Err() == nil {
				if err := work(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	wait := func(what string, ok func() bool) { // for as long as the clients make progress
		for done := false; !done; {
			was := b.last.Load()
			waittest.Until(t, what, func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				done = ok() || ctx.Err() != nil
				return done || b.last.Load() > was
			})
		}
	}
	wait("there is something to back up", func() bool { return b.counts[0] >= each && len(b.deleted) > 2 })
	b.gate.shut()
	wait("mail waits", func() bool { return b.queued >= 20 })
	b.phase.Store(1)
	out, err := b.old.command(t.Context(), program, "backup", b.folder).CombinedOutput()
	b.phase.Store(2)
	t.Logf("backup: %v\n%s", err, out)
	wait("more calls return after the backup", func() bool { return b.counts[2] >= each })
	cancel()
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.FailNow()
	}
	b.gate.unlock()
	b.old.settle()
	b.old.settleHooks()
	b.ended = time.Now()
	b.old.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("done before, during and after the backup: %d, and %d deletions", b.counts, len(b.deleted))
}

// note runs a call that creates a message with a new subject, and records its span.
func (b *backingUp) note(call func(subject string) error) error {
	subject := fmt.Sprintf("load-%06d-end", b.last.Add(1))
	from := b.phase.Load()
	if err := call(subject); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := span{from, b.phase.Load()}
	b.made[subject] = s
	b.counts[s.from]++
	return nil
}

func (b *backingUp) receive(ctx context.Context) error      { return b.deliver(ctx, 2<<10) }
func (b *backingUp) receiveLarge(ctx context.Context) error { return b.deliver(ctx, large) }

func (b *backingUp) deliver(ctx context.Context, size int) error {
	return b.note(func(subject string) error {
		c, err := dialSMTP(ctx, b.old.current().smtp)
		if err != nil {
			return err
		}
		defer c.close()
		_, err = c.send(newMessage(subject, size, b.box.Address))
		return err
	})
}

func (b *backingUp) send(ctx context.Context) error {
	err := b.note(func(subject string) error {
		c := b.old.current().caller()
		defer c.close()
		body := map[string]any{"from": "hello@" + mailDomain, "to": "bob@out.example", "subject": subject, "text": bodyMark(subject)}
		return c.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/emails", body)
	})
	b.gate.mu.Lock()
	shut := b.gate.open != nil
	b.gate.mu.Unlock()
	if shut {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queued++
	}
	return err
}

// delete makes a large message and deletes it.
func (b *backingUp) delete(ctx context.Context) error {
	c := b.old.current().caller()
	defer c.close()
	var m message
	body := map[string]any{"from": sender, "subject": "to be deleted", "text": strings.Repeat("gone ", large/5)}
	if err := c.call(ctx, http.StatusCreated, &m, http.MethodPost, "/v1/inboxes/"+b.box.ID+"/simulate", body); err != nil {
		return err
	}
	from := b.phase.Load()
	if err := c.call(ctx, http.StatusOK, nil, http.MethodDelete, "/v1/messages/"+m.ID, nil); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted[m.ID] = span{from, b.phase.Load()}
	return nil
}

// restore creates the new installation and starts it.
func (b *backingUp) restore(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	database := filepath.Join(dir, "postroom.db")
	if b.old.engine == storetest.PostgreSQL {
		database = testpg.Schema(t)
	}
	b.in = installationAt(t, b.old.engine, dir, database)
	b.in.settings = b.old.settings
	out, err := b.in.command(t.Context(), program, "restore", b.folder).CombinedOutput()
	if err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	t.Logf("restore:\n%s", out)
	if out, err := b.in.command(t.Context(), program, "restore", b.folder).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("not empty")) {
		t.Errorf("a restore into an installation with data: %v\n%s", err, out)
	}
	if out, err := b.in.command(t.Context(), program, "backup", b.folder).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("not overwritten")) {
		t.Errorf("a backup into a folder with a backup: %v\n%s", err, out)
	}
	b.in.start()
}

// auditPoint compares the restored messages with the calls made before and after the backup.
func (b *backingUp) auditPoint(t *testing.T) {
	t.Helper()
	there := map[string]message{}
	for _, m := range b.in.messages("in") {
		there[m.Subject] = m
	}
	sent := b.in.subjects()
	kept := 0
	for subject, s := range b.made {
		_, here := there[subject]
		here = here || sent[subject]
		if here {
			kept++
		}
		if s.to == 0 && !here {
			t.Errorf("%s was accepted before the backup and is not in it", subject)
		}
		if s.from == 2 && here {
			t.Errorf("%s was accepted after the backup and is in it", subject)
		}
	}
	c := b.in.current().caller()
	defer c.close()
	for id, s := range b.deleted {
		a, err := c.do(t.Context(), http.MethodGet, "/v1/messages/"+id, nil)
		if err != nil || s.to == 0 && a.status != http.StatusNotFound {
			t.Errorf("%s was deleted before the backup, and GET returns %d: %v", id, a.status, err)
		}
	}
	for _, m := range there {
		if m.Size < large/2 {
			continue
		}
		raw, err := c.raw(t.Context(), m.ID)
		if err != nil || len(raw) != m.Size {
			t.Errorf("%s (%s): %d of its %d bytes: %v", m.Subject, m.ID, len(raw), m.Size, err)
		}
	}
	for what, q := range map[string]string{
		"outbound messages without a recipient": `SELECT count(*) FROM messages m WHERE direction = 'out'
			AND NOT EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = m.seq)`,
		"messages without an event": `SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.message_seq = m.seq)`,
		"messages without content":  `SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.message_seq = m.seq)`,
	} {
		if n := b.in.count(q); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	var manifest struct{ Rows map[string]int }
	text, err := os.ReadFile(filepath.Join(b.folder, "backup.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if n := b.in.count(`SELECT count(*) FROM messages`); err != nil || n != manifest.Rows["messages"] {
		t.Errorf("%d messages are stored, but the backup has %d: %v", n, manifest.Rows["messages"], err)
	}
	t.Logf("%d of the %d messages are in the backup", kept, len(b.made))
}

// subjects returns the subjects of outbound messages.
func (in *installation) subjects() map[string]bool {
	in.t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // the test only read
	rows, err := db.QueryContext(in.t.Context(), `SELECT subject FROM messages WHERE direction = 'out'`)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the same error
	all := map[string]bool{}
	for rows.Next() {
		var subject string
		if err := rows.Scan(&subject); err != nil {
			in.t.Fatal(err)
		}
		all[subject] = true
	}
	if err := rows.Err(); err != nil {
		in.t.Fatal(err)
	}
	return all
}

const (
	heldRecipients = `SELECT count(*) FROM recipients WHERE held_due IS NOT NULL`
	heldHooks      = `SELECT count(*) FROM webhook_deliveries WHERE held_due IS NOT NULL`
	heldLater      = `SELECT count(*) FROM emails WHERE held_due IS NOT NULL`
)

// relayed counts how often each subject reached the relay.
func (b *backingUp) relayed() map[string]int {
	got := map[string]int{}
	for _, m := range b.relay.Messages() {
		_, subject, _ := strings.Cut(string(m.Data), "Subject: ")
		subject, _, _ = strings.Cut(subject, "\r\n")
		got[subject]++
	}
	return got
}

// auditSilence sends and posts something new from the new installation. Once that
// is done and nothing else is due, nothing old was sent or posted again.
func (b *backingUp) auditSilence(t *testing.T) {
	t.Helper()
	rcpts, hooks, later := b.in.count(heldRecipients), b.in.count(heldHooks), b.in.count(heldLater)
	if rcpts < 10 || hooks == 0 || later != scheduledEmails {
		t.Errorf("%d recipients, %d webhook deliveries and %d scheduled emails are held: the load was too small", rcpts, hooks, later)
	}
	for subject, n := range b.relayed() {
		if n != 1 {
			t.Errorf("the old installation sent %s %d times", subject, n)
		}
	}
	was, posted := b.relayed(), b.hook.posts()
	b.email(t, b.in, "sentinel", nil)
	waittest.Until(t, "the new email is sent and its events are posted", func() bool {
		return b.relayed()["sentinel"] == 1 && b.in.count(`SELECT count(*) FROM recipients WHERE next_attempt_at IS NOT NULL`) == 0 &&
			b.in.count(`SELECT count(*) FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL`) == 0
	})
	now := b.relayed()
	delete(now, "sentinel")
	if !maps.Equal(now, was) {
		t.Errorf("the new installation sent messages again: the relay has %d, had %d", len(now), len(was))
	}
	for id, n := range b.hook.posts() {
		if old, known := posted[id]; known && n != old {
			t.Errorf("the event %s was posted %d times by the old installation, and %d times now", id, old, n)
		}
	}
	if n := b.in.count(heldRecipients); n != rcpts {
		t.Errorf("%d recipients are held, were %d", n, rcpts)
	}
}

// posts counts how often each event was posted.
func (r *hookReceiver) posts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.seen)
}

// auditRelease releases what the old installation cannot have sent, and then everything.
func (b *backingUp) auditRelease(t *testing.T) {
	t.Helper()
	held, hooks := b.in.count(heldRecipients), b.in.count(heldHooks)
	b.release(t, fmt.Sprintf("0 recipients of mail, %d scheduled emails, 0 webhook deliveries", scheduledEmails), "--due-after", b.ended.Format(time.RFC3339))
	b.release(t, fmt.Sprintf("%d recipients of mail, 0 scheduled emails, %d webhook deliveries", held, hooks))
	b.in.settle()
	b.in.settleHooks()
	twice := 0
	for subject, n := range b.relayed() {
		if n > 2 {
			t.Errorf("%s arrived %d times", subject, n)
		} else if n == 2 {
			twice++
		}
	}
	if twice != held {
		t.Errorf("%d messages arrived twice, and %d were held", twice, held)
	}
	if n := b.in.count(`SELECT count(*) FROM emails WHERE due_at IS NOT NULL`); n != scheduledEmails {
		t.Errorf("%d emails are scheduled, want %d", n, scheduledEmails)
	}
}

func (b *backingUp) release(t *testing.T, want string, args ...string) {
	t.Helper()
	out, err := b.in.command(t.Context(), append([]string{program, "held", "release"}, args...)...).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("Released: "+want)) {
		t.Errorf("release %v: %v, want %s\n%s", args, err, want, out)
	}
}
