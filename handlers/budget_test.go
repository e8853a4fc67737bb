package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// sendDoors are the ways to send one message from an inbox. received is a message in
// the inbox.
var sendDoors = map[string]func(in store.Inbox, received store.Message, to string) (path, body string){
	"send": func(in store.Inbox, _ store.Message, to string) (string, string) {
		return "/v1/inboxes/" + in.ID + "/messages", `{"to":"` + to + `","subject":"s","text":"t"}`
	},
	"reply": func(_ store.Inbox, m store.Message, to string) (string, string) {
		return "/v1/messages/" + m.ID + "/reply", `{"bcc":"` + to + `","text":"t"}`
	},
	"forward": func(_ store.Inbox, m store.Message, to string) (string, string) {
		return "/v1/messages/" + m.ID + "/forward", `{"to":"` + to + `"}`
	},
	"email": func(in store.Inbox, _ store.Message, to string) (string, string) {
		return "/v1/emails", `{"from":"` + in.Address + `","to":"` + to + `","subject":"s","text":"t"}`
	},
	"scheduled": func(in store.Inbox, _ store.Message, to string) (string, string) {
		return "/v1/emails", `{"from":"` + in.Address + `","to":"` + to + `","subject":"s","text":"t","scheduledAt":"` + begin.Add(time.Hour).Format(time.RFC3339) + `"}`
	},
	"batch": func(in store.Inbox, _ store.Message, to string) (string, string) {
		return "/v1/emails/batch", `{"from":"` + in.Address + `","recipients":[{"to":"` + to + `"}],"subject":"s","text":"t"}`
	},
}

// limitedKey gives a key limits, written as in the API.
func limitedKey(limits string, t *testing.T) func(*store.Key) {
	t.Helper()
	l := &store.JSON[store.Limits]{}
	must(t, l.Scan(limits))
	return func(k *store.Key) { k.Limits = l }
}

// Of many sends at the same time on three nodes exactly as many leave as the budget
// has, through each door and through all of them mixed.
func TestBudgetIsExactOverNodesAndEntryPoints(t *testing.T) {
	t.Parallel()
	for name, doors := range map[string][]string{
		"REST": {"send", "forward", "email", "scheduled"}, "batch": {"batch"}, "MCP": {"MCP"}, "SMTP": {"SMTP"},
		"mixed": {"send", "forward", "email", "scheduled", "batch", "MCP", "SMTP"}, // a reply is two recipients
	} {
		if len(doors) < 7 && !eachDoorAlone {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.RunNodes(t, func(t *testing.T, cfg store.Config) { budgetIsExact(t, cfg, doors) })
		})
	}
}

func budgetIsExact(t *testing.T, cfg store.Config, doors []string) {
	t.Helper()
	servers := startNodes(t, cfg, 3, withMCP)
	s := servers[0]
	in := s.newInbox(t)
	m := s.receive(t, in, "From: ann@out.example\n\nHello\n")
	key := s.newKey(t, limitedKey(fmt.Sprintf(`{"sends_per_hour":%d}`, sendBudget), t))
	var nodes []*sending
	for _, s := range servers {
		nodes = append(nodes, &sending{s, s.submission(t), key, in, m})
	}
	var left atomic.Int64
	var all sync.WaitGroup
	work := make(chan int)
	for range 24 {
		all.Go(func() {
			for i := range work {
				door := doors[i%len(doors)]
				done, err := nodes[i%len(nodes)].send(t.Context(), t, door, fmt.Sprintf("r%d@out.example", i))
				for tries := 0; done == "unavailable" && tries < 5; tries++ { // the key's row was locked for 5 seconds: nothing was sent
					done, err = nodes[i%len(nodes)].send(t.Context(), t, door, fmt.Sprintf("r%d@out.example", i))
				}
				switch {
				case err != nil:
					t.Errorf("%s: %v", door, err)
				case done == accepted:
					left.Add(1)
				case done != "budget_exceeded":
					t.Errorf("%s: %s", door, done)
				}
			}
		})
	}
	for i := range parallelSends {
		work <- i
	}
	close(work)
	all.Wait()
	if n := left.Load(); n != sendBudget {
		t.Errorf("%d of %d sends were accepted, want %d", n, parallelSends, sendBudget)
	}
	if stored := s.texts(t, `SELECT email FROM recipients WHERE account_id = $1`, s.account); len(stored) != sendBudget {
		t.Errorf("%d recipients are stored, want %d", len(stored), sendBudget)
	}
}

// With on_limit approval, what is over a limit becomes a draft, also of a batch. A person
// may send it; the key that made it may not.
func TestOverTheBudgetNeedsApproval(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	limited := as(s.newKey(t, limitedKey(`{"sends_per_hour":1,"on_limit":"approval"}`, t)))
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", plainSend, limited).want(t, http.StatusCreated)
	d := s.newDraft(t, in, plainSend, limited, with(idempotencyKey, "a send"))
	s.newDraft(t, in, plainSend, limited, with(idempotencyKey, "a send")).wantSame(t, d)
	batch := `{"from":"` + in.Address + `","recipients":[{"to":"a@out.example","tags":{"n":1}},{"to":"b@out.example"}],"subject":"s","text":"t"}`
	b := s.do(t, http.MethodPost, "/v1/emails/batch", batch, as(s.newKey(t, limitedKey(`{"sends_per_hour":1}`, t)))).want(t, http.StatusCreated)
	b.wantAt(t, "count", "1") // the other one is refused
	b.wantAt(t, "refused.0.index", "1")
	b = s.do(t, http.MethodPost, "/v1/emails/batch", batch, limited, with("Idempotency-Key", "all drafts")).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/emails/batch", batch, limited, with("Idempotency-Key", "all drafts")).wantSame(t, b)
	never := as(s.newKey(t, limitedKey(`{"sends_per_hour":0,"on_limit":"approval"}`, t), onlyInboxes(in.ID)))
	ofInbox := s.do(t, http.MethodPost, "/v1/emails/batch", batch, never, with("Idempotency-Key", "of an inbox")).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/emails/batch", batch, never, with("Idempotency-Key", "of an inbox")).wantSame(t, ofInbox)
	b.wantAt(t, "count", "0")
	b.wantAt(t, "drafts.1.index", "1")
	held := s.do(t, http.MethodGet, "/v1/drafts/"+b.str(t, "drafts.0.draft_id"), "").want(t, http.StatusOK)
	held.wantAt(t, "tags.n", "1")
	s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"a@out.example","subject":"s","text":"t"}`, limited).
		wantError(t, http.StatusTooManyRequests, "budget_exceeded limits.sends_per_hour") // no inbox can hold it

	s.do(t, http.MethodPost, draftPath(t, held, "/send"), "", limited).wantError(t, http.StatusTooManyRequests, "budget_exceeded limits.sends_per_hour")
	person := httpapi.AsPerson(t.Context(), httpapi.Person{Seq: 1, AccountID: s.account, ID: "usr_1", Role: store.RoleAdmin})
	api, err := httpapi.NewLocalClient(s.web.Config.Handler)
	must(t, err)
	if _, err := api.SendDraft(person, gen.OptDraftSend{}, gen.SendDraftParams{DraftID: held.str(t, "id")}); err != nil {
		t.Errorf("a person approves: %v", err)
	}
	s.do(t, http.MethodPost, draftPath(t, d, "/send"), "").want(t, http.StatusCreated) // another key
}

// Refused, simulated and suppressed sends do not count.
func TestUnsentMailDoesNotCount(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"limits":{"sends_per_day":2}}`).want(t, http.StatusOK)
	send := func(to string, status int, opts ...option) {
		t.Helper()
		s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":["`+strings.ReplaceAll(to, " ", `","`)+`"],"subject":"s","text":"t"}`, opts...).want(t, status)
	}
	send("a@out.example b@out.example c@out.example", http.StatusTooManyRequests)
	for range 3 {
		send("a@out.example", http.StatusCreated, as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest })))
	}
	s.suppress(t, "gone@out.example")
	send("a@out.example gone@out.example", http.StatusCreated)
	send("a@out.example", http.StatusCreated)
	send("a@out.example", http.StatusTooManyRequests)
}

func TestLimitsOfInboxesAndKeys(t *testing.T) {
	s := serve(t)
	in := s.do(t, http.MethodPost, "/v1/inboxes", `{"limits":{"sends_per_hour":10,"on_limit":"approval"}}`).want(t, http.StatusCreated)
	in.wantAt(t, "limits.sends_per_hour", "10")
	in.wantAt(t, "limits.on_limit", `"approval"`)
	path, sending := "/v1/inboxes/"+in.str(t, "id"), as(s.newKey(t, scopes("send", "read")))
	for _, tt := range []struct{ body, param string }{
		{`{"limits":{"sends_per_hour":5,"similar_per_hour":3,"on_limit":"refuse"}}`, ""},
		{`{"limits":{"sends_per_hour":6,"similar_per_hour":3}}`, "limits"},
		{`{"limits":{"sends_per_hour":5}}`, "limits"},
		{`{"limits":null}`, "limits"},
		{`{"limits":{"sends_per_hour":5,"similar_per_hour":3,"on_limit":"approval"}}`, "limits"},
		{`{"display_name":"x"}`, ""},
	} {
		res := s.do(t, http.MethodPatch, path, tt.body, sending)
		if tt.param == "" {
			res.want(t, http.StatusOK).wantAt(t, "limits.similar_per_hour", "3")
		} else {
			res.wantError(t, http.StatusForbidden, "insufficient_scope "+tt.param)
		}
	}
	s.do(t, http.MethodPatch, path, `{"limits":{"sends_per_hour":-1}}`, broken).want(t, http.StatusBadRequest)
	s.do(t, http.MethodPatch, path, `{"limits":{}}`).want(t, http.StatusOK)
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "limits", `null`)

	k := s.do(t, http.MethodPost, "/v1/keys", `{"name":"agent","scopes":["send","keys:manage"],"limits":{"sends_per_day":7}}`).want(t, http.StatusCreated)
	self, key := as(k.str(t, "key")), "/v1/keys/"+k.str(t, "id")
	s.do(t, http.MethodPatch, key, `{"limits":{"sends_per_day":8}}`, self).wantError(t, http.StatusForbidden, "insufficient_scope limits")
	s.do(t, http.MethodPatch, key, `{"limits":null}`, self).wantError(t, http.StatusForbidden, "insufficient_scope limits")
	s.do(t, http.MethodPatch, key, `{"limits":{"sends_per_day":6},"name":"Agent"}`, self).want(t, http.StatusOK).wantAt(t, "limits.sends_per_day", "6")
	s.do(t, http.MethodPost, "/v1/keys", `{"name":"more","scopes":["send"]}`, self).wantError(t, http.StatusForbidden, "insufficient_scope")
	s.do(t, http.MethodPost, "/v1/keys", `{"name":"less","scopes":["send"],"limits":{"sends_per_day":1}}`, self).wantError(t, http.StatusForbidden, "insufficient_scope")
	s.do(t, http.MethodPatch, "/v1/api-keys/"+k.str(t, "id"), `{"limits":null}`).want(t, http.StatusOK).wantAt(t, "limits", `null`)
	s.do(t, http.MethodPatch, "/v1/keys/key_none", `{"name":"x"}`).want(t, http.StatusNotFound)
	bound := as(s.newKey(t, onlyInboxes(in.str(t, "id")), scopes("keys:manage")))
	s.do(t, http.MethodPatch, key, `{"name":"x"}`, bound).wantError(t, http.StatusForbidden, "insufficient_scope")
}
