package contract_test

import (
	"net/http"
	"net/url"
	"testing"
)

// waysToSend returns a send, a reply, an answer to an invitation and a forward from an
// inbox that has received a message.
func (w *world) waysToSend(in inbox, m message, to string) map[string]call {
	return map[string]call{
		"send":    w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages").saying(`{"to":"` + to + `","subject":"s","text":"t"}`),
		"reply":   w.call("replyToMessage").at("/v1/messages/" + m.ID + "/reply").saying(`{"text":"t","cc":"` + to + `"}`),
		"answer":  w.call("replyToInvitation").at("/v1/messages/" + m.ID + "/calendar/reply").saying(`{"response":"accept"}`),
		"forward": w.call("forwardMessage").at("/v1/messages/" + m.ID + "/forward").saying(`{"to":"` + to + `"}`),
	}
}

// approval makes drafts of what an inbox sends.
func approval(t *testing.T, w *world) {
	guarded := w.newInboxWith(t, `{"send_policy":"approval"}`)
	for _, c := range w.waysToSend(guarded, w.receive(t, guarded), "stranger@example.net") {
		w.send(t, c).want(t, http.StatusAccepted)
		w.send(t, c.with(idempotencyKey, "once")).want(t, http.StatusAccepted)
		a := w.send(t, c.with(idempotencyKey, "once")).want(t, http.StatusAccepted)
		if a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: a repeat is not marked as one", a.call)
		}
	}
}

// drafts edits, sends and rejects drafts, and tries to change them afterwards.
func drafts(t *testing.T, w *world) {
	d := w.newDraft(t)
	path := "/v1/drafts/" + d.ID
	get, edit := w.call("getDraft").at(path), w.call("updateDraft").at(path)
	send, reject := w.call("sendDraft").at(path+"/send"), w.call("rejectDraft").at(path+"/reject")

	w.send(t, edit.saying(`{"text":null}`)).wantCode(t, http.StatusBadRequest, "content_required")
	w.send(t, edit.saying(`{"html":"<p>Please.</p>","text":null}`)).want(t, http.StatusOK)
	w.send(t, send.saying(`{"version":2}`)).wantCode(t, http.StatusConflict, "draft_changed")
	w.send(t, send.as(w.scoped(t, "send").Key)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	narrow := w.newKey(t, `"inbox_ids":["`+w.inbox.ID+`"]`)
	file := w.call("getDraftAttachment").at(path + "/attachments/" + d.Attachments[0].ID)
	download := read[struct {
		URL string `json:"download_url"`
	}](t, w.send(t, file).want(t, http.StatusOK))
	link, err := url.Parse(download.URL)
	must(t, err)
	if got := w.send(t, w.call("downloadFile").at(link.EscapedPath()).as("")).want(t, http.StatusOK); string(got.body) != "x" {
		t.Errorf("the attachment of a draft: %q", got.body)
	}
	for _, c := range []call{get, edit.saying(`{}`), send, reject, file} {
		w.send(t, c.as(narrow.Key)).wantCode(t, http.StatusNotFound, "not_found")
	}
	m := read[message](t, w.send(t, send.saying(`{"version":3}`)).want(t, http.StatusCreated))
	if got := read[draft](t, w.send(t, get).want(t, http.StatusOK)); got.Status != "sent" || got.MessageID == nil || *got.MessageID != m.ID {
		t.Errorf("a sent draft: %+v", got)
	}
	for _, c := range []call{edit.saying(`{"text":"Late."}`), send, reject} {
		w.send(t, c).wantCode(t, http.StatusConflict, "draft_not_pending")
	}

	d = w.newDraft(t)
	w.send(t, w.call("rejectDraft").at("/v1/drafts/"+d.ID+"/reject").saying(`{"reason":"No."}`)).want(t, http.StatusOK)
	w.send(t, w.call("undoDraft").at("/v1/drafts/"+d.ID+"/undo")).wantCode(t, http.StatusConflict, "draft_not_pending")
	w.send(t, w.call("sendDraft").at("/v1/drafts/"+d.ID+"/send")).wantCode(t, http.StatusConflict, "draft_not_pending")

	d = w.newDraft(t)
	w.deleteDraftContent(t.Context(), t, d.ID)
	if got := read[draft](t, w.send(t, w.call("getDraft").at("/v1/drafts/"+d.ID)).want(t, http.StatusOK)); !got.Expired || got.Status != "pending" {
		t.Errorf("an expired draft: %+v", got)
	}
	w.send(t, w.call("sendDraft").at("/v1/drafts/"+d.ID+"/send")).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("updateDraft").at("/v1/drafts/"+d.ID).saying(`{"text":"t"}`)).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("getDraftAttachment").at("/v1/drafts/"+d.ID+"/attachments/"+d.Attachments[0].ID)).wantCode(t, http.StatusGone, "message_expired")
}

// deletedMessages checks that deleted messages are gone, with everything that
// belongs to them.
func deletedMessages(t *testing.T, w *world) {
	m := w.receive(t, w.newInbox(t))
	link := w.linkOf(t, m)
	path := "/v1/messages/" + m.ID
	w.send(t, w.call("deleteMessage").at(path).as(w.scoped(t, "send").Key)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	w.send(t, w.call("deleteMessage").at(path)).want(t, http.StatusOK)
	for id, path := range map[string]string{
		"deleteMessage": path,
		"getMessage":    path,
		"getMessageRaw": path + "/raw",
		"getAttachment": path + "/attachments/" + m.Attachments[0].ID,
		"downloadFile":  link,
	} {
		w.send(t, w.call(id).at(path)).wantCode(t, http.StatusNotFound, "not_found")
	}
	w.send(t, w.call("replyToMessage").at(path+"/reply").saying(`{"text":"t"}`)).wantCode(t, http.StatusNotFound, "not_found")
	w.send(t, w.call("replyToInvitation").at(path+"/calendar/reply").saying(`{"response":"decline"}`)).wantCode(t, http.StatusNotFound, "not_found")

	// A repeated request does nothing again after the deletion of what it created.
	in := w.newInbox(t)
	calls := w.waysToSend(in, w.receive(t, in), "stranger@example.net")
	calls["simulate"] = w.call("simulateMessage").at("/v1/inboxes/" + in.ID + "/simulate").saying(`{"from":"ana@example.org"}`)
	for _, c := range calls {
		c = c.with(idempotencyKey, "deleted")
		m := read[message](t, w.send(t, c).want(t, http.StatusCreated))
		w.send(t, w.call("deleteMessage").at("/v1/messages/"+m.ID)).want(t, http.StatusOK)
		w.send(t, c).wantCode(t, http.StatusGone, "message_expired")
	}
	guarded := w.newInboxWith(t, `{"send_policy":"approval"}`)
	m = w.receive(t, guarded)
	d := read[draft](t, w.send(t, w.waysToSend(guarded, m, "stranger@example.net")["forward"]).want(t, http.StatusAccepted))
	reject := w.call("rejectDraft").at("/v1/drafts/"+d.ID+"/reject").with(idempotencyKey, "deleted")
	w.send(t, reject).want(t, http.StatusOK)
	w.send(t, w.call("deleteMessage").at("/v1/messages/"+m.ID)).want(t, http.StatusOK)
	w.send(t, reject).wantCode(t, http.StatusGone, "message_expired")
}

// simulate stores a simulated message in the inbox.
func (w *world) simulate(t *testing.T, in inbox) message {
	t.Helper()
	c := w.call("simulateMessage").at("/v1/inboxes/" + in.ID + "/simulate").saying(`{"from":"ana@example.org","subject":"Code 771204"}`)
	return read[message](t, w.send(t, c).want(t, http.StatusCreated))
}

// simulatedMessages checks that simulated messages look like received ones.
func simulatedMessages(t *testing.T, w *world) {
	in := w.newInbox(t)
	m := w.simulate(t, in)
	wait := w.call("waitForMessage").at("/v1/inboxes/"+in.ID+"/messages/wait").asking("has", "code")
	got := read[struct {
		Message *struct {
			ID       string `json:"id"`
			TestMode bool   `json:"test_mode"`
		} `json:"message"`
	}](t, w.send(t, wait).want(t, http.StatusOK))
	if got.Message == nil || got.Message.ID != m.ID || !got.Message.TestMode {
		t.Errorf("waited for %s, got %+v", m.ID, got.Message)
	}
	simulate := w.call("simulateMessage").at("/v1/inboxes/" + in.ID + "/simulate")
	loop := `{"raw":"From: a@example.org\n`
	for range 51 {
		loop += `Received: x\n`
	}
	w.send(t, simulate.saying(loop+`\nHello"}`)).wantCode(t, http.StatusBadRequest, "invalid_request")
	w.send(t, simulate.saying(`{"raw":"From: a@example.org\n\nHello","text":"t"}`).breaking()).wantCode(t, http.StatusBadRequest, "invalid_request")
}
