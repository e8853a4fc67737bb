package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

// invitation is a message with an invitation. OWN stands for the address of the inbox.
const invitation = `From: Ann <ann@out.example>
Subject: Invitation: Demo
Message-ID: <demo@out.example>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=utf-8

Demo, Tuesday 10:00 Berlin.
--b
Content-Type: text/calendar; charset=utf-8; method=REQUEST

BEGIN:VCALENDAR
PRODID:-//Shop//EN
VERSION:2.0
METHOD:REQUEST
BEGIN:VEVENT
UID:demo-1042@out.example
SEQUENCE:2
DTSTAMP:20301105T100000Z
DTSTART;TZID=Europe/Berlin:20301112T100000
DTEND;TZID=Europe/Berlin:20301112T103000
SUMMARY:Demo\, with questions
ORGANIZER;CN=Ann:mailto:ann@out.example
ATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@out.example
ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:OWN
END:VEVENT
END:VCALENDAR
--b--`

// invite delivers an invitation after replacing pairs of texts in it.
func (s *server) invite(t *testing.T, in store.Inbox, pairs ...string) string {
	t.Helper()
	text := strings.NewReplacer(pairs...).Replace(strings.ReplaceAll(invitation, "OWN", in.Address))
	return "/v1/messages/" + s.receive(t, in, text).ID
}

func TestInvitationIsPartOfTheMessage(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	path := s.invite(t, in)
	want := `{"method":"request","uid":"demo-1042@out.example","sequence":2,"status":null,"summary":"Demo, with questions","location":null,
			"organizer":{"email":"ann@out.example","name":"Ann"},"attendees":[{"email":"bob@out.example","name":null,"status":"accepted"},
			{"email":"` + in.Address + `","name":null,"status":"needs_action"}],"all_day":false,
			"start":{"local":"2030-11-12T10:00:00","zone":"Europe/Berlin","utc":"2030-11-12T09:00:00.000Z"},
			"end":{"local":"2030-11-12T10:30:00","zone":"Europe/Berlin","utc":"2030-11-12T09:30:00.000Z"},"recurrence":null,"recurrence_id":null}`
	list := "/v1/inboxes/" + in.ID + "/messages"
	for call, where := range map[string]string{
		path: "calendar", list + "?include=text": "data.0.calendar", list + "/wait?since=2020-01-01T00:00:00Z": "message.calendar",
	} {
		s.do(t, http.MethodGet, call, "").want(t, http.StatusOK).wantAt(t, where, want)
	}
	s.do(t, http.MethodGet, list, "").want(t, http.StatusOK).wantAt(t, "data.0.calendar", "null")
}

func TestAnswerGoesToTheOrganizerAlone(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct{ response, subject, partstat, text string }{
		{"accept", "Accepted: Demo, with questions", "ACCEPTED", "accepts the invitation"},
		{"decline", "Declined: Demo, with questions", "DECLINED", "declines the invitation"},
		{"tentative", "Tentative: Demo, with questions", "TENTATIVE", "may attend"},
	} {
		in := s.newInbox(t)
		path := s.invite(t, in)
		body := `{"response":"` + tt.response + `","comment":"One\nTwo"}`
		once := with(idempotencyKey, tt.response)
		sent := s.do(t, http.MethodPost, path+"/calendar/reply", body, once).want(t, http.StatusCreated)
		s.do(t, http.MethodPost, path+"/calendar/reply", body, once).want(t, http.StatusCreated).wantSame(t, sent)
		original := s.do(t, http.MethodGet, path, "")
		if sent.str(t, "subject") != tt.subject || sent.str(t, "thread_id") != original.str(t, "thread_id") || strings.Join(sent.strs(t, "to", "email"), " ") != "ann@out.example" ||
			!strings.Contains(sent.str(t, "text"), tt.text) || !strings.Contains(sent.str(t, "text"), "One\nTwo") {
			t.Errorf("%s: %s", tt.response, sent.body)
		}
		sent.wantAt(t, "cc", "[]")
		sent.wantAt(t, "calendar", "null")
		raw := s.sentRaw(t, sent)
		if !strings.Contains(string(raw), "Content-Type: text/calendar; charset=utf-8; method=REPLY; name=invite.ics\r\n") {
			t.Errorf("%s: no calendar in\n%s", tt.response, raw)
		}
		link := s.do(t, http.MethodGet, "/v1/messages/"+sent.str(t, "id")+"/attachments/"+sent.str(t, "attachments.0.id"), "").want(t, http.StatusOK).str(t, "download_url")
		ics := string(s.do(t, http.MethodGet, link[strings.Index(link, "/v1/"):], "").want(t, http.StatusOK).body)
		for _, line := range []string{
			"METHOD:REPLY", "UID:demo-1042@out.example", "SEQUENCE:2", "DTSTART:20301112T090000Z", `ORGANIZER;CN="Ann":mailto:ann@out.example`,
			"ATTENDEE;PARTSTAT=" + tt.partstat + ":mailto:" + in.Address, `COMMENT:One\nTwo`,
		} {
			if !strings.Contains(ics, "\r\n"+line+"\r\n") || strings.Count(ics, "ATTENDEE") != 1 {
				t.Errorf("%s: no line %s in\n%s", tt.response, line, ics)
			}
		}
	}
}

func TestAnswerIsRefused(t *testing.T) {
	s := serve(t)
	in, strict := s.newInbox(t), s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyReplyOnly })
	plain := "/v1/messages/" + s.receive(t, in, "Subject: Hi").ID
	simulated := "/v1/messages/" + s.receive(t, in, strings.ReplaceAll(invitation, "OWN", in.Address), func(m *store.NewMessage) { m.TestMode = true }).ID
	sent := "/v1/messages/" + s.do(t, http.MethodPost, s.invite(t, in)+"/calendar/reply", `{"response":"accept"}`).want(t, http.StatusCreated).str(t, "id")
	gone := s.invite(t, in)
	s.do(t, http.MethodDelete, gone, "").want(t, http.StatusOK)
	for _, tt := range []struct {
		name, path string
		status     int
		want       string
	}{
		{"no invitation", plain, 400, "invalid_request message_id"},
		{"a sent reply", sent, 400, "invalid_request message_id"},
		{"a cancellation", s.invite(t, in, "METHOD:REQUEST", "METHOD:CANCEL"), 400, "invalid_request message_id"},
		{"no method", s.invite(t, in, "METHOD:REQUEST\n", ""), 400, "invalid_request message_id"},
		{"a cancelled event", s.invite(t, in, "SEQUENCE:2", "STATUS:CANCELLED"), 400, "invalid_request message_id"},
		{"no UID", s.invite(t, in, "UID:demo-1042@out.example\n", ""), 400, "invalid_request message_id"},
		{"no organizer", s.invite(t, in, "ORGANIZER;CN=Ann:mailto:ann@out.example\n", ""), 400, "invalid_request message_id"},
		{"an invitation of its own", s.invite(t, in, "ORGANIZER;CN=Ann:mailto:ann@out.example", "ORGANIZER:MAILTO:"+strings.ToUpper(in.Address)), 400, "invalid_request message_id"},
		{"a simulated message", simulated, 409, "test_mode_mismatch message_id"},
		{"a deleted message", gone, 404, "not_found"},
		{"reply_only and an organizer who never wrote", s.invite(t, strict, "ORGANIZER;CN=Ann:mailto:ann@out.example", "ORGANIZER:mailto:eve@evil.example"), 403, "recipient_not_allowed to[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.do(t, http.MethodPost, tt.path+"/calendar/reply", `{"response":"accept"}`).wantError(t, tt.status, tt.want)
		})
	}
	s.do(t, http.MethodPost, s.invite(t, strict)+"/calendar/reply", `{"response":"accept"}`).want(t, http.StatusCreated)
}

// An answer that needs approval keeps its calendar, as the approved draft sends it.
func TestAnswerNeedsApproval(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval })
	d := s.do(t, http.MethodPost, s.invite(t, in)+"/calendar/reply", `{"response":"decline","approval":{"expires_in":3600}}`).want(t, http.StatusAccepted)
	m := s.do(t, http.MethodPost, "/v1/drafts/"+d.str(t, "id")+"/send", "").want(t, http.StatusCreated)
	raw := s.sentRaw(t, m)
	if !strings.Contains(string(raw), "multipart/alternative") || !strings.Contains(string(raw), "method=REPLY") {
		t.Errorf("the approved reply has no calendar:\n%s", raw)
	}
}
