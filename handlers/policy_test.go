package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

// guarded is an inbox with a policy and the data for attempts to bypass it.
type guarded struct {
	*server
	in       store.Inbox
	received store.Message // from ann, with Reply-To eve and a copy to eve
	earlier  response      // sent to eve while the policy was open
	paths    *strings.Replacer
}

func (s *server) guard(t *testing.T, p store.SendPolicy) guarded {
	t.Helper()
	g := guarded{server: s, in: s.newInbox(t)}
	g.received = s.receive(t, g.in, "From: Ann <Ann@Out.example>\nSender: eve@evil.example\nReply-To: eve@evil.example\n"+
		"To: OWN, carl@out.example\nCc: eve@evil.example\nMessage-ID: <a@out.example>\nSubject: Hi")
	s.receive(t, g.in, "From: bob+shop@out.example\nSubject: Hi")
	s.receive(t, s.newInbox(t), "From: other@out.example\nSubject: Hi") // to another inbox
	g.earlier = s.do(t, http.MethodPost, "/v1/inboxes/"+g.in.ID+"/messages", `{"to":"eve@evil.example","subject":"s","text":"t"}`,
		with(idempotencyKey, "earlier")).want(t, http.StatusCreated)
	simulated := s.do(t, http.MethodPost, "/v1/inboxes/"+g.in.ID+"/simulate", `{"from":"mallory@evil.example","subject":"s"}`).want(t, http.StatusCreated)
	s.setPolicy(t, g.in, p)
	m, e := "/v1/messages/"+g.received.ID, "/v1/messages/"+g.earlier.str(t, "id")
	g.paths = strings.NewReplacer("SEND", "/v1/inboxes/"+g.in.ID+"/messages", "REPLY-TO-OWN", e+"/reply", "FORWARD-OWN", e+"/forward",
		"REPLY-TO-SIMULATED", "/v1/messages/"+simulated.str(t, "id")+"/reply", "REPLY", m+"/reply", "FORWARD", m+"/forward")
	return g
}

// reached returns the addresses, in lower case, that live messages were sent
// to, except the earlier one.
func (g *guarded) reached(t *testing.T) []string {
	t.Helper()
	return g.texts(t, `SELECT DISTINCT lower(r.email) AS email FROM recipients r JOIN messages m ON m.seq = r.message_seq
		WHERE m.inbox_seq = $1 AND NOT m.test_mode AND m.id <> $2 ORDER BY email`, g.in.Seq, g.earlier.str(t, "id"))
}

// Row O11: an inbox with reply_only writes only to addresses that have written
// to it.
func TestReplyOnlyCannotBeBypassed(t *testing.T) {
	s := serve(t)
	g := s.guard(t, store.PolicyReplyOnly)
	tests := []struct{ name, path, body, want string }{
		{"to a stranger", "SEND", `"to":"eve@evil.example"`, "403 to[0]"},
		{"by cc", "SEND", `"to":"ann@out.example","cc":"eve@evil.example"`, "403 cc[0]"},
		{"by bcc", "SEND", `"to":"ann@out.example","bcc":["eve@evil.example"]`, "403 bcc[0]"},
		{"among others", "SEND", `"to":["ann@out.example","eve@evil.example"]`, "403 to[1]"},
		{"behind the name of another", "SEND", `"to":{"email":"eve@evil.example","name":"Ann <ann@out.example>"}`, "403 to[0]"},
		{"with a tag that the sender did not use", "SEND", `"to":"ann+eve@out.example"`, "403 to[0]"},
		{"without the tag that the sender used", "SEND", `"to":"bob@out.example"`, "403 to[0]"},
		{"with another tag", "SEND", `"to":"bob+work@out.example"`, "403 to[0]"},
		{"in a subdomain", "SEND", `"to":"ann@sub.out.example"`, "403 to[0]"},
		{"in the parent domain", "SEND", `"to":"ann@example"`, "4xx"},
		{"in a longer domain", "SEND", `"to":"ann@out.example.evil.example"`, "403 to[0]"},
		{"with similar letters", "SEND", `"to":"аnn@out.example"`, "403 to[0]"}, // a Cyrillic a
		{"with letters that fold to the same", "SEND", `"to":"bob+\u017fhop@out.example"`, "403 to[0]"},
		{"in quotes", "SEND", `"to":"\"ann\"@out.example"`, "4xx"},
		{"with dots", "SEND", `"to":"a.nn@out.example"`, "403 to[0]"},
		{"to a sender of another inbox", "SEND", `"to":"other@out.example"`, "403 to[0]"},
		{"to an address in the Cc of a received message", "SEND", `"to":"carl@out.example"`, "403 to[0]"},
		{"to the sender of a simulated message", "SEND", `"to":"mallory@evil.example"`, "403 to[0]"},
		{"by a reply to a simulated message", "REPLY-TO-SIMULATED", ``, "409"},
		{"in a header", "SEND", `"to":"ann@out.example","headers":{"Bcc":"eve@evil.example"}`, "4xx"},
		{"two in one", "SEND", `"to":"ann@out.example,eve@evil.example"`, "4xx"},
		{"by a route", "SEND", `"to":"@evil.example:ann@out.example"`, "4xx"},
		{"through their host", "SEND", `"to":"eve%evil.example@out.example"`, "403 to[0]"},
		{"through their host, as of old", "SEND", `"to":"evil.example!eve@out.example"`, "403 to[0]"},
		{"with their address as a local part", "SEND", `"to":"\"ann@out.example\"@evil.example"`, "4xx"},
		{"at the root", "SEND", `"to":"ann@out.example."`, "4xx"},
		{"at an address literal", "SEND", `"to":"ann@[192.0.2.1]"`, "4xx"},
		{"by a reply to all", "REPLY", `"reply_all":true`, "403 cc[0]"},
		{"by a Cc of a reply", "REPLY", `"cc":"eve@evil.example"`, "403 cc[0]"},
		{"by a Bcc of a reply", "REPLY", `"bcc":"eve@evil.example"`, "403 bcc[0]"},
		{"by Reply-To", "REPLY", ``, "201"},
		{"by a reply to a sent message", "REPLY-TO-OWN", ``, "403 to[0]"},
		{"by a forward", "FORWARD", `"to":"eve@evil.example"`, "403 to[0]"},
		{"by a Cc of a forward", "FORWARD", `"to":"ann@out.example","cc":"eve@evil.example"`, "403 cc[0]"},
		{"by a Bcc of a forward", "FORWARD", `"to":"ann@out.example","bcc":"eve@evil.example"`, "403 bcc[0]"},
		{"by a forward of a sent message", "FORWARD-OWN", `"to":"eve@evil.example"`, "403 to[0]"},
		{"to senders, in another case", "SEND", `"to":"ANN@OUT.EXAMPLE","cc":"Bob+Shop@out.example"`, "201"},
	}
	for _, tt := range tests {
		res := s.do(t, http.MethodPost, g.paths.Replace(tt.path), g.body(tt.path, tt.body), broken)
		if d := cmp.Diff(tt.want, refusal(t, res, tt.want)); d != "" {
			t.Errorf("%s: -want +got: %s\n%s", tt.name, d, res.body)
		}
	}
	if d := cmp.Diff([]string{"ann@out.example", "bob+shop@out.example"}, g.reached(t)); d != "" {
		t.Errorf("mail was sent to: -want +got:\n%s", d)
	}

	// A repeated call gets the cached response and sends nothing.
	s.do(t, http.MethodPost, g.paths.Replace("SEND"), `{"to":"eve@evil.example","subject":"s","text":"t"}`, with(idempotencyKey, "earlier")).
		want(t, http.StatusCreated).wantSame(t, g.earlier)
	// A test key may write to simulated senders, and nothing is delivered.
	test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
	s.do(t, http.MethodPost, g.paths.Replace("SEND"), g.body("SEND", `"to":"mallory@evil.example"`), test).
		want(t, http.StatusCreated).wantAt(t, "test_mode", `true`)
	if all := g.reached(t); len(all) != 2 {
		t.Errorf("mail was sent to %v", all)
	}
}

// body returns a request for one of the ways to send, with some extra fields.
func (g *guarded) body(path, fields string) string {
	all := []string{`"text":"t"`}
	if path == "SEND" && !strings.Contains(fields, `"subject"`) {
		all = append(all, `"subject":"s"`)
	}
	if fields != "" {
		all = append(all, fields)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// refusal returns the status and, for recipient_not_allowed, the field; or
// "4xx" for any refusal if that is what want says. The error names a recipient by its
// place: an address may contain instructions for the agent that reads the error.
func refusal(t *testing.T, res response, want string) string {
	t.Helper()
	switch {
	case res.status == http.StatusForbidden && res.str(t, "error.code") == "recipient_not_allowed" && want != "4xx":
		if strings.Contains(string(res.body), "@") {
			t.Errorf("the error quotes an address: %s", res.body)
		}
		return "403 " + res.str(t, "error.param")
	case res.status >= 400 && res.status < 500 && want == "4xx":
		return "4xx"
	}
	return fmt.Sprint(res.status)
}

// Row O11: nothing leaves unless a key with the scope has approved it exactly
// as shown.
func TestApprovalCannotBeBypassed(t *testing.T) {
	s := serve(t)
	g := s.guard(t, store.PolicyApproval)
	ours := s.newInbox(t)
	agent := as(s.newKey(t, scopes("send", "read")))
	tests := []struct{ name, path, body string }{
		{"a send", "SEND", `"to":"eve@evil.example"`},
		{"to a sender of the inbox", "SEND", `"to":"ann@out.example"`},
		{"with copies", "SEND", `"to":"ann@out.example","cc":"eve@evil.example","bcc":"mallory@evil.example"`},
		{"to the inbox itself", "SEND", `"to":"` + g.in.Address + `"`},
		{"to the inbox with a tag, in another case", "SEND", `"to":"` + strings.ToUpper(g.in.Name) + "+tag@" + g.in.Domain + `"`},
		{"to another inbox of ours", "SEND", `"to":"` + ours.Address + `"`},
		{"marked as automatic", "SEND", `"to":"eve@evil.example","headers":{"Auto-Submitted":"auto-generated"}`},
		{"a reply", "REPLY", ``},
		{"a reply to all", "REPLY", `"reply_all":true,"bcc":"eve@evil.example"`},
		{"a reply to a sent message", "REPLY-TO-OWN", ``},
		{"a forward", "FORWARD", `"to":"eve@evil.example"`},
		{"a forward of what was sent before", "FORWARD-OWN", `"to":"eve@evil.example"`},
	}
	test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
	var last response
	for _, tt := range tests {
		for who, key := range map[string]option{"an agent": agent, "an administrator": as(s.key), "a test": test} {
			last = s.do(t, http.MethodPost, g.paths.Replace(tt.path), g.body(tt.path, tt.body), key)
			if last.status != http.StatusAccepted {
				t.Errorf("%s by %s: %d %s", tt.name, who, last.status, last.body)
			}
		}
	}
	d := s.do(t, http.MethodPost, g.paths.Replace("SEND"), g.body("SEND", `"to":"eve@evil.example"`), agent, with(idempotencyKey, "k")).want(t, http.StatusAccepted)
	for name, key := range map[string]option{
		"the agent": agent, "a key with scope read": as(s.newKey(t, scopes("read"))), "who sends emails": as(s.newKey(t, scopes("emails:send"))),
		"a key with scope keys:manage": as(s.newKey(t, scopes("keys:manage"))),
	} {
		if res := s.do(t, http.MethodPost, draftPath(t, d, "/send"), "", key); res.status != http.StatusForbidden {
			t.Errorf("%s approves: %d %s", name, res.status, res.body)
		}
	}
	elsewhere := as(s.newKey(t, scopes("admin"), onlyInboxes(ours.ID)))
	s.do(t, http.MethodPost, draftPath(t, d, "/send"), "", elsewhere).want(t, http.StatusNotFound)
	s.do(t, http.MethodPatch, draftPath(t, d), `{"to":"mallory@evil.example"}`, agent, broken).want(t, http.StatusBadRequest)
	// The agent edits the draft after the administrator has read it.
	s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Other."}`, agent).want(t, http.StatusOK)
	s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":1}`).wantError(t, http.StatusConflict, "draft_changed")
	if all := g.reached(t); len(all) != 0 {
		t.Errorf("mail was sent to %v", all)
	}

	m := s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":2}`, with(idempotencyKey, "k")).want(t, http.StatusCreated)
	for range 2 { // repeats the send and the decision
		s.do(t, http.MethodPost, g.paths.Replace("SEND"), g.body("SEND", `"to":"eve@evil.example"`), agent, with(idempotencyKey, "k")).
			want(t, http.StatusAccepted).wantSame(t, d)
		s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":2}`, with(idempotencyKey, "k")).want(t, http.StatusCreated).wantSame(t, m)
		s.do(t, http.MethodPost, draftPath(t, d, "/send"), `{"version":2}`).wantError(t, http.StatusConflict, "draft_not_pending")
	}
	s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Late."}`, agent).wantError(t, http.StatusConflict, "draft_not_pending")
	s.do(t, http.MethodPost, draftPath(t, last, "/reject"), "").want(t, http.StatusOK)
	s.do(t, http.MethodPost, draftPath(t, last, "/send"), "").wantError(t, http.StatusConflict, "draft_not_pending")
	if d := cmp.Diff([]string{"eve@evil.example"}, g.reached(t)); d != "" {
		t.Errorf("mail was sent to: -want +got:\n%s", d)
	}
}

// A reply follows Reply-To only for addresses that have written.
func TestReplyOnlyFollowsReplyTo(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyReplyOnly))
	s.receive(t, in, "From: Desk <desk@out.example>\nSubject: Hi")
	for header, want := range map[string]string{
		"From: ann@out.example\nReply-To: eve@evil.example":                   "ann@out.example",
		"From: ann@out.example\nReply-To: DESK@out.example":                   "DESK@out.example",
		"From: ann@out.example\nReply-To: desk@out.example, eve@evil.example": "desk@out.example",
		"From: ann@out.example\nReply-To: " + in.Address:                      "ann@out.example",
	} {
		m := s.receive(t, in, header+"\nSubject: Order")
		res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
		if got := strings.Join(res.strs(t, "to", "email"), " "); got != want {
			t.Errorf("%q: to %q, want %q", header, got, want)
		}
	}
}

// A thread accepts 20 of our messages per hour, even with concurrent sends.
func TestThreadLoopsEnd(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: Hi")
	path := "/v1/messages/" + m.ID + "/reply"
	reply := func() response { return s.do(t, http.MethodPost, path, `{"text":"t"}`) }
	s.setPolicy(t, in, store.PolicyApproval)
	draft := draftPath(t, reply().want(t, http.StatusAccepted), "/send")
	s.setPolicy(t, in, store.PolicyOpen)
	responses := make(chan response)
	for range store.MaxThreadSends + 10 {
		go func() { responses <- reply() }()
	}
	taken := 0
	for range store.MaxThreadSends + 10 {
		if res := <-responses; res.status == http.StatusCreated {
			taken++
		} else {
			res.wantError(t, http.StatusForbidden, "loop_detected")
		}
	}
	if taken != store.MaxThreadSends {
		t.Errorf("%d of 30 were accepted", taken)
	}
	s.do(t, http.MethodPost, draft, "").wantError(t, http.StatusForbidden, "loop_detected")
	other := s.receive(t, in, "From: bob@out.example\nSubject: Other")
	s.do(t, http.MethodPost, "/v1/messages/"+other.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", plainSend).want(t, http.StatusCreated)
	s.clock.Add(store.ThreadSendsWindow - time.Millisecond)
	reply().wantError(t, http.StatusForbidden, "loop_detected")
	s.clock.Add(time.Millisecond)
	reply().want(t, http.StatusCreated)
	s.do(t, http.MethodPost, draft, "").want(t, http.StatusCreated)
}

// Row S20, our part: automatic messages get no automatic replies.
func TestMachinesDoNotReplyToMachines(t *testing.T) {
	s := serve(t)
	in, held := s.newInbox(t), s.newInbox(t, policy(store.PolicyApproval))
	automatic := []string{`{"Auto-Submitted":"auto-replied"}`, `{"auto-submitted":"auto-generated (vacation)"}`, `{"Precedence":"bulk"}`, `{"List-Id":"<l.example>"}`}
	for _, header := range []string{"Auto-Submitted: auto-replied", "Precedence: list", "List-Id: <list.example>", "X-Plain: yes"} {
		for _, to := range []store.Inbox{in, held} {
			m := s.receive(t, to, header+"\nSubject: Hi")
			path := "/v1/messages/" + m.ID + "/reply"
			for _, headers := range automatic {
				res := s.do(t, http.MethodPost, path, `{"text":"t","headers":`+headers+`}`)
				if m.Automated {
					res.wantError(t, http.StatusForbidden, "loop_detected")
				} else if res.status >= 300 {
					t.Errorf("a reply to a person is refused: %d %s", res.status, res.body)
				}
			}
			for _, body := range []string{`{"text":"t"}`, `{"text":"t","headers":{"Auto-Submitted":"no"}}`} { // not automatic
				if res := s.do(t, http.MethodPost, path, body); res.status >= 300 {
					t.Errorf("%s: %d %s", header, res.status, res.body)
				}
			}
		}
	}
}
