package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

// However an agent writes a recipient, and whatever else it tries, no mail leaves to one that
// a list blocks, and none without approval to one that needs it.
func TestListsCannotBeBypassed(t *testing.T) {
	s := serve(t, withMCP)
	in, other := s.newInbox(t), s.newInbox(t)
	entry := func(direction, action, pattern string) string {
		return s.do(t, http.MethodPost, "/v1/lists", fmt.Sprintf(`{"direction":%q,"action":%q,"pattern":%q}`, direction, action, pattern)).
			want(t, http.StatusCreated).str(t, "id")
	}
	first := entry("outbound", "block", "vip@blocked.example")
	for _, pattern := range []string{"*@evil.example", "*@*.evil.example", "*@bücher.example"} {
		entry("outbound", "block", pattern)
	}
	entry("outbound", "approve", "*@asked.example")
	entry("inbound", "block", "*@spam.example")
	entry("inbound", "approve", "*@odd.example")
	agent := as(s.newKey(t, scopes("send", "read"), onlyInboxes(in.ID)))
	secondKey := s.newKey(t, scopes("send", "read"))
	second := as(secondKey)
	tester := as(s.newKey(t, scopes("send"), func(k *store.Key) { k.Mode = store.KeyTest }))
	const bad, ask = "vip@blocked.example", "boss@asked.example"
	text := func(v any) string {
		b, err := json.Marshal(v)
		must(t, err)
		return string(b)
	}
	messages := "/v1/inboxes/" + in.ID + "/messages"
	n := 0
	// try wants a request to be refused or to become a draft.
	try := func(name, path, body string, by option) response {
		t.Helper()
		n++
		res := s.do(t, http.MethodPost, path, body, by, broken)
		if res.status != http.StatusAccepted && res.status < http.StatusBadRequest || res.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %s", name, res.status, res.body)
		}
		return res
	}
	for _, to := range []string{
		bad, "VIP@blocked.example", "vip@BLOCKED.Example", "v.i.p@blocked.example", "vip+x@blocked.example", "v.ip+x+y@blocked.example",
		`"vip"@blocked.example`, `"v\ip"@blocked.example`, `"vip+x"@blocked.example`, "vip@blocked.example.", "ＶＩＰ@blocked.example",
		"a@bücher.example", "a@BÜCHER.example", "a@xn--bcher-kva.example", "a@XN--BCHER-KVA.example", "a@bu\u0308cher.example",
		"a@evil.example", "a@evil。example", "a@ｅｖｉｌ.example", "a@mail.evil.example", "a@x.y.evil.example", "a@MAIL.evil.example",
		"vip%blocked.example@relay.example", "a%evil.example@relay.example", "blocked.example!vip@relay.example", `"vip@blocked.example"@relay.example`,
		"vip%blocked.example%hop.example@relay.example", "@relay.example:vip@blocked.example", "<vip@blocked.example>", "vip@blocked.example;",
		"friends: vip@blocked.example;", "ok@out.example, vip@blocked.example", "ok@out.example <vip@blocked.example>", " vip@blocked.example",
		"vip@blocked.example\r\nBcc: a@evil.example", "vip@[127.0.0.1]", "a@asked.example", "A+b@ASKED.example", "a%asked.example@relay.example",
	} {
		body := `"subject":"s","text":"t"}`
		try("send to "+to, messages, `{"to":`+text(to)+`,`+body, agent)
		try("email to "+to, "/v1/emails", `{"from":"`+in.Address+`","to":`+text("Friend <"+to+">")+`,`+body, agent)
	}
	m := s.receive(t, in, "From: vip@blocked.example\nCc: a@evil.example\n\nHello\n")
	via := s.receive(t, in, "From: ok@out.example\nReply-To: vip@blocked.example\n\nHello\n")
	all := s.receive(t, in, "From: ok@out.example\nCc: Friend <v.i.p@blocked.example>\n\nHello\n")
	fine := s.receive(t, in, "From: ok@out.example\n\nHello\n")
	template := s.do(t, http.MethodPost, "/v1/templates", `{"name":"n","subject":"s","html":"h"}`).want(t, http.StatusCreated).str(t, "id")
	email := func(fields string) string {
		return `{"from":"` + in.Address + `","subject":"s","text":"t",` + fields + `}`
	}
	send := func(fields string) string { return `{"subject":"s","text":"t",` + fields + `}` }
	for _, w := range []struct {
		name, path, body string
		by               option
	}{
		{"cc", messages, send(`"to":"ok@out.example","cc":"` + bad + `"`), agent},
		{"bcc", messages, send(`"to":"ok@out.example","bcc":["` + bad + `"]`), agent},
		{"second of a list", messages, send(`"to":["ok@out.example","` + bad + `"]`), agent},
		{"an object", messages, send(`"to":{"email":"` + bad + `","name":"ok@out.example"}`), agent},
		{"cc that needs approval", messages, send(`"to":"ok@out.example","cc":"` + ask + `"`), agent},
		{"both", messages, send(`"to":"` + ask + `","bcc":"` + bad + `"`), agent},
		{"reply to a blocked sender", "/v1/messages/" + m.ID + "/reply", `{"text":"t"}`, agent},
		{"reply to a blocked Reply-To", "/v1/messages/" + via.ID + "/reply", `{"text":"t"}`, agent},
		{"reply to all", "/v1/messages/" + all.ID + "/reply", `{"text":"t","reply_all":true}`, agent},
		{"reply with cc", "/v1/messages/" + fine.ID + "/reply", `{"text":"t","cc":"` + bad + `"}`, agent},
		{"forward with bcc", "/v1/messages/" + fine.ID + "/forward", `{"to":"ok@out.example","bcc":"` + bad + `"}`, agent},
		{"email with cc", "/v1/emails", email(`"to":"ok@out.example","cc":["` + bad + `"]`), agent},
		{"email with bcc", "/v1/emails", email(`"to":"ok@out.example","bcc":"` + bad + `"`), agent},
		{"template", "/v1/emails", `{"from":"` + in.Address + `","subject":"s","template":"` + template + `","to":"` + bad + `"}`, second},
		{"a tag of the sender", "/v1/emails", strings.Replace(email(`"to":"`+bad+`"`), "@", "+x@", 1), agent},
		{"a sender without an inbox", "/v1/emails", `{"from":"any@` + mailDomain + `","subject":"s","text":"t","to":"` + bad + `"}`, second},
		{"approval without an inbox", "/v1/emails", `{"from":"any@` + mailDomain + `","subject":"s","text":"t","to":"` + ask + `"}`, second},
		{"a second key", messages, send(`"to":"` + bad + `"`), second},
		{"a test key", messages, send(`"to":"` + bad + `"`), tester},
		{"another inbox", "/v1/inboxes/" + other.ID + "/messages", send(`"to":"` + bad + `"`), second},
		{"allowing it", "/v1/lists", `{"direction":"outbound","action":"allow","pattern":"` + bad + `"}`, agent},
		{"allowing it for the inbox", "/v1/lists", `{"direction":"outbound","action":"allow","pattern":"a@evil.example","inbox_id":"` + in.ID + `"}`, agent},
		{"asking in place of blocking", "/v1/lists", `{"direction":"outbound","action":"approve","pattern":"a@evil.example","inbox_id":"` + in.ID + `"}`, agent},
		{"allowing what needs approval", "/v1/lists", `{"direction":"outbound","action":"allow","pattern":"` + ask + `","inbox_id":"` + in.ID + `"}`, agent},
		{"lists of another inbox", "/v1/lists", `{"direction":"outbound","action":"block","pattern":"` + ask + `","inbox_id":"` + other.ID + `"}`, agent},
	} {
		try(w.name, w.path, w.body, w.by)
	}
	n++
	s.do(t, http.MethodDelete, "/v1/lists/"+first, "", agent).wantError(t, http.StatusForbidden, "insufficient_scope")

	// Of a batch the others are sent.
	n++
	mixed := s.do(t, http.MethodPost, "/v1/emails/batch", email(`"recipients":[{"to":"`+bad+`"},{"to":"ok@out.example"},{"to":"`+ask+`"}]`), agent).
		want(t, http.StatusCreated)
	mixed.wantText(t, `"recipient_blocked"`).wantText(t, `"recipients[0].to[0]"`).wantText(t, `"drafts":[{"index":2`)

	// The envelope counts, not the header.
	for _, to := range []string{bad, "VIP@blocked.example", "vip+x@blocked.example", "a@evil.example", "vip%blocked.example@relay.example"} {
		n++
		s.refuses(t, s.key, "From: "+in.Address+"\nTo: ok@out.example\nSubject: s\n", "recipient_blocked", "ok@out.example", to)
	}
	n++
	if held := s.submits(t, s.key, "From: "+in.Address+"\nTo: ok@out.example\nSubject: s\n", ask); !held.Held {
		t.Errorf("submitted without approval: %+v", held)
	}

	// Over a socket, and as tools.
	smtpAt := s.submission(t)
	for _, tt := range []struct {
		to   []string
		want outcome
	}{
		{[]string{"VIP@BLOCKED.example"}, "recipient_blocked"},
		{[]string{"v.i.p+x@blocked.example"}, "recipient_blocked"},
		{[]string{`"vip"@blocked.example`}, "recipient_blocked"},
		{[]string{"ok@out.example", "a@mail.evil.example"}, "recipient_blocked"},
		{[]string{"a@xn--bcher-kva.example"}, "recipient_blocked"},
		{[]string{"vip%blocked.example@relay.example"}, "recipient_blocked"},
		{[]string{ask, bad}, "recipient_blocked"},
		{[]string{"ok@out.example", "A+b@ASKED.example"}, held},
	} {
		n++
		if done, err := submitAt(smtpAt, secondKey, in.Address, tt.to...); err != nil || done != tt.want {
			t.Errorf("SMTP to %q: %s, %v", tt.to, done, err)
		}
	}
	for _, tt := range []struct {
		tool, arguments string
		want            outcome
	}{
		{"send_email", `{"inbox_id":"` + in.ID + `","to":["ok@out.example"],"bcc":["VIP+x@blocked.example"],"subject":"s","text":"t"}`, "recipient_blocked"},
		{"reply", `{"message_id":"` + m.ID + `","text":"t"}`, "recipient_blocked"},
		{"reply", `{"message_id":"` + all.ID + `","text":"t","reply_all":true}`, "recipient_blocked"},
		{"reply", `{"message_id":"` + fine.ID + `","text":"t","cc":["` + ask + `"]}`, held},
		{"forward", `{"message_id":"` + fine.ID + `","to":["` + bad + `"]}`, "recipient_blocked"},
		{"forward", `{"message_id":"` + fine.ID + `","to":["` + ask + `"]}`, held},
		{"send_transactional", email(`"to":"` + bad + `"`), "recipient_blocked"},
		{"send_transactional", email(`"to":"` + ask + `"`), held},
	} {
		n++
		if done, err := s.callTool(t.Context(), t, secondKey, tt.tool, tt.arguments); err != nil || done != tt.want {
			t.Errorf("%s %s: %s, %v", tt.tool, tt.arguments, done, err)
		}
	}

	// The key that made a draft does not approve it.
	both := s.newKey(t, scopes("send", "read", "admin"))
	draft := try("a draft", messages, send(`"to":"`+ask+`"`), as(both)).str(t, "id")
	own := try("approving the own draft", "/v1/drafts/"+draft+"/send", "", as(both))
	own.wantError(t, http.StatusForbidden, "recipient_blocked to[0]")

	// Blocked senders, in any form.
	for _, from := range []string{"a@spam.example", "A@SPAM.example", "a+b@spam.example", "a%spam.example@relay.example", `"a"@spam.example`} {
		try("mail from "+from, "/v1/inboxes/"+in.ID+"/simulate", `{"from":`+text(from)+`}`, as(s.key))
	}
	n++
	asked := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"from":"a@odd.example","subject":"SecretWord 123456","text":"Your code is 123456"}`).
		want(t, http.StatusCreated)
	held := asked.str(t, "id")
	for _, path := range []string{
		messages, "/v1/messages", "/v1/messages?q=SecretWord", "/v1/inboxes/" + in.ID + "/threads", "/v1/events", messages + "/wait?timeout=1&has=code",
		"/v1/messages/" + held, "/v1/messages/" + held + "?view=code", "/v1/messages/" + held + "/raw",
		"/v1/threads/" + asked.str(t, "thread_id"), "/v1/messages?status=received&include=text", "/v1/messages?thread_id=" + asked.str(t, "thread_id"),
		"/v1/messages?status=quarantined&include=text", "/v1/messages?status=quarantined&q=SecretWord", "/v1/messages?status=quarantined&inbox_id=" + in.ID,
	} {
		n++
		if res := s.do(t, http.MethodGet, path, "", second, broken); strings.Contains(string(res.body), "SecretWord") || strings.Contains(string(res.body), "123456") {
			t.Errorf("%s shows the message in quarantine: %s", path, res.body)
		}
	}
	try("reply to quarantine", "/v1/messages/"+held+"/reply", `{"text":"t"}`, as(s.key))
	try("release without admin", "/v1/messages/"+held+"/release", "", agent)
	for _, by := range []option{second, agent, as(s.newKey(t, scopes("codes:read", "read")))} {
		s.do(t, http.MethodGet, "/v1/messages?status=quarantined", "", by).wantError(t, http.StatusForbidden, "insufficient_scope status")
	}
	if done, err := s.callTool(t.Context(), t, secondKey, "search_messages", `{"status":"quarantined"}`); err != nil || done != "insufficient_scope" {
		t.Errorf("a search for quarantine over MCP: %s, %v", done, err)
	}
	s.do(t, http.MethodGet, "/v1/messages?status=quarantined", "", as(s.newKey(t, scopes("admin"), onlyInboxes(other.ID)))).want(t, http.StatusOK).wantAt(t, "data", `[]`)
	s.do(t, http.MethodGet, "/v1/messages?status=quarantined", "").wantText(t, held)
	at := s.smtp(t, nil)
	_ = deliverAt(at, "From: a@spam.example\nSubject: SecretWord\n\nt\n", in.Address)
	for from, want := range map[string]string{"A@odd.example": "quarantined", "*@spam.example": "blocked", "*@*.spam.example": "not_arrived"} {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"diagnose_delivery","arguments":{"inbox_id":"` + in.ID + `","from":"` + from + `"}}}`
		said := string(s.do(t, http.MethodPost, "/mcp", call, second, broken).want(t, http.StatusOK).body)
		if !strings.Contains(said, `"verdict":"`+want+`"`) || strings.Contains(said, "does not filter") || strings.Contains(said, "SecretWord") {
			t.Errorf("the diagnosis of mail from %q: %s", from, said)
		}
	}
	s.do(t, http.MethodPost, "/v1/messages/"+held+"/release", "").want(t, http.StatusOK)
	s.do(t, http.MethodGet, messages+"/wait?timeout=1&has=code", "").wantText(t, held)

	if n < 50 {
		t.Errorf("only %d ways", n)
	}
	sent := s.texts(t, `SELECT r.email FROM recipients r WHERE r.status <> 'failed'`)
	for _, to := range sent {
		if !slices.Contains([]string{"ok@out.example"}, to) {
			t.Errorf("sent to %s", to)
		}
	}
	t.Logf("%d ways, %d sent", n, len(sent))
}
