package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/store/storetest"
)

// TestMCP tests agents that use only MCP, over a real socket, with the client
// of the official SDK (H18).
func TestMCP(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e storetest.Engine) {
		in := start(t, e, newChecker(t), "POSTROOM_RATE_LIMITS=off")
		w := newWorld(t, in)
		for _, step := range []struct {
			name string
			run  func(t *testing.T, w *world)
		}{
			{"tools are described completely", describedTools},
			{"an agent's story", agentStory},
			{"codes without the message", codesByMCP},
			{"a key has the same permissions over MCP and REST (H18)", sameRights},
			{"a key of some inboxes sees the tools that it may use", limitedByMCP},
			{"resources of other accounts are not found", othersByMCP},
			{"hostile texts as arguments (H18)", hostileArguments},
			{"hostile mail (H18)", hostileMail},
			{"a repeated send has one effect", repeatedSends},
			{"a wait reports its progress", reportsProgress},
			{"a default inbox", defaultInbox},
			{"inboxes by name", inboxesByName},
			{"diagnoses", diagnoses},
			{"templates and limits", otherTools},
		} {
			t.Run(step.name, func(t *testing.T) { step.run(t, w) })
		}
	})
}

// agentStory: an agent creates an inbox, waits for a message over SMTP, reads
// the code and replies. A key with the scope approves the reply.
func agentStory(t *testing.T, w *world) {
	ai := w.agentWith(t, w.scoped(t, "read", "send").Key, "")
	made := ai.use(t, "create_inbox", map[string]any{"display_name": "Signup", "send_policy": "approval"}).want(t)
	inbox, address := made.at(t, "id"), made.at(t, "address")

	came := make(chan said, 1)
	go func() {
		came <- ai.use(t, "wait_for_email", map[string]any{"inbox_id": inbox, "has": "code", "timeout": 55})
	}()
	w.deliver(t, address)
	mail := (<-came).want(t).wantText(t, "Code: 482913", "ana@example.org")
	if got := mail.at(t, "message", "extracted", "otp"); got != "482913" {
		t.Errorf("the code is %q", got)
	}
	id := mail.at(t, "message", "id")
	ai.use(t, "get_message", map[string]any{"message_id": id}).want(t).wantText(t, "Your sign-in code is 482913.", "order.pdf", "https://app.example.org/confirm?token=abc")

	draft := ai.use(t, "reply", map[string]any{"message_id": id, "text": "Done."}).want(t).wantText(t, "Not sent yet")
	if draft.at(t, "object") != "draft" || draft.at(t, "status") != "pending" {
		t.Errorf("a reply under approval: %v", draft.data)
	}
	listed := ai.use(t, "list_drafts", map[string]any{"status": "pending", "inbox_id": inbox}).want(t)
	if got := listed.at(t, "data", "id"); got != draft.at(t, "id") {
		t.Errorf("the queue has %s, want %s", got, draft.at(t, "id"))
	}
	decide := map[string]any{"draft_id": draft.at(t, "id"), "version": 1}
	ai.use(t, "approve_draft", decide).wantRefused(t, "insufficient_scope")

	admin := w.agentWith(t, w.scoped(t, "admin").Key, "")
	admin.use(t, "get_draft", map[string]any{"draft_id": draft.at(t, "id")}).want(t).wantText(t, "Done.")
	sent := admin.use(t, "approve_draft", decide).want(t).wantText(t, "Accepted for delivery")
	if sent.at(t, "object") != "message" || sent.at(t, "thread_id") != mail.at(t, "message", "thread_id") {
		t.Errorf("approved: %v", sent.data)
	}
	thread := ai.use(t, "get_thread", map[string]any{"inbox_id": inbox, "thread_id": sent.at(t, "thread_id")}).want(t)
	thread.wantText(t, "2 message(s)", "Your sign-in code", "Done.")
	ai.use(t, "list_threads", map[string]any{"inbox_id": inbox}).want(t).wantText(t, sent.at(t, "thread_id"))
	ai.use(t, "search_messages", map[string]any{"q": "sign-in", "inbox_id": inbox}).want(t).wantText(t, id)
	at := w.agentWith(t, firstKey, "").use(t, "get_attachment", map[string]any{"message_id": w.in.ID, "attachment_id": w.in.Attachments[0].ID})
	if !strings.HasPrefix(at.want(t).at(t, "download_url"), "http") {
		t.Errorf("an attachment: %v", at.data)
	}

	second := ai.use(t, "forward", map[string]any{"message_id": id, "to": "bob@example.org"}).want(t)
	admin.use(t, "reject_draft", map[string]any{"draft_id": second.at(t, "id"), "reason": "no"}).want(t)
	admin.use(t, "approve_draft", map[string]any{"draft_id": second.at(t, "id")}).wantRefused(t, "draft_not_pending")
}

// codesByMCP: a key with codes:read sees one tool, gets each code once and nothing
// else of the message, also from a second session.
func codesByMCP(t *testing.T, w *world) {
	in := w.newInbox(t)
	key := w.scoped(t, "codes:read").Key
	ai := w.agentWith(t, key, "")
	list, err := ai.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "wait_for_code" {
		t.Fatalf("shown %+v: %v", list.Tools, err)
	}
	args := map[string]any{"inbox_id": in.ID, "timeout": 55}
	w.deliver(t, in.Address)
	first := ai.use(t, "wait_for_code", args).want(t)
	if got := first.at(t, "code", "otp"); got != "482913" {
		t.Errorf("the code is %q", got)
	}
	for _, said := range []string{"sign-in", "Your", "order.pdf", "untrusted_email"} {
		if strings.Contains(first.text, said) {
			t.Errorf("the result has %q: %s", said, first.text)
		}
	}
	args["timeout"] = 1
	again := w.agentWith(t, key, "")
	if out := again.use(t, "wait_for_code", args).want(t); out.data["timed_out"] != true {
		t.Errorf("the code came twice: %s", out.text)
	}
	w.deliver(t, in.Address)
	args["timeout"] = 55
	if second := again.use(t, "wait_for_code", args).want(t); second.at(t, "code", "message_id") == first.at(t, "code", "message_id") {
		t.Errorf("not the second message: %s", second.text)
	}
	ai.use(t, "wait_for_email", args).wantRefused(t, "insufficient_scope")
	ai.use(t, "get_message", map[string]any{"message_id": first.at(t, "code", "message_id")}).wantRefused(t, "insufficient_scope")
}

// describedTools checks what clients show and validate: names, hints and
// schemas.
func describedTools(t *testing.T, w *world) {
	list, err := w.agentWith(t, firstKey, "").ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		in, _ := tool.InputSchema.(map[string]any)
		switch {
		case tool.Title == "" || tool.Description == "" || tool.Annotations == nil:
			t.Errorf("%s lacks words: %+v", tool.Name, tool)
		case in["type"] != "object" || in["additionalProperties"] != false || in["anyOf"] != nil || in["oneOf"] != nil || in["allOf"] != nil:
			t.Errorf("%s takes %v", tool.Name, in)
		case tool.OutputSchema != nil:
			t.Errorf("%s lists an output schema, which costs tokens", tool.Name)
		case strings.Contains(fmt.Sprint(in), "$ref"):
			t.Errorf("%s refers to a tool that does not exist", tool.Name)
		}
		_, known := restOf[tool.Name]
		if reads := known && restOf[tool.Name].reads; tool.Annotations != nil && tool.Annotations.ReadOnlyHint != reads {
			t.Errorf("%s: readOnlyHint %t", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	if len(names) != len(restOf) {
		t.Errorf("%d tools: %v", len(names), names)
	}
}

// repeatedSends: equal sends within 10 seconds have one effect, even at the
// same time. Explicit idempotency keys take precedence.
func repeatedSends(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "")
	args := map[string]any{"inbox_id": w.inbox.ID, "to": "twice@example.org", "subject": "Twice", "text": "Once."}
	ids := make(chan string, 4)
	for range cap(ids) {
		go func() { ids <- ai.use(t, "send_email", args).at(t, "id") }()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("a repeat became another message: %s and %s", first, id)
		}
	}
	args["text"] = "Twice."
	if ai.use(t, "send_email", args).want(t).at(t, "id") == first {
		t.Error("another text counted as a repeat")
	}
	args["idempotency_key"] = "k1"
	keyed := ai.use(t, "send_email", args).want(t).at(t, "id")
	if again := ai.use(t, "send_email", args).want(t).at(t, "id"); again != keyed || again == first {
		t.Errorf("under one key: %s and %s", keyed, again)
	}
	args["text"] = "Another."
	ai.use(t, "send_email", args).wantRefused(t, "idempotency_key_reused")
	other := w.agentWith(t, w.newKey(t, "").Key, "")
	delete(args, "idempotency_key")
	args["text"] = "Once."
	if other.use(t, "send_email", args).want(t).at(t, "id") == first {
		t.Error("the call of another key counted as a repeat")
	}
	one := ai.use(t, "create_inbox", map[string]any{}).want(t).at(t, "id")
	if ai.use(t, "create_inbox", map[string]any{}).want(t).at(t, "id") == one {
		t.Error("two inboxes were requested, but one was created")
	}
}

// reportsProgress: a client that sends a token receives progress of the wait.
func reportsProgress(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "?inbox_id="+w.inbox.ID)
	params := &mcp.CallToolParams{Name: "wait_for_email", Arguments: map[string]any{"timeout": 1, "since": "2040-01-01T00:00:00Z"}}
	params.SetProgressToken("t1")
	before := time.Now()
	if out := ai.useWith(t, params).want(t).wantText(t, "No matching message since"); out.data["timed_out"] != true {
		t.Errorf("result %v", out.data)
	}
	if waited := time.Since(before); waited < time.Second {
		t.Errorf("waited %v of 1 s", waited)
	}
	if progress := <-ai.progress; progress.ProgressToken != "t1" || progress.Total != 1 {
		t.Errorf("progress %+v", progress)
	}
	ai.use(t, "wait_for_email", map[string]any{"timeout": 56}).wantRefused(t, "invalid_request")
	ai.use(t, "wait_for_email", map[string]any{"timeout": 0}).wantRefused(t, "invalid_request")
}

// defaultInbox: tools use the inbox in the URL by default.
func defaultInbox(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "?inbox_id="+w.inbox.ID)
	list, err := ai.ListTools(t.Context(), nil)
	must(t, err)
	for _, tool := range list.Tools {
		in, _ := tool.InputSchema.(map[string]any)
		if strings.Contains(fmt.Sprint(in["required"]), "inbox_id") {
			t.Errorf("%s still requires inbox_id: %v", tool.Name, in["required"])
		}
	}
	ai.use(t, "list_threads", nil).want(t).wantText(t, w.inbox.ID)
	ai.use(t, "list_threads", map[string]any{"inbox_id": w.guarded.ID}).want(t)
	w.agentWith(t, firstKey, "").use(t, "list_threads", nil).wantRefused(t, "invalid_request")
	w.agentWith(t, firstKey, "?inbox_id=ibx_00000000000000000000000000").use(t, "list_threads", nil).wantRefused(t, "not_found")
}

// inboxesByName: a tool takes the address of an inbox, an alias, or the beginning of
// its id, and an error names what was not found.
func inboxesByName(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "")
	for _, name := range []string{w.inbox.Address, strings.ToUpper(w.inbox.Address), w.inbox.ID[:19], w.inbox.ID} {
		ai.use(t, "list_threads", map[string]any{"inbox_id": name}).want(t).wantText(t, w.inbox.ID)
		w.agentWith(t, firstKey, "?inbox_id="+url.QueryEscape(name)).use(t, "list_threads", nil).want(t).wantText(t, w.inbox.ID)
	}
	out := ai.use(t, "send_email", map[string]any{"inbox_id": w.inbox.Address, "to": "Ana <ana@example.org>", "subject": "Named", "text": "t"}).want(t)
	if got := out.at(t, "inbox_id"); got != w.inbox.ID {
		t.Errorf("sent from %s, want %s", got, w.inbox.ID)
	}
	ai.use(t, "list_threads", map[string]any{"inbox_id": "ibx_"}).wantRefused(t, "invalid_request")
	mistyped := typo(w.inbox.ID)
	for tool, args := range map[string]map[string]any{
		mistyped + " looks mistyped: its check character does not match":              {"inbox_id": mistyped},
		typo(w.in.ID) + " looks mistyped: its check character does not match":         {"message_id": typo(w.in.ID)},
		"inbox missing@example.org not found":                                         {"inbox_id": "missing@example.org"},
		"inbox ibx_none not found":                                                    {"inbox_id": "ibx_none"},
		"thread thr_01k5tt9h8yq4n0c3m2v7w6x5zd or inbox " + w.inbox.ID + " not found": {"inbox_id": w.inbox.ID, "thread_id": "thr_01k5tt9h8yq4n0c3m2v7w6x5zd"},
		"message msg_01k5tt9h8yq4n0c3m2v7w6x5zd not found, or this key has no access": {"message_id": "msg_01k5tt9h8yq4n0c3m2v7w6x5zd"},
	} {
		name := "list_threads"
		if args["thread_id"] != nil {
			name = "get_thread"
		} else if args["message_id"] != nil {
			name = "get_message"
		}
		out := ai.use(t, name, args)
		out.wantRefused(t, "not_found")
		out.wantText(t, tool)
	}
	bound := w.agentWith(t, w.newKey(t, `"scopes":["*"],"inbox_ids":["`+w.guarded.ID+`"]`).Key, "")
	bound.use(t, "list_threads", map[string]any{"inbox_id": w.inbox.Address}).wantRefused(t, "not_found")
	bound.use(t, "list_threads", map[string]any{"inbox_id": w.guarded.Address}).want(t)
	blind := w.agentWith(t, w.newKey(t, `"mode":"restricted","scopes":["codes:read"]`).Key, "")
	blind.use(t, "wait_for_code", map[string]any{"inbox_id": w.inbox.Address, "timeout": 1}).wantRefused(t, "insufficient_scope")
}

// typo returns an id with two exchanged characters.
func typo(id string) string {
	b := []byte(id)
	i := len(b) - 1
	for b[i] == b[i-1] {
		i--
	}
	b[i], b[i-1] = b[i-1], b[i]
	return string(b)
}

// diagnoses checks that the tools explain what happened to a message.
func diagnoses(t *testing.T, w *world) {
	ai := w.agentWith(t, w.newKey(t, `"mode":"test"`).Key, "")
	for to, want := range map[string]string{"a+bounced@example.org": "not_arrived", "a@example.org": "arrived", "a+failed@example.org": "not_arrived"} {
		sent := ai.use(t, "send_email", map[string]any{"inbox_id": w.inbox.ID, "to": to, "subject": "s", "text": "t"}).want(t)
		w.wantSettled(t, "/v1/messages/"+sent.at(t, "id"))
		d := ai.use(t, "diagnose_delivery", map[string]any{"message_id": sent.at(t, "id")}).want(t)
		if got := d.at(t, "verdict"); got != want {
			t.Errorf("%s: %s, want %s\n%s", to, got, want, d.text)
		}
	}
	email := ai.use(t, "send_transactional", map[string]any{"from": "a@" + mailDomain, "to": "b+bounced@example.org", "subject": "s", "text": "t"}).want(t)
	w.wantSettled(t, "/v1/emails/"+email.at(t, "id"))
	ai.use(t, "diagnose_delivery", map[string]any{"email_id": email.at(t, "id")}).want(t).wantText(t, "not_arrived", "bounced", "test mode")
	ai.use(t, "diagnose_delivery", map[string]any{"message_id": w.in.ID}).want(t).wantText(t, "arrived", "authentication")
	ai.use(t, "diagnose_delivery", map[string]any{"inbox_id": w.inbox.ID, "from": "ana@example.org"}).want(t).wantText(t, "arrived", w.in.ID)
	ai.use(t, "diagnose_delivery", map[string]any{"inbox_id": w.guarded.ID, "from": "*@nowhere.example"}).want(t).
		wantText(t, "waits_for_approval", w.guarded.Address)
	held := ai.use(t, "send_transactional", map[string]any{"from": w.guarded.Address, "to": "b@example.org", "subject": "s", "text": "t"}).want(t)
	held.wantText(t, "Not sent yet", held.at(t, "id"))
	ai.use(t, "diagnose_delivery", nil).wantRefused(t, "invalid_request")
	ai.use(t, "diagnose_delivery", map[string]any{"message_id": "msg_00000000000000000000000000"}).wantRefused(t, "not_found")

	narrow := w.agentWith(t, w.scoped(t, "emails:read").Key, "")
	narrow.use(t, "diagnose_delivery", map[string]any{"email_id": email.at(t, "id")}).want(t).wantText(t, "limits: insufficient_scope")
	narrow.use(t, "diagnose_delivery", map[string]any{"message_id": w.in.ID}).wantRefused(t, "insufficient_scope")
}

// wantSettled waits until delivery has made its last change at path.
func (w *world) wantSettled(t *testing.T, path string) {
	t.Helper()
	again, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		a := w.send(t, w.call("getMessage").at(path)).want(t, http.StatusOK)
		if !onItsWay.Match(a.body) && !strings.Contains(string(a.body), `"status":"sent"`) {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("%s is on its way still", path)
		}
	}
}

func otherTools(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "")
	id := w.newTemplate(t)
	ai.use(t, "list_templates", nil).want(t).wantText(t, id)
	ai.use(t, "preview_template", map[string]any{"template_id": id, "data": map[string]any{"name": "<b>"}}).want(t)
	ai.use(t, "preview_template", map[string]any{"id": id, "data": map[string]any{}}).wantRefused(t, "invalid_request")
	ai.use(t, "get_usage", nil).want(t).wantText(t, `"plan"`)
	ai.use(t, "list_inboxes", map[string]any{"limit": 1}).want(t)

	entry := map[string]any{"direction": "outbound", "action": "block", "pattern": "*@mcp-blocked.example", "inbox_id": w.inbox.Address}
	ai.use(t, "add_list_entry", entry).want(t).wantText(t, "lst_")
	ai.use(t, "send_email", map[string]any{"inbox_id": w.inbox.ID, "to": "a@mcp-blocked.example", "subject": "s", "text": "t"}).wantRefused(t, "recipient_blocked")
}
