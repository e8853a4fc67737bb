package contract_test

import (
	"net/http"
	"testing"
)

// email has the email fields that the tests read.
type email struct {
	ID      string  `json:"id"`
	Status  string  `json:"status"`
	BatchID *string `json:"batch_id"`
}

const emailFrom = "hello@" + mailDomain

// newScheduled creates an email scheduled for tomorrow and returns its id.
func (w *world) newScheduled(t *testing.T) string {
	t.Helper()
	c := w.call("sendEmail").saying(`{"from":"` + emailFrom + `","to":"ana@example.org","subject":"s","text":"t","scheduledAt":"` + tomorrow() + `"}`)
	return read[email](t, w.send(t, c).want(t, http.StatusCreated)).ID
}

// overLimits sends over limits that refuse, and over limits that ask for approval.
func overLimits(t *testing.T, w *world) {
	in := w.newInbox(t)
	send := w.call("sendEmail").saying(`{"from":"` + in.Address + `","to":"ana@example.org","subject":"s","text":"t"}`)
	w.send(t, send.as(w.newKey(t, `"limits":{"sends_per_day":0}`).Key)).wantCode(t, http.StatusTooManyRequests, "budget_exceeded")
	ask := w.newKey(t, `"limits":{"new_recipients_per_day":0,"on_limit":"approval"}`)
	w.send(t, send.as(ask.Key)).want(t, http.StatusAccepted)
	batch := w.call("sendEmailBatch").as(ask.Key).saying(`{"from":"` + in.Address + `","recipients":[{"to":"ana@example.org"}],"subject":"s","text":"t"}`)
	w.send(t, batch).want(t, http.StatusCreated)
}

// stops stops the account, an inbox and a key, and lets them send again.
func stops(t *testing.T, w *world) {
	in, k := w.newInbox(t), w.newKey(t, "")
	send := w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages").saying(`{"to":"ana@example.org","subject":"s","text":"t"}`).as(k.Key)
	for _, scope := range []string{`{}`, `{"inbox_id":"` + in.ID + `"}`, `{"key_id":"` + k.ID + `"}`} {
		w.send(t, w.call("stopSending").saying(scope)).want(t, http.StatusOK)
		w.send(t, w.call("stopSending").saying(scope)).want(t, http.StatusOK)
		w.send(t, send).wantCode(t, http.StatusForbidden, "sending_stopped")
		w.send(t, w.call("getUsage")).want(t, http.StatusOK)
		w.send(t, w.call("resumeSending").saying(scope)).want(t, http.StatusOK)
		w.send(t, send).want(t, http.StatusCreated)
	}
	for _, scope := range []string{`{"inbox_id":"ibx_none"}`, `{"key_id":"key_none"}`} {
		w.send(t, w.call("stopSending").saying(scope)).want(t, http.StatusNotFound)
		w.send(t, w.call("resumeSending").saying(scope)).want(t, http.StatusNotFound)
	}
}

// newQuarantined returns a message that a list put into quarantine.
func (w *world) newQuarantined(t *testing.T) message {
	t.Helper()
	in := w.inbox
	entry := `{"direction":"inbound","action":"approve","pattern":"*@stranger.example","inbox_id":"` + in.ID + `"}`
	w.send(t, w.call("createListEntry").saying(entry)).want(t, http.StatusCreated)
	c := w.call("simulateMessage").at("/v1/inboxes/" + in.ID + "/simulate").saying(`{"from":"a@stranger.example","subject":"s","text":"t"}`)
	return read[message](t, w.send(t, c).want(t, http.StatusCreated))
}

// newClaimed returns a message with a claim, whose token is 1.
func (w *world) newClaimed(t *testing.T) message {
	t.Helper()
	m := w.simulate(t, w.inbox)
	w.send(t, w.call("claimMessage").saying(`{"inbox_id":"`+m.InboxID+`","thread_id":"`+m.ThreadID+`"}`)).want(t, http.StatusOK)
	return m
}

// claims says with an old token that a message is done.
func claims(t *testing.T, w *world) {
	c := w.call("updateClaim").at("/v1/messages/" + w.newClaimed(t).ID + "/claim")
	w.send(t, c.saying(`{"token":1,"action":"release"}`)).want(t, http.StatusOK)
	w.send(t, c.saying(`{"token":1,"action":"done"}`)).wantCode(t, http.StatusConflict, "claim_lost")
	w.send(t, w.call("updateThread").at("/v1/threads/thr_none").saying(`{}`)).want(t, http.StatusNotFound)
	w.send(t, w.call("claimMessage").saying(`{"inbox_id":"ibx_none"}`)).want(t, http.StatusNotFound)
}

// quarantine releases a message and drops another.
func quarantine(t *testing.T, w *world) {
	m := w.newQuarantined(t)
	path := "/v1/messages/" + m.ID
	w.send(t, w.call("getMessage").at(path)).want(t, http.StatusOK)
	w.send(t, w.call("getMessage").at(path).as(w.newKey(t, `"scopes":["read"]`).Key)).want(t, http.StatusNotFound)
	w.send(t, w.call("getMessageRaw").at(path+"/raw")).want(t, http.StatusNotFound)
	w.send(t, w.call("listMessages").asking("status", "quarantined")).want(t, http.StatusOK)
	release := w.call("releaseMessage").at(path + "/release")
	w.send(t, release).want(t, http.StatusOK)
	w.send(t, release).want(t, http.StatusNotFound)
	w.send(t, w.call("deleteMessage").at("/v1/messages/"+w.newQuarantined(t).ID)).want(t, http.StatusOK)
}

// listEntries blocks a recipient and asks about another.
func listEntries(t *testing.T, w *world) {
	in := w.newInbox(t)
	send := w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages")
	add := func(action, pattern, more string) call {
		return w.call("createListEntry").saying(`{"direction":"outbound","action":"` + action + `","pattern":"` + pattern + `"` + more + `}`)
	}
	ofInbox := `,"inbox_id":"` + in.ID + `"`
	blocked := read[struct{ ID string }](t, w.send(t, add("block", "*@no.example", ofInbox)).want(t, http.StatusCreated))
	w.send(t, add("approve", "*@*.ask.example", ofInbox)).want(t, http.StatusCreated)
	w.send(t, send.saying(`{"to":"a@no.example","subject":"s","text":"t"}`)).wantCode(t, http.StatusForbidden, "recipient_blocked")
	w.send(t, send.saying(`{"to":"a@x.ask.example","subject":"s","text":"t"}`)).want(t, http.StatusAccepted)
	w.send(t, w.call("listListEntries")).want(t, http.StatusOK)
	narrow := w.newKey(t, `"scopes":["send"],"inbox_ids":["`+in.ID+`"]`).Key
	w.send(t, add("allow", "a@no.example", ofInbox).as(narrow)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	w.send(t, add("block", "a@no.example", "").as(narrow)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	w.send(t, add("block", "a b", "")).wantCode(t, http.StatusBadRequest, "invalid_request")
	w.send(t, add("block", "a@no.example", `,"inbox_id":"ibx_none"`)).want(t, http.StatusNotFound)
	gone := w.call("deleteListEntry").at("/v1/lists/" + blocked.ID)
	w.send(t, gone).want(t, http.StatusOK)
	w.send(t, gone).want(t, http.StatusNotFound)
	w.send(t, send.saying(`{"to":"a@no.example","subject":"s","text":"t"}`)).want(t, http.StatusCreated)
}

// emails sends, schedules, cancels and lists emails.
func emails(t *testing.T, w *world) {
	send := func(fields string) response {
		t.Helper()
		return w.send(t, w.call("sendEmail").saying(`{"from":"`+emailFrom+`","to":"ana@example.org","subject":"s","text":"t"`+fields+`}`))
	}
	one := read[email](t, send(`,"tags":{"contract":"one"}`).want(t, http.StatusCreated))
	path := "/v1/emails/" + w.newScheduled(t)
	get, cancel := w.call("getEmail").at(path), w.call("cancelEmail").at(path)
	move := w.call("rescheduleEmail").at(path).saying(`{"scheduledAt":"` + tomorrow() + `"}`)
	w.send(t, move).want(t, http.StatusOK)
	w.send(t, move.saying(`{"scheduledAt":"2099-01-01T00:00:00Z"}`)).wantCode(t, http.StatusBadRequest, "invalid_request")
	if got := read[email](t, w.send(t, cancel).want(t, http.StatusOK)); got.Status != "cancelled" {
		t.Errorf("cancelled: %+v", got)
	}
	w.send(t, cancel).wantCode(t, http.StatusConflict, "not_cancellable")
	w.send(t, move).wantCode(t, http.StatusConflict, "not_cancellable")
	w.send(t, get).want(t, http.StatusOK)
	w.send(t, w.call("cancelEmail").at("/v1/emails/"+one.ID)).wantCode(t, http.StatusConflict, "not_cancellable")

	stray := `{"from":"hello@example.net","subject":"s","text":"t","to":"ana@example.org"}`
	w.send(t, w.call("sendEmail").saying(stray)).wantCode(t, http.StatusForbidden, "domain_not_verified")
	list := w.call("listEmails")
	if got := read[page](t, w.send(t, list.asking("tag", "contract:one")).want(t, http.StatusOK)); len(got.Data) != 1 || got.Data[0].ID != one.ID {
		t.Errorf("by tag: %+v", got)
	}
	narrow := w.newKey(t, `"inbox_ids":["`+w.inbox.ID+`"]`).Key
	w.send(t, get.as(narrow)).wantCode(t, http.StatusNotFound, "not_found")
	if got := read[page](t, w.send(t, list.as(narrow)).want(t, http.StatusOK)); len(got.Data) != 0 {
		t.Errorf("a key of an inbox sees %+v", got)
	}
}
