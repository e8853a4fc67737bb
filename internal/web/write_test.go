package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/gen"
)

var onceField = regexp.MustCompile(`name="once" value="([^"]+)"`)

// once is the idempotency key of the form on a page.
func (a response) once(t *testing.T) string {
	t.Helper()
	m := onceField.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("the page has no form with a key:\n%s", a.body)
	}
	return m[1]
}

// A double click reports that the first request is still in progress. The form
// that follows sends nothing a second time.
func TestFormThatIsSentAgainSendsOneMail(t *testing.T) {
	const inProgress = `{"error":{"code":"idempotency_in_progress","message":"still running","request_id":"req_x"}}`
	var busy atomic.Bool
	before := func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages") && busy.CompareAndSwap(true, false) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("X-Request-Id", "req_x")
				w.WriteHeader(http.StatusConflict)
				_, _ = w.Write([]byte(inProgress)) // into memory
				return
			}
			api.ServeHTTP(w, r)
		})
	}
	s := openSQLite(t, options{before: before})
	in := s.newInbox(t, "desk", gen.SendPolicyOpen)
	v := s.visitAsUser(t)
	send := func(once, text string) response {
		return v.post("/write", []string{"inbox", in.ID, "to", "bob@out.example", "subject", "Hi", "text", text, "once", once})
	}
	first := v.get("/write?inbox="+in.ID).want(t, http.StatusOK).once(t)
	send(first, "Hello").want(t, http.StatusSeeOther)
	busy.Store(true)
	again := send(first, "Hello").want(t, http.StatusConflict).once(t)
	send(again, "Hello").want(t, http.StatusSeeOther)
	sent, err := s.api.ListInboxMessages(s.asUser(t), gen.ListInboxMessagesParams{InboxID: in.ID})
	must(t, err)
	if len(sent.Data) != 1 {
		t.Errorf("%d messages were sent, want 1", len(sent.Data))
	}
	// Another mail by a key that is used up: the form gets a key that is good.
	other := send(first, "Something else").want(t, http.StatusUnprocessableEntity).once(t)
	send(other, "Something else").want(t, http.StatusSeeOther)
}

// invitationMail is mail with an event, with more lines of its own.
func invitationMail(method, start, more string) string {
	return "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Invitation\r\nContent-Type: text/calendar; method=" + method +
		"\r\n\r\nBEGIN:VCALENDAR\r\nMETHOD:" + method + "\r\nBEGIN:VEVENT\r\nUID:1@out.example\r\nDTSTART" + start + "\r\nSUMMARY:Demo <b>\r\nLOCATION:Room 4\r\n" +
		"ORGANIZER;CN=Ann:mailto:ann@out.example\r\nATTENDEE:mailto:bob@out.example\r\n" + more + "END:VEVENT\r\nEND:VCALENDAR\r\n"
}

// The page of an invitation says when, where and who, and answers it with one click. A double
// click sends one answer.
func TestInvitationIsAnsweredOnThePageOfTheMessage(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "desk", gen.SendPolicyOpen)
	invitation := func(method, start, more string) string {
		return "/messages/" + s.put(t, in, invitationMail(method, start, more)).ID
	}
	v := s.visitAsUser(t)
	path := invitation("REQUEST", ";TZID=W. Europe Standard Time:20261110T100000", "")
	v.get(path).want(t, http.StatusOK).has(t, "Demo &lt;b&gt;", "Tue 10 Nov 2026, 10:00 Europe/Berlin", "Room 4", "bob@out.example", ">Accept<")
	v.get(invitation("REQUEST", ":20261206", "DTEND:20261208\r\n")).want(t, http.StatusOK).has(t, "Sun 6 Dec 2026, all day – Mon 7 Dec 2026")
	if page := v.get(invitation("CANCEL", ":20261206", "")).want(t, http.StatusOK).has(t, "The organizer has cancelled this event."); strings.Contains(page.body, ">Accept<") {
		t.Error("a cancelled event can be accepted")
	}
	once := v.get(path).once(t)
	v.post(path+"/calendar", []string{"response", "perhaps"}).want(t, http.StatusBadRequest).has(t, "but must be one of accept, decline, tentative", ">Accept<")
	for range 2 { // a double click
		v.post(path+"/calendar", []string{"response", "decline", "once", once}).want(t, http.StatusSeeOther)
	}
	sent, err := s.api.ListInboxMessages(s.asUser(t), gen.ListInboxMessagesParams{InboxID: in.ID, Direction: gen.NewOptDirection(gen.DirectionOut)})
	must(t, err)
	if len(sent.Data) != 1 || sent.Data[0].Subject != "Declined: Demo <b>" {
		t.Errorf("sent: %v", sent.Data)
	}
}
