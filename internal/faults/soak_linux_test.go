package faults_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/smtptest"
)

const (
	// soakVar sets how long TestSoakThreeNodesUnderFaults runs.
	soakVar = "POSTROOM_TEST_SOAK"
	// mostDue is how long mail may be due without an attempt.
	mostDue = 2 * time.Minute
	// soakPace is the pause of a client between two operations.
	soakPace = 50 * time.Millisecond
)

// TestSoakThreeNodesUnderFaults sends and receives over three nodes for a time, while nodes
// are killed, frozen and restarted, PostgreSQL crashes, a node with a wrong clock comes and
// goes, and the relay refuses mail for a while. Every accepted message is stored once, nothing
// is deleted, and every webhook is posted. The relay gets every email; it gets one again only
// if a node died before it had recorded the relay's reply. No mail is due for long without an
// attempt; the memory and the open files of the nodes level off. Rows N1, C9 and C11 of
// docs/testing.md.
func TestSoakThreeNodesUnderFaults(t *testing.T) {
	t.Parallel()
	lasts := pick(20*time.Second, 20*time.Minute)
	if d, err := time.ParseDuration(os.Getenv(soakVar)); err == nil {
		lasts = d
	}
	moved, err := withCrashpoints()
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{troubles: &troubles{cluster: newCluster(t, math.MaxInt), pause: pick(time.Second/2, 15*time.Second)}}
	s.pace = soakPace
	s.relay = smtptest.NewMX(t, smtptest.MXConfig{Mail: func(string) error {
		if s.refusing.Load() {
			return smtptest.Refuse(451, [3]int{4, 3, 0}, "later")
		}
		return nil
	}})
	for _, in := range append(s.nodes, s.node()) {
		in.settings = append(in.settings, "POSTROOM_RELAY=smtp://"+s.relay.Addr()+"?tls=maybe")
		in.program = moved
		s.stranger = in // the last
	}
	for _, in := range s.nodes {
		in.start()
	}
	boxes := s.nodes[0].createInboxes("from", "to")
	s.from, s.to = boxes[0], boxes[1]
	hooks := newHookReceiver(t)
	s.nodes[0].createHook(hooks.URL, "message.received")
	s.run(lasts)
	again := s.audit(s.kills + s.freezes + s.crashes*len(s.nodes))
	s.nodes[0].hurryHooks(true) // also what killed nodes had claimed
	s.nodes[0].settleHooks()
	if posted, _ := hooks.count(); posted != len(s.nodes[0].messages("in")) {
		t.Errorf("%d webhooks were posted for %d messages", posted, len(s.nodes[0].messages("in")))
	}
	out, err := s.nodes[0].command(t.Context(), program, "verify", "--account-for-all").CombinedOutput()
	if err != nil {
		t.Errorf("verify --account-for-all: %v: %s", err, out)
	}
	s.report(lasts, again)
}

// soak is a cluster under faults for a time, and what was measured meanwhile.
type soak struct {
	*troubles
	refusing atomic.Bool // whether the relay refuses mail

	mu      sync.Mutex
	own     []int // MiB of a node, at most, by sample
	files   []int // open files of a node, at most, by sample
	overdue time.Duration
	api     []time.Duration // sorted at the end
}

func (s *soak) run(lasts time.Duration) {
	ctx, done := context.WithTimeout(s.t.Context(), lasts)
	defer done()
	rng := randomness(s.t)
	var working sync.WaitGroup
	for i := range int64(clients) {
		working.Go(func() { s.send(ctx, s.sent, i) })
		working.Go(func() { s.send(ctx, s.relayed, i) })
		working.Go(func() { s.receive(ctx, i) })
	}
	working.Go(func() { s.refuse(ctx, lasts/8) })
	working.Go(func() { s.sample(ctx, lasts/100+100*time.Millisecond) })
	working.Go(func() { s.probe(ctx) })
	s.disturb(ctx, rng)
	working.Wait()
}

// refuse makes the relay refuse mail for every other period.
func (s *soak) refuse(ctx context.Context, period time.Duration) {
	for ctx.Err() == nil {
		s.refusing.Store(!s.refusing.Load())
		pause(ctx, period)
	}
	s.refusing.Store(false)
}

// probe reads a page of messages again and again, from a node that serves.
func (s *soak) probe(ctx context.Context) {
	for i := int64(0); ctx.Err() == nil; i++ {
		n := s.pick(ctx, i)
		if n == nil {
			return
		}
		api := n.caller()
		began := time.Now()
		err := api.call(ctx, http.StatusOK, nil, http.MethodGet, "/v1/messages?limit=10", nil)
		api.close()
		if err == nil {
			s.mu.Lock()
			s.api = append(s.api, time.Since(began))
			s.mu.Unlock()
		}
		pause(ctx, soakPace)
	}
}

// sample measures the nodes and the queue.
func (s *soak) sample(ctx context.Context, every time.Duration) {
	db, err := s.nodes[0].openDatabase()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = db.Close() }() // nothing was written
	for ctx.Err() == nil {
		pause(ctx, every)
		own, files := 0, 0
		for _, in := range s.nodes {
			if n := in.current(); n != nil {
				if open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", n.cmd.Process.Pid)); err == nil && len(open) > 0 {
					own, files = max(own, statusBytes(s.t, n.cmd.Process.Pid, "RssAnon:")>>20), max(files, len(open))
				}
			}
		}
		overdue := dueFor(ctx, db)
		s.mu.Lock()
		s.own, s.files = append(s.own, own), append(s.files, files)
		s.overdue = max(s.overdue, overdue)
		s.mu.Unlock()
		if overdue > mostDue {
			s.t.Errorf("mail has been due for %v without an attempt", overdue)
			return
		}
	}
}

// statusBytes returns a figure of /proc/<pid>/status, in bytes.
func statusBytes(t *testing.T, pid int, name string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), name)
	text, _, _ := strings.Cut(rest, " kB")
	kib, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("%s of process %d: %v", name, pid, err)
	}
	return kib << 10
}

// dueFor returns how long the oldest mail has been due, or 0 while PostgreSQL is down.
func dueFor(ctx context.Context, db *sql.DB) time.Duration {
	var oldest sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT min(next_attempt_at) FROM recipients`).Scan(&oldest); err != nil || !oldest.Valid {
		return 0
	}
	return max(0, time.Since(time.UnixMicro(oldest.Int64)))
}

// report logs the table, and checks that the second half needs no more than the first.
func (s *soak) report(lasts time.Duration, again []string) {
	half := func(all []int) (first, second int) {
		if len(all) < 2 {
			s.t.Fatalf("only %d samples", len(all))
		}
		return slices.Max(all[:len(all)/2]), slices.Max(all[len(all)/2:])
	}
	own, ownLater := half(s.own)
	files, filesLater := half(s.files)
	slices.Sort(s.api)
	if len(s.api) < 10 || s.sent.count(accepted) < 10 || s.relayed.count(accepted) < 10 || s.received.count(accepted) < 10 {
		s.t.Fatal("there was too little load")
	}
	s.t.Logf(`
| | |
|---|---|
| time | %v |
| emails accepted | %d to an inbox, %d to the relay |
| messages received | %d accepted, %d refused, %d without a reply |
| kills, freezes, restarts, nodes with a wrong clock, crashes of PostgreSQL | %d, %d, %d, %d, %d |
| sent to the relay more than once | %d |
| mail due without an attempt, longest | %s |
| memory of a node, first and second half, at most | %d, %d MiB |
| open files of a node, first and second half, at most | %d, %d |
| page of 10 messages, p50, p95, p99 | %s, %s, %s |
| database at the end | %d MiB |`,
		lasts, s.sent.count(accepted), s.relayed.count(accepted),
		s.received.count(accepted), s.received.count(refused), s.received.count(unknown),
		s.kills, s.freezes, s.restarts, s.strangers, s.crashes, len(again), seconds(s.overdue),
		own, ownLater, files, filesLater, seconds(at(s.api, 50)), seconds(at(s.api, 95)), seconds(at(s.api, 99)),
		s.nodes[0].count(`SELECT pg_database_size(current_database())`)>>20)
	if ownLater > own*3/2+32 || filesLater > files*3/2+32 {
		s.t.Error("memory or open files grow")
	}
}
