package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestSendersOnTheSharedDomain sends emails from addresses on the mail domain of the
// installation. The first account uses any address that is not another account's
// inbox. Every other account uses those of its own inboxes.
func TestSendersOnTheSharedDomain(t *testing.T) {
	s := serve(t)
	mine := s.newInbox(t)
	first := as(s.key)
	s.account = storetest.Account(t, s.store).Seq
	second, theirs := as(s.newKey(t)), s.newInbox(t)
	suspect := s.newInbox(t, func(in *store.Inbox) { in.Address = "bounce@" + mailDomain }) // older than the reservation of the name
	send := func(from string, key option) response {
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+from+`","to":"ann@out.example","subject":"s","text":"t"}`, key)
	}
	batch := func(from string, key option) response {
		return s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+from+`","recipients":[{"to":"ann@out.example"}],"subject":"s","text":"t"}`, key)
	}
	for _, name := range []string{
		"postmaster", "abuse", "security", "admin", "root", "mailer-daemon", "hostmaster", "webmaster", "noreply", "bounce", "hello",
		"POSTMASTER", "admin+tag", "bounce+tag", "administrator", "sslwebmaster",
	} {
		from := name + "@" + mailDomain
		if lower := strings.ToLower(name); lower != "bounce" && lower != "bounce+tag" { // the inbox of the second account in this test
			send(from, first).want(t, http.StatusCreated)
			batch(from, first).want(t, http.StatusCreated)
		}
		send(from, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
		batch("Support <"+from+">", second).wantError(t, http.StatusForbidden, "domain_not_verified from")
	}
	send(suspect.Address, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
	for _, from := range []string{theirs.Address, strings.Replace(theirs.Address, "@", "+tag@", 1), strings.ToUpper(theirs.Address)} {
		send(from, second).want(t, http.StatusCreated)
		send(from, first).wantError(t, http.StatusForbidden, "domain_not_verified from")
	}
	send(mine.Address, first).want(t, http.StatusCreated)
	send(mine.Address, second).wantError(t, http.StatusForbidden, "domain_not_verified from")
	s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"bounce"}`, first).wantError(t, http.StatusBadRequest, "invalid_request name")
}

// TestOnlyTheServiceSendsItsNotices sends from the address of notices, as an email and from
// inboxes that got the address before it was reserved.
func TestOnlyTheServiceSendsItsNotices(t *testing.T) {
	s := serve(t, withMCP)
	const notices = "no-reply@" + mailDomain
	addr := s.submission(t)
	aliased := s.newInbox(t, func(in *store.Inbox) { in.Aliases.V = []string{"no-reply"} })
	want := func(how string, got outcome, err error) {
		t.Helper()
		if err != nil || got != "domain_not_verified" {
			t.Errorf("%s: %s %v, want it to be refused", how, got, err)
		}
	}
	from := func(how, address string) {
		t.Helper()
		body := `"from":"Postroom <` + address + `>","subject":"Approve?","text":"t"`
		got, err := s.overAPI(t.Context(), t, s.key, "/v1/emails", `{"to":"boss@out.example",`+body+`}`)
		want("email "+how, got, err)
		got, err = s.overAPI(t.Context(), t, s.key, "/v1/emails/batch", `{"recipients":[{"to":"boss@out.example"}],`+body+`}`)
		want("batch "+how, got, err)
		got, err = s.callTool(t.Context(), t, s.key, "send_transactional", `{"to":["boss@out.example"],`+body+`}`)
		want("MCP "+how, got, err)
		got, err = submitAt(addr, s.key, address, "boss@out.example")
		want("SMTP "+how, got, err)
		got, err = submitAt(addr, s.newKey(t, scopes("emails:send")), address, "boss@out.example")
		want("SMTP of an email "+how, got, err)
	}
	from("from an alias", notices)
	from("in capitals, with a tag", "No-Reply+x@"+mailDomain)
	if _, err := s.store.UpdateInbox(t.Context(), aliased.AccountID, aliased.ID, func(in *store.Inbox) error { in.Aliases.V = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	from("without an inbox", notices)

	in := s.newInbox(t, func(in *store.Inbox) { in.Address = notices })
	from("from an inbox", notices)
	for _, policy := range []store.SendPolicy{store.PolicyOpen, store.PolicyApproval} {
		if _, err := s.store.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error { in.SendPolicy = policy; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, door := range []string{"send", "reply", "forward", "MCP"} {
			w := sending{server: s, addr: addr, key: s.key, in: in, received: s.receive(t, in, "Subject: s")}
			got, err := w.send(t.Context(), t, door, "boss@out.example")
			want(string(policy)+" "+door, got, err)
		}
	}
}
