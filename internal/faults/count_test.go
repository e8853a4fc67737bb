package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/internal/waittest"
)

// TestRepeatedCallsHaveOneEffectUnderKills kills the service while clients make
// calls of all kinds, each repeated under its idempotency key until it gets a
// response, and while mail arrives. Every call has one effect, and usage and stats
// agree with a count over the tables. Row H13 of docs/testing.md.
func TestRepeatedCallsHaveOneEffectUnderKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.settings = append(in.settings, "POSTROOM_AUTO_PAUSE=off") // a third of the messages bounces
		c := &counting{in: in, calls: int64(pick(200, 10_000)), kills: pick(3, 40), effects: map[string]int{}}
		c.run(t)
	})
}

// counting runs calls and mail from four clients, under kills.
type counting struct {
	in    *installation
	calls int64 // to be completed
	kills int

	from, to inbox
	source   message // that is replied to and forwarded
	testKey  string

	last, completed atomic.Int64

	mu      sync.Mutex
	effects map[string]int // by kind of call
}

func (c *counting) run(t *testing.T) {
	t.Helper()
	c.in.start()
	boxes := c.in.createInboxes("from", "to")
	c.from, c.to = boxes[0], boxes[1]
	c.prepare(t)
	k := newKiller(t, c.in, int(c.calls)/c.kills)
	enough := func() bool { return c.completed.Load() >= c.calls && k.kills >= c.kills }
	down := func() { c.in.hurry(t.Context()) }
	k.underKills(t, clients, enough, down, func(ctx context.Context, _ int) error { return c.client(ctx, k) })
	t.Logf("%d kills, %d calls completed: %v", k.kills, c.completed.Load(), c.effects)
	c.in.settle()
	c.audit(t)
}

// prepare sends the message that is replied to, from no external sender, and creates
// a key in test mode.
func (c *counting) prepare(t *testing.T) {
	t.Helper()
	api := c.in.current().caller()
	defer api.close()
	mail := map[string]any{"to": c.from.Address, "subject": "source", "text": "t"}
	if err := api.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+c.to.ID+"/messages", mail); err != nil {
		t.Fatal(err)
	}
	c.in.settle()
	c.source = c.in.messages("in")[0]
	var key struct {
		Key string `json:"key"`
	}
	body := map[string]any{"name": "test", "mode": "test"}
	if err := api.call(t.Context(), http.StatusCreated, &key, http.MethodPost, "/v1/keys", body); err != nil {
		t.Fatal(err)
	}
	c.testKey = key.Key
}

// operation is one call; id appears in the resource that it creates.
type operation struct {
	kind, method, path string
	body               map[string]any
	header             []string
}

// mostReplies is how many replies are sent, all in one thread. Many more would look
// like a loop between two autoresponders.
const mostReplies = 15

// operation returns call number n. The kinds take turns.
func (c *counting) operation(n int64) operation {
	id := fmt.Sprintf("call-%d-end", n)
	missing := fmt.Sprintf("missing-%d@%s", n, mailDomain) // a new one each time: a bounced address is suppressed
	send := "/v1/inboxes/" + c.from.ID + "/messages"
	all := []operation{
		{kind: "inbox", path: "/v1/inboxes", body: map[string]any{"display_name": id}},
		{kind: "send", path: send, body: map[string]any{"to": []string{c.to.Address, missing}, "subject": id, "text": "t"}},
		{kind: "reply", path: "/v1/messages/" + c.source.ID + "/reply", body: map[string]any{"text": id, "cc": c.to.Address}},
		{kind: "forward", path: "/v1/messages/" + c.source.ID + "/forward", body: map[string]any{"to": c.to.Address, "text": id}},
		{kind: "test", path: send, body: map[string]any{"to": c.to.Address, "subject": id, "text": "t"}},
	}
	op := all[n%int64(len(all))]
	if op.kind == "reply" && n > mostReplies*int64(len(all)) {
		op = all[0]
	}
	op.method, op.header = http.MethodPost, []string{"Idempotency-Key", id}
	if op.kind == "test" {
		op.header = append(op.header, "Authorization", "Bearer "+c.testKey)
	}
	return op
}

// client makes calls until ctx ends, and sends a message after each.
func (c *counting) client(ctx context.Context, k *killer) error {
	for ctx.Err() == nil {
		n := c.last.Add(1)
		op := c.operation(n)
		if err := c.untilCompleted(ctx, k, op); err != nil {
			return err
		}
		c.receive(ctx, n)
	}
	return nil
}

// untilCompleted repeats the call until it gets a response. A call that the end of
// the test interrupts may have had its effect, and is counted as "cut off" only.
func (c *counting) untilCompleted(ctx context.Context, k *killer, op operation) error {
	for {
		n, err := c.in.await(ctx)
		if err != nil {
			c.note("cut off")
			return nil
		}
		api := n.caller()
		k.step()
		err = api.call(ctx, http.StatusCreated, nil, op.method, op.path, op.body, op.header...)
		api.close()
		if no, ok := errors.AsType[*unwanted](err); ok && no.status != http.StatusConflict && no.status != http.StatusServiceUnavailable {
			return no
		}
		if err == nil {
			c.note(op.kind)
			c.completed.Add(1)
			return nil
		}
	}
}

func (c *counting) note(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.effects[kind]++
}

// receive offers one message and ignores the outcome.
func (c *counting) receive(ctx context.Context, n int64) {
	node, err := c.in.await(ctx)
	if err != nil {
		return
	}
	s, err := dialSMTP(ctx, node.smtp)
	if err != nil {
		return
	}
	defer s.close()
	_, _ = s.send(newMessage(fmt.Sprintf("mail-%d-end", n), 1000, c.to.Address)) // its outcome does not matter
}

func (c *counting) audit(t *testing.T) {
	t.Helper()
	c.auditEffects(t)
	const perAccount, perInbox = "inbox_seq = 0", "inbox_seq <> 0"
	received := c.in.count("SELECT count(*) FROM messages WHERE direction = 'in' AND NOT test_mode")
	c.wantCount(t, "received", perAccount, received)
	c.wantCount(t, "received", perInbox, received)
	for kind, of := range map[string]string{
		"sent": "r.sent_at IS NOT NULL", "delivered": "r.delivered_at IS NOT NULL", "bounced": "r.bounced_at IS NOT NULL",
		"failed": "r.status = 'failed'",
	} {
		want := c.recipients(of)
		c.wantCount(t, kind, perAccount, want)
		c.wantCount(t, kind, perInbox, want)
	}
	accepted := c.in.count("SELECT cast(coalesce(sum(n), 0) AS bigint) FROM send_counts WHERE kind = 'accepted'")
	if want := c.recipients("true"); accepted != want {
		t.Errorf("%d recipients are counted as accepted, want %d", accepted, want)
	}
	c.auditAPI(t)
}

// recipients counts the recipients of outbound messages outside of test mode.
func (c *counting) recipients(where string) int {
	return c.in.count("SELECT count(*) FROM recipients r JOIN messages m ON m.seq = r.message_seq WHERE NOT m.test_mode AND " + where)
}

func (c *counting) wantCount(t *testing.T, kind, rows string, want int) {
	t.Helper()
	q := "SELECT cast(coalesce(sum(n), 0) AS bigint) FROM daily_counts WHERE kind = '" + kind + "' AND " + rows
	waittest.Until(t, fmt.Sprintf("%s is counted %d times where %s", kind, want, rows), func() bool { return c.in.count(q) == want })
}

// auditEffects finds calls that had two effects, or that returned success without an
// effect.
func (c *counting) auditEffects(t *testing.T) {
	t.Helper()
	made := map[string]int{
		"inbox":   c.in.count("SELECT count(*) FROM inboxes WHERE display_name LIKE 'call-%-end'"),
		"send":    c.in.count("SELECT count(*) FROM messages WHERE direction = 'out' AND NOT test_mode AND subject LIKE 'call-%-end'"),
		"test":    c.in.count("SELECT count(*) FROM messages WHERE direction = 'out' AND test_mode"),
		"reply":   c.in.count("SELECT count(*) FROM messages WHERE direction = 'out' AND subject LIKE 'Re:%'"),
		"forward": c.in.count("SELECT count(*) FROM messages WHERE direction = 'out' AND subject LIKE 'Fwd:%'"),
	}
	for _, kind := range slices.Sorted(maps.Keys(made)) {
		if n, completed := made[kind], c.effects[kind]; n < completed || n > completed+c.effects["cut off"] {
			t.Errorf("%s: %d calls were completed, and had %d effects", kind, completed, n)
		}
	}
	twice := c.in.count(`SELECT count(*) FROM (SELECT subject FROM messages WHERE direction = 'out' AND subject LIKE 'call-%'
		GROUP BY subject HAVING count(*) > 1) x`)
	twice += c.in.count(`SELECT count(*) FROM (SELECT display_name FROM inboxes GROUP BY display_name
		HAVING count(*) > 1 AND display_name IS NOT NULL) x`)
	if twice > 0 {
		t.Errorf("%d calls had two effects", twice)
	}
}

// auditAPI compares what the API shows with the tables.
func (c *counting) auditAPI(t *testing.T) {
	t.Helper()
	api := c.in.current().caller()
	defer api.close()
	var usage struct {
		Inboxes struct{ Used int } `json:"inboxes"`
		Month   struct{ Used int } `json:"emails_this_month"`
	}
	var stats struct {
		Totals map[string]int `json:"totals"`
	}
	for path, out := range map[string]any{"/v1/usage": &usage, "/v1/stats?days=2": &stats} {
		if err := api.call(t.Context(), http.StatusOK, out, http.MethodGet, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if want := c.in.count("SELECT count(*) FROM inboxes WHERE status <> 'deleted'"); usage.Inboxes.Used != want {
		t.Errorf("usage shows %d inboxes, want %d", usage.Inboxes.Used, want)
	}
	if want := c.recipients("true"); usage.Month.Used != want {
		t.Errorf("usage shows %d recipients this month, want %d", usage.Month.Used, want)
	}
	want := map[string]int{
		"received": c.in.count("SELECT count(*) FROM messages WHERE direction = 'in' AND NOT test_mode"), "complained": 0,
		"sent": c.recipients("r.sent_at IS NOT NULL"), "delivered": c.recipients("r.delivered_at IS NOT NULL"),
		"bounced": c.recipients("r.bounced_at IS NOT NULL"), "failed": c.recipients("r.status = 'failed'"),
	}
	if !maps.Equal(stats.Totals, want) {
		t.Errorf("stats show %v, want %v", stats.Totals, want)
	}
	t.Logf("stats: %v, usage: %+v", stats.Totals, usage)
}
