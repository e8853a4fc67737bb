package contract_test

import (
	"errors"
	"net/http"
	"net/smtp"
	"net/textproto"
	"strings"
	"testing"
)

// inboxes creates and deletes an inbox and checks that its address is never
// reused.
func inboxes(t *testing.T, w *world) {
	create := w.call("createInbox")
	in := read[inbox](t, w.send(t, create.saying(`{"name":"Taken"}`)).want(t, http.StatusCreated))
	if in.Address != "taken@"+mailDomain {
		t.Errorf("address %q", in.Address)
	}
	w.send(t, create.saying(`{"name":"taken"}`)).wantCode(t, http.StatusConflict, "address_taken")
	w.send(t, create.saying(`{"domain":"example.net"}`)).wantCode(t, http.StatusForbidden, "domain_not_verified")
	narrow := w.newKey(t, `"inbox_ids":["`+w.inbox.ID+`"]`)
	w.send(t, create.as(narrow.Key).saying(`{}`)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	w.send(t, w.call("getInbox").as(narrow.Key).at("/v1/inboxes/"+in.ID)).wantCode(t, http.StatusNotFound, "not_found")

	aliases := w.call("updateInbox").at("/v1/inboxes/" + in.ID)
	w.send(t, aliases.saying(`{"aliases":["Also-Taken"]}`)).want(t, http.StatusOK)
	name, _, _ := strings.Cut(w.inbox.Address, "@")
	w.send(t, aliases.saying(`{"aliases":["also-taken","taken-too","`+name+`"]}`)).wantCode(t, http.StatusConflict, "address_taken")
	w.send(t, create.saying(`{"name":"also-taken"}`)).wantCode(t, http.StatusConflict, "address_taken")

	m := w.receive(t, in)
	w.send(t, w.call("deleteInbox").at("/v1/inboxes/"+in.ID)).want(t, http.StatusOK)
	for id, path := range map[string]string{
		"getInbox":          "/v1/inboxes/" + in.ID,
		"deleteInbox":       "/v1/inboxes/" + in.ID,
		"listInboxMessages": "/v1/inboxes/" + in.ID + "/messages",
		"waitForMessage":    "/v1/inboxes/" + in.ID + "/messages/wait",
		"getMessage":        "/v1/messages/" + m.ID,
		"getMessageRaw":     "/v1/messages/" + m.ID + "/raw",
		"getAttachment":     "/v1/messages/" + m.ID + "/attachments/" + m.Attachments[0].ID,
	} {
		w.send(t, w.call(id).at(path)).wantCode(t, http.StatusNotFound, "not_found")
	}
	w.send(t, create.saying(`{"name":"taken"}`)).wantCode(t, http.StatusConflict, "address_taken")

	err := smtp.SendMail(w.smtp, nil, "ana@example.org", []string{in.Address}, []byte("Subject: Late\r\n\r\nHello\r\n"))
	var refused *textproto.Error
	if !errors.As(err, &refused) || refused.Code != 550 {
		t.Errorf("mail to a deleted inbox: got %v, want 550", err)
	}
}
