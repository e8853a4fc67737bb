package handlers_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// accountDoors are the doors through which a message leaves. The last five open for what
// was accepted before: a draft that another key or a person approves, one that a person
// approved and that is due, a scheduled email, and a draft that is to be sent when its time
// has come. "test" is a send by a test key.
var accountDoors = []string{"send", "reply", "forward", "email", "scheduled", "batch", "Resend", "Mailosaur", "MCP", "SMTP", "test", "approval", "person", "approved", "due", "expiry"}

// vendorDoors are the doors of our API that those of vendors lead to.
var vendorDoors = map[string]string{"Resend": "email", "Mailosaur": "forward"}

// ruled is what a rule is set for: an inbox, and a key that sends from it.
type ruled struct {
	*server
	in     store.Inbox
	key    string
	keyID  string
	domain string
	earlier
}

// earlier is what was accepted before a rule was set: drafts to approve, one that a person
// approved, drafts to send and to reject when their time has come, the key that chose to
// send, and a scheduled email.
type earlier struct{ draft, unseen, approved, sends, ends, chooserID, email string }

// set changes something by the API.
func (r *ruled) set(t *testing.T, method, path, body string) {
	t.Helper()
	if res := r.do(t, method, path, body); res.status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, res.status, res.body)
	}
}

func (r *ruled) setKey(t *testing.T, limits string) {
	t.Helper()
	r.set(t, http.MethodPatch, "/v1/api-keys/"+r.keyID, `{"limits":`+limits+`}`)
}

func (r *ruled) setInbox(t *testing.T, fields string) {
	t.Helper()
	r.set(t, http.MethodPatch, "/v1/inboxes/"+r.in.ID, fields)
}

func (r *ruled) list(t *testing.T, action, pattern string) {
	t.Helper()
	r.set(t, http.MethodPost, "/v1/lists", `{"direction":"outbound","inbox_id":"`+r.in.ID+`","action":"`+action+`","pattern":"`+pattern+`"}`)
}

// What a due email or draft does that may not leave, or not yet.
const (
	failed outcome = "failed"
	waits  outcome = "waits"
)

// Each rule about sending says the same at every door, and the error names the rule.
func TestEveryRuleAtEveryDoor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule string
		name string
		want outcome            // at every door
		but  map[string]outcome // doors with another outcome
		only []string           // the doors that the rule is for; nil means all
		fits bool               // later
		set  func(*testing.T, *ruled)
		lift func(*testing.T, *ruled) // after this, what waited leaves
	}{
		{rule: "", name: "no rule", want: accepted, set: func(*testing.T, *ruled) {}},
		{rule: "ended", name: "a key that is revoked", want: failed, only: []string{"due"}, set: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodDelete, "/v1/api-keys/"+r.keyID, "")
		}},
		{rule: "ended", name: "a key that has expired", want: failed, only: []string{"due"}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE api_keys SET expires_at = 1 WHERE id = $1`, r.keyID)
		}},
		{rule: "ended", name: "a person who was removed", want: failed, only: []string{"due"}, set: func(t *testing.T, r *ruled) {
			link := store.UserLink{Hash: []byte("x"), ExpiresAt: r.clock.Now().Add(time.Hour)}
			person, err := r.store.CreateUser(t.Context(), r.account, "ann@example.com", store.RoleAdmin, link)
			if err == nil {
				_, err = r.store.RemoveUser(t.Context(), "ann@example.com")
			}
			must(t, err)
			r.exec(t, `UPDATE emails SET created_by = $1`, person.ID)
		}},
		{rule: "ended", name: "who chose to send later is revoked", want: failed, only: []string{"expiry"}, set: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodDelete, "/v1/api-keys/"+r.chooserID, "")
		}},
		{rule: "domain", name: "a domain that is lost", want: "domain_not_verified", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE domains SET status = 'failed' WHERE domain = $1`, r.domain)
		}},
		{rule: "suspended", name: "a suspended inbox", want: "sending_paused", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE inboxes SET status = 'suspended' WHERE id = $1`, r.in.ID)
		}},
		{rule: "expired", name: "an inbox that expired", want: "inbox_expired", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE inboxes SET expires_at = 1 WHERE id = $1`, r.in.ID)
		}},
		{rule: "reply_only", name: "an inbox that only replies", want: "recipient_not_allowed", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.setInbox(t, `{"send_policy":"reply_only"}`)
		}},
		{
			rule: "suppression", name: "a suppressed recipient", want: "recipient_suppressed",
			but: map[string]outcome{"reply": accepted, "due": accepted}, // the reply has another, the queue skips when due
			set: func(t *testing.T, r *ruled) {
				r.set(t, http.MethodPost, "/v1/suppressions", `{"email":"bob@out.example"}`)
			},
		},
		{
			rule: "suppression", name: "a recipient who is suppressed for emails", want: accepted,
			but: map[string]outcome{"email": "recipient_suppressed", "scheduled": "recipient_suppressed", "batch": "recipient_suppressed"},
			set: func(t *testing.T, r *ruled) {
				r.set(t, http.MethodPost, "/v1/suppressions", `{"email":"bob@out.example","category":"emails"}`)
			},
		},
		{rule: "pause", name: "a paused account", want: "sending_paused", but: map[string]outcome{"test": accepted, "due": failed}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE accounts SET paused_at = 1, pause_reason = 'unpaid' WHERE seq = $1`, r.account)
			r.receive(t, r.in, "From: ann@out.example\n\nStill comes in\n")
		}},
		{rule: "month", name: "the month of a plan", fits: true, want: "monthly_limit_reached", but: map[string]outcome{"test": accepted, "due": accepted}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE accounts SET plan = 'month' WHERE seq = $1`, r.account)
		}},
		{rule: "day", name: "the day of a plan", fits: true, want: "daily_limit_reached", but: map[string]outcome{"test": accepted, "due": accepted}, set: func(t *testing.T, r *ruled) {
			r.exec(t, `UPDATE accounts SET plan = 'day' WHERE seq = $1`, r.account)
		}},
		{rule: "stop", name: "a stopped account", want: "sending_stopped", but: map[string]outcome{"test": accepted, "due": accepted}, set: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/stop", `{}`) // the queue keeps what is due until it ends
		}, lift: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/resume", `{}`)
		}},
		{rule: "stop", name: "a stopped inbox", want: "sending_stopped", but: map[string]outcome{"test": accepted, "due": accepted}, set: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/stop", `{"inbox_id":"`+r.in.ID+`"}`)
		}, lift: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/resume", `{"inbox_id":"`+r.in.ID+`"}`)
		}},
		{rule: "stop", name: "a stopped key", want: "sending_stopped", but: map[string]outcome{"test": accepted, "due": accepted}, set: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/stop", `{"key_id":"`+r.keyID+`"}`)
		}, lift: func(t *testing.T, r *ruled) {
			r.set(t, http.MethodPost, "/v1/resume", `{"key_id":"`+r.keyID+`"}`)
		}},
		{rule: "list", name: "a blocked recipient", want: "recipient_blocked", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.list(t, "block", "bob@out.example")
		}},
		{rule: "list", name: "a list that allows others", want: "recipient_blocked", but: map[string]outcome{"due": failed}, set: func(t *testing.T, r *ruled) {
			r.list(t, "allow", "*@in.example")
		}},
		{rule: "list", name: "a list that asks", want: held, but: map[string]outcome{"approval": accepted}, set: func(t *testing.T, r *ruled) {
			r.list(t, "approve", "bob@out.example")
		}},
		{rule: "approval", name: "an inbox that asks", want: held, but: map[string]outcome{"approval": accepted}, set: func(t *testing.T, r *ruled) {
			r.setInbox(t, `{"send_policy":"approval"}`)
		}},
		{rule: "limit", name: "a limit of the key", fits: true, want: "budget_exceeded", but: map[string]outcome{"test": accepted, "due": waits}, set: func(t *testing.T, r *ruled) {
			r.setKey(t, `{"new_recipients_per_day":0}`)
		}},
		{rule: "limit", name: "a limit of the key that asks", want: held, but: map[string]outcome{"test": accepted, "approval": accepted, "due": waits}, set: func(t *testing.T, r *ruled) {
			r.setKey(t, `{"sends_per_hour":0,"on_limit":"approval"}`)
		}},
		{rule: "limit", name: "a limit of the inbox", fits: true, want: "budget_exceeded", but: map[string]outcome{"test": accepted, "due": waits}, set: func(t *testing.T, r *ruled) {
			r.setInbox(t, `{"limits":{"per_recipient_per_day":0}}`)
		}},
		{rule: "limit", name: "similar texts of an inbox", fits: true, want: "budget_exceeded", but: map[string]outcome{"test": accepted, "due": waits}, set: func(t *testing.T, r *ruled) {
			r.setInbox(t, `{"limits":{"similar_per_hour":0}}`)
		}},
		{rule: "limit", name: "recipients of an inbox", fits: true, want: "budget_exceeded", but: map[string]outcome{"test": accepted, "due": waits}, set: func(t *testing.T, r *ruled) {
			r.setInbox(t, `{"limits":{"recipients_per_day":0,"sends_per_minute":9}}`)
		}},
	}
	plans := storetest.WithConfig(func(c *store.Config) {
		c.Plans = []store.Plan{{Name: "month", Monthly: 1}, {Name: "day", Daily: 1}}
	})
	rows := 0
	for _, tt := range tests {
		doors := tt.only
		if doors == nil {
			doors = accountDoors
		}
		rows += len(doors)
		t.Run(tt.name, func(t *testing.T) {
			s := serveStore(t, []storetest.Option{plans}, withMCP, withUndo)
			r := &ruled{server: s, key: s.newKey(t), domain: "shop.example"}
			s.exec(t, `INSERT INTO domains (account_id, id, domain, token, status, records, pending_since, created_at)
					VALUES ($1, 'dom_1', $2, 'x', 'verified', '[]', 0, 0)`, s.account, r.domain)
			r.keyID = s.keyID(t, r.key)
			r.in = s.newInbox(t, func(in *store.Inbox) { in.Address, in.Name, in.Domain = "desk@"+r.domain, "desk", r.domain })
			n := &sending{s, s.submission(t), r.key, r.in, s.receive(t, r.in, "From: ann@out.example\n\nHello\n")}
			r.earlier = n.before(t, r)
			if !slices.Contains(doors, "approved") {
				r.set(t, http.MethodPost, "/v1/drafts/"+r.earlier.approved+"/undo", "")
			}
			tt.set(t, r)
			wanted := func(door string) outcome {
				if want, differs := tt.but[cmp.Or(vendorDoors[door], door)]; differs {
					return want
				}
				return tt.want
			}
			queued := func() int { return len(r.texts(t, `SELECT id FROM messages WHERE status = 'queued'`)) }
			for _, door := range doors {
				want, before := wanted(door), queued()
				switch approval := wanted("approval"); {
				case door == "person":
					want = approval
				case door != "expiry" && door != "approved": // an approval, with no caller to tell why not
				case approval == accepted, approval == failed:
					want = approval
				case approval == "sending_stopped", door == "approved" && tt.fits:
					want = waits
				case door == "approved":
					want = held
				default:
					want = failed
				}
				if vendorDoors[door] != "" && want != accepted && want != held {
					want = failed // vendors have their own names of errors
				}
				got, rule := n.through(t, door, r.earlier)
				if got != want {
					t.Errorf("%s: %s, want %s", door, got, want)
				}
				if want != accepted && queued() != before {
					t.Errorf("%s: something left", door)
				}
				refused := want != accepted && want != held && want != waits
				if named := slices.Contains([]string{"MCP", "SMTP", "batch", "Resend", "Mailosaur", "approved", "due", "expiry"}, door); refused && !named && rule != tt.rule {
					t.Errorf("%s: the rule is %q, want %q", door, rule, tt.rule)
				}
				if door == "approval" && refused { // it can be sent later
					d := r.do(t, http.MethodGet, "/v1/drafts/"+r.draft, "").want(t, http.StatusOK)
					d.says(t, "status", `"pending"`).wantAt(t, "version", "1")
				}
			}
			r.do(t, http.MethodGet, "/v1/messages/"+n.received.ID, "").want(t, http.StatusOK)
			if tt.lift == nil {
				return
			}
			tt.lift(t, r)
			for _, door := range []string{"send", "expiry"} {
				if got, _ := n.through(t, door, r.earlier); got != accepted {
					t.Errorf("%s: %s after the rule was lifted", door, got)
				}
			}
		})
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
}

// before makes what a rule that is set later meets.
func (n *sending) before(t *testing.T, r *ruled) earlier {
	t.Helper()
	r.setInbox(t, `{"send_policy":"approval"}`)
	draft := func(more string) string {
		t.Helper()
		body := `{"to":"bob@out.example","subject":"s","text":"t"` + more + `}`
		return n.newDraft(t, n.in, body, as(n.key)).str(t, "id")
	}
	const inAnHour = `,"approval":{"expires_in":3600}`
	e := earlier{draft: draft(""), unseen: draft(""), approved: draft(""), sends: draft(inAnHour), ends: draft(inAnHour)}
	chooser := n.newKey(t)
	e.chooserID = n.keyID(t, chooser)
	n.do(t, http.MethodPatch, "/v1/drafts/"+e.sends, `{"on_expiry":"send"}`, as(chooser)).want(t, http.StatusOK)
	if res, _ := n.approve(t, e.approved); res != accepted {
		t.Fatalf("a person cannot approve: %s", res)
	}
	r.setInbox(t, `{"send_policy":"open"}`)
	path, body := sendDoors["scheduled"](n.in, n.received, "bob@out.example")
	e.email = n.do(t, http.MethodPost, path, body, as(n.key)).want(t, http.StatusCreated).str(t, "id")
	return e
}

// through sends a message to Bob through a door. It returns the outcome, and the rule that
// a refusal names.
func (n *sending) through(t *testing.T, door string, before earlier) (outcome, string) {
	t.Helper()
	const to = "bob@out.example"
	path, body := "", ""
	key := n.key
	switch door {
	case "MCP", "SMTP":
		done, err := n.send(t.Context(), t, door, to)
		must(t, err)
		return done, ""
	case "Resend", "Mailosaur":
		_, body = sendDoors[vendorDoors[door]](n.in, n.received, to)
		path = map[string]string{"Resend": "/resend/emails", "Mailosaur": "/mailosaur/api/messages/" + n.received.ID + "/forward"}[door]
		switch res := n.do(t, http.MethodPost, path, body, as(key)); {
		case res.status >= http.StatusBadRequest && res.status < http.StatusInternalServerError:
			return failed, ""
		case strings.HasPrefix(res.str(t, "id"), "drf_"):
			return held, ""
		default:
			return accepted, ""
		}
	case "approval":
		return outcomeOf(t, n.do(t, http.MethodPost, "/v1/drafts/"+before.draft+"/send", ""))
	case "person":
		return n.approve(t, before.unseen)
	case "approved":
		n.clock.Add(undoTime)
		if _, err := n.expirer(t).Decide(t.Context()); err != nil {
			t.Error(err)
		}
		d := n.do(t, http.MethodGet, "/v1/drafts/"+before.approved, "").want(t, http.StatusOK)
		switch status := d.str(t, "status"); {
		case status == "sent":
			return accepted, ""
		case status == "scheduled":
			return waits, ""
		case status == "pending" && strings.Contains(string(d.body), `"not_sent"`):
			return held, ""
		default:
			return outcome(status), ""
		}
	case "due":
		n.clock.Add(time.Hour)
		n.release(t)
		e := n.do(t, http.MethodGet, "/v1/emails/"+before.email, "").want(t, http.StatusOK)
		said := string(e.body)
		switch status := e.str(t, "status"); {
		case status == "queued":
			return accepted, ""
		case status == "scheduled":
			return waits, ""
		case status == "failed" && strings.Contains(said, "Not sent: "):
			return failed, ""
		case status == "cancelled" && strings.Contains(said, "Held for approval as drf_"):
			return held, ""
		default:
			return outcome(status), ""
		}
	case "expiry":
		n.clock.Add(time.Hour)
		if _, err := n.expirer(t).Decide(t.Context()); err != nil {
			t.Error(err)
		}
		n.do(t, http.MethodGet, "/v1/drafts/"+before.ends, "").wantAt(t, "status", `"rejected"`) // waits for nothing
		d := n.do(t, http.MethodGet, "/v1/drafts/"+before.sends, "").want(t, http.StatusOK)
		switch status := d.str(t, "status"); {
		case status == "sent":
			return accepted, ""
		case status == "pending":
			return waits, ""
		case strings.HasPrefix(d.str(t, "reject_reason"), "expired"):
			return failed, "" // with what follows: who chose to send it lost access, or the text of a refusal
		default:
			return outcome(status), ""
		}
	case "test":
		path, body = sendDoors["send"](n.in, n.received, to)
		key = n.newKey(t, testMode)
	default:
		path, body = sendDoors[door](n.in, n.received, to)
	}
	res := n.do(t, http.MethodPost, path, body, as(key))
	if door == "batch" && res.status == http.StatusCreated {
		for field, done := range map[string]outcome{"emails": accepted, "drafts": held} {
			if !strings.Contains(string(res.body), fmt.Sprintf("%q:[]", field)) {
				return done, ""
			}
		}
	}
	return outcomeOf(t, res)
}

// outcomeOf is the outcome in a response, and the rule that a refusal names.
func outcomeOf(t *testing.T, res response) (outcome, string) {
	t.Helper()
	switch res.status {
	case http.StatusCreated:
		return accepted, ""
	case http.StatusAccepted:
		return held, ""
	}
	if res.status == http.StatusTooManyRequests && res.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %s", res.body)
	}
	rule := ""
	if strings.Contains(string(res.body), `"rule":`) {
		rule = res.str(t, "error.rule")
	}
	return outcome(res.str(t, "error.code")), rule
}

// What was accepted for one moment leaves within the limits when it is due: the rest
// follows as soon as it fits.
func TestScheduledMailLeavesWithinTheLimits(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	key := s.newKey(t, limitedKey(`{"sends_per_minute":5}`, t))
	for i := range 10 { // as many as fit, each minute
		if i == 5 {
			s.clock.Add(time.Minute)
		}
		path, body := sendDoors["scheduled"](in, store.Message{}, fmt.Sprintf("r%d@out.example", i))
		s.do(t, http.MethodPost, path, body, as(key)).want(t, http.StatusCreated)
	}
	queued := func() int { return len(s.texts(t, `SELECT id FROM messages WHERE status = 'queued'`)) }
	s.clock.Add(time.Hour)
	for minute, want := range []int{5, 5, 10} {
		s.release(t)
		if n := queued(); n != want {
			t.Errorf("round %d: %d left, want %d", minute, n, want)
		}
		s.clock.Add(31 * time.Second)
	}
}
