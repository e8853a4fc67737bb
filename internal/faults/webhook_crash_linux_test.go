package faults_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// crashPoints is the number of points at which the program is killed.
const crashPoints = 12

// TestCrashNeverSeparatesAChangeFromItsEvent kills the program at 12 points while a
// message is sent from one inbox to another: between the change and the event, between
// the event and its delivery, and during the commit of all three. Afterwards every
// change has exactly one event, no event is without its change, and the endpoint
// received exactly these events. Row W11 of docs/testing.md.
func TestCrashNeverSeparatesAChangeFromItsEvent(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.settings = append(in.settings, mayPostHere)
		c := &crashing{in: in, receiver: newHookReceiver(t)}
		in.start()
		c.boxes = in.createInboxes("from", "to")
		in.createHook(c.receiver.URL)
		struck, sends := 0, 0
		for ; struck < crashPoints && sends < 3*crashPoints; sends++ {
			at := c.atPage
			if in.engine == storetest.PostgreSQL {
				at = c.atRow
			}
			if at(t, sends%crashPoints) {
				struck++
			}
			c.audit(t)
		}
		events, posts := c.receiver.count()
		t.Logf("%d crashes in %d sends; %d events in %d posts: %v", struck, sends, events, posts, c.receiver.types)
		if struck < crashPoints {
			t.Errorf("the program died %d times, want %d", struck, crashPoints)
		}
	})
}

type crashing struct {
	in       *installation
	receiver *hookReceiver
	boxes    []inbox
	sent     int // calls that got 201
}

// send sends one message and returns a channel that receives when the call is over.
func (c *crashing) send(ctx context.Context) <-chan error {
	n, done := c.in.current(), make(chan error, 1)
	go func() {
		api := n.caller()
		defer api.close()
		done <- api.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+c.boxes[0].ID+"/messages",
			map[string]any{"to": c.boxes[1].Address, "subject": "crash", "text": "now"})
	}()
	return done
}

// atPage kills the program when one of its threads writes pages, or syncs them, for the
// nth time after the call began.
func (c *crashing) atPage(t *testing.T, i int) bool {
	t.Helper()
	n := c.in.current()
	step := []string{"pwrite64", "fsync"}[i%2]
	tracer := exec.CommandContext(t.Context(), findStrace(t), "-f", "-p", strconv.Itoa(n.cmd.Process.Pid), "-o", os.DevNull, "-e", "trace="+step,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", step, 1+i/2%4))
	said, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "attached") {
		_ = tracer.Wait()
		skiptest.OutsideCI(t, fmt.Sprintf("strace cannot attach here: %s, %v", line, err))
		return false
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	done := c.send(t.Context())
	struck := false
	idle := time.NewTimer(pick(2*time.Second, 10*time.Second))
	defer idle.Stop()
	select {
	case <-n.exited:
		struck = true
	case <-idle.C: // the threads share the steps, and none came so far
	}
	c.in.crash()
	_ = tracer.Wait() // it ends with the program, by the same signal
	c.note(<-done)
	c.in.start()
	return struck
}

// rowPoints is the number of points for each kind of event.
var rowPoints = []string{
	`CREATE TRIGGER crash BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.type = '%s') EXECUTE FUNCTION crash()`,
	`CREATE TRIGGER crash AFTER INSERT ON events FOR EACH ROW WHEN (NEW.type = '%s') EXECUTE FUNCTION crash()`,
	`CREATE TRIGGER crash AFTER INSERT ON webhook_deliveries FOR EACH ROW WHEN (NEW.event_type = '%s') EXECUTE FUNCTION crash()`,
	`CREATE CONSTRAINT TRIGGER crash AFTER INSERT ON webhook_deliveries DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.event_type = '%s') EXECUTE FUNCTION crash()`,
}

// atRow makes the database wait for a lock of the test at a row, and kills the program
// there.
func (c *crashing) atRow(t *testing.T, i int) bool {
	t.Helper()
	kinds := []string{"message.queued", "message.received", "message.delivered"}
	db, err := c.in.openDatabase()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // the database is discarded
	held, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(q string) {
		if _, err := held.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE OR REPLACE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(711); RETURN NEW; END $$`)
	exec(fmt.Sprintf(rowPoints[i%len(rowPoints)], kinds[i/len(rowPoints)%len(kinds)]))
	exec(`SELECT pg_advisory_lock(711)`)
	done := c.send(t.Context())
	waittest.Until(t, "the program has reached the point", func() bool { return waiting(t, held) })
	c.in.crash()
	c.note(<-done)
	exec(`SELECT pg_advisory_unlock(711)`)
	for _, table := range []string{"events", "webhook_deliveries"} { // waits for the end of the transaction
		exec(`DROP TRIGGER IF EXISTS crash ON ` + table)
	}
	c.in.start()
	return true
}

// waiting reports whether a session waits for the lock.
func waiting(t *testing.T, db *sql.Conn) bool {
	t.Helper()
	const q = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 711 AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	var n int
	if err := db.QueryRowContext(t.Context(), q).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// note counts a send that was promised.
func (c *crashing) note(err error) {
	if err == nil {
		c.sent++
	}
}

// audit waits until everything is delivered, and compares events with changes.
func (c *crashing) audit(t *testing.T) {
	t.Helper()
	c.in.hurry(t.Context())
	c.in.settle()
	c.in.hurryHooks(true)
	c.in.settleHooks()
	const event = `SELECT 1 FROM events e WHERE e.message_seq = m.seq AND e.type = `
	for what, query := range map[string]string{
		"messages received without their event": `SELECT count(*) FROM messages m WHERE direction = 'in' AND NOT EXISTS (` + event + `'message.received')`,
		"messages queued without their event":   `SELECT count(*) FROM messages m WHERE direction = 'out' AND NOT EXISTS (` + event + `'message.queued')`,
		"messages delivered without their event": `SELECT count(*) FROM messages m JOIN recipients r ON r.message_seq = m.seq
			WHERE r.status = 'delivered' AND NOT EXISTS (` + event + `'message.delivered')`,
		"events without a message":        `SELECT count(*) FROM events e WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.seq = e.message_seq)`,
		"duplicate events":                `SELECT count(*) - count(DISTINCT message_seq || type) FROM events`,
		"events without a delivery":       `SELECT count(*) FROM events e WHERE NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = e.id)`,
		"deliveries without an event":     `SELECT count(*) FROM webhook_deliveries d WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.id = d.event_id)`,
		"deliveries that did not succeed": `SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'`,
	} {
		if n := c.in.count(query); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	events, _ := c.receiver.count()
	if stored := c.in.count(`SELECT count(*) FROM events`); stored != events {
		t.Errorf("%d events are stored, %d were posted", stored, events)
	}
	if out := c.in.count(`SELECT count(*) FROM messages WHERE direction = 'out'`); out < c.sent {
		t.Errorf("%d messages are stored, want the %d promised ones", out, c.sent)
	}
}
