package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func (s *site) record(t *testing.T, requests []store.APIRequest, refusals ...store.SMTPRefusal) {
	t.Helper()
	now := store.NewTime(s.clock.Now())
	for i := range requests {
		requests[i].AccountID, requests[i].CreatedAt, requests[i].OneOf = s.account, now, max(1, requests[i].OneOf)
	}
	for i := range refusals {
		refusals[i].CreatedAt = now
	}
	must(t, s.store.AddJournal(t.Context(), requests, refusals))
}

// The logs show the requests and events of the own account, and to the first account
// what SMTP refused.
func TestLogs(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	v.get("/logs").want(t, http.StatusOK).has(t, "No requests yet", "Refused mail")
	v.get("/logs/events").want(t, http.StatusOK).has(t, "No events yet")
	v.get("/logs/smtp").want(t, http.StatusOK).has(t, "Nothing was refused")
	key := storetest.Key(t, s.store, s.account, "agent")
	s.record(t, []store.APIRequest{
		{ID: "req_good", Caller: key.ID, Method: "GET", Path: "/v1/inboxes", Status: 200, TookMS: 12, IP: "192.0.2.1", OneOf: 20},
		{ID: "req_bad", Caller: s.user.ID, Method: "POST", Path: "/v1/<b>", Status: 503, TookMS: 7, IP: "2001:db8::1"},
	}, store.SMTPRefusal{IP: "192.0.2.9", HELO: "spam.example", From: "a@spam.example", To: "missing@here.example", Reply: "550 5.1.1 No such inbox here", Count: 3})
	v.get("/logs").want(t, http.StatusOK).has(t, "GET /v1/inboxes", "12 ms", "192.0.2.1", "one of 20 requests", key.Name, "POST /v1/&lt;b&gt;", "ann@example.com")
	if failed := v.get("/logs?failed=1").want(t, http.StatusOK).has(t, "req_bad", "503"); strings.Contains(failed.body, "req_good") {
		t.Error("a request that succeeded is among those that failed")
	}
	if of := v.get("/logs?caller="+key.ID).want(t, http.StatusOK).has(t, "req_good", "By "+key.Name); strings.Contains(of.body, "req_bad") {
		t.Error("the filter by key shows another caller's request")
	}
	v.get("/keys/"+key.ID).want(t, http.StatusOK).has(t, "from <code>192.0.2.1</code>", `href="/logs?caller=`+key.ID+`"`)
	v.get("/logs/smtp").want(t, http.StatusOK).has(t, "550 5.1.1 No such inbox here", "missing@here.example", "spam.example", "3 refusals")
	s.sendSome(t)
	v.get("/logs/events").want(t, http.StatusOK).has(t, "email.delivered", "email.bounced", "550 5.1.1 The email account", "gone@nowhere.example", "Next page")
	if of := v.get("/logs/events?kind=message").want(t, http.StatusOK).has(t, "message.received", "/messages/msg_"); strings.Contains(of.body, "email.delivered") {
		t.Error("the filter by kind shows another kind")
	}
	v.get("/logs/events?kind=draft").want(t, http.StatusOK)
	v.get("/logs?cursor=nonsense").want(t, http.StatusBadRequest)
	s.otherAccount(t)
	other := s.visitAsUser(t)
	other.get("/logs").want(t, http.StatusOK).has(t, "No requests yet")
	other.get("/logs/events").want(t, http.StatusOK).has(t, "No events yet")
	other.get("/logs/smtp").want(t, http.StatusNotFound)
}
