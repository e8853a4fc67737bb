package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

// release queues the scheduled emails that are due.
func (s *server) release(t *testing.T) {
	t.Helper()
	if _, err := s.store.ReleaseScheduled(t.Context(), handlers.DueRules(s.store, mailDomain, false)); err != nil {
		t.Fatal(err)
	}
}

// A scheduled email becomes a complete draft if its inbox requires approval
// when it is due.
func TestScheduledEmailBecomesADraft(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.DisplayName = new("Desk") })
	e := s.do(t, http.MethodPost, "/v1/emails", `{"from":"Robot <`+in.Address+`>","to":"ann@out.example","cc":"bob@out.example","subject":"Order","headers":{"X-Order":"Stück 20"},
			"html":"<p>20 chairs</p><svg>x</svg>","attachments":[{"filename":"a.txt","content":"T3JkZXI="}],
			"category":"marketing","tags":{"flow":"order"},"metadata":{"order":1042},"scheduledAt":"`+after(time.Hour)+`"}`).want(t, http.StatusCreated)
	s.setPolicy(t, in, store.PolicyApproval)
	s.clock.Add(time.Hour)
	s.release(t)
	got := s.do(t, http.MethodGet, "/v1/emails/"+e.str(t, "id"), "").want(t, http.StatusOK)
	got.wantAt(t, "status", `"cancelled"`)
	list := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/drafts", "").want(t, http.StatusOK)
	id := list.str(t, "data.0.id")
	got.wantAt(t, "recipients.0.last_response", `"Held for approval as `+id+`"`)
	d := s.do(t, http.MethodGet, "/v1/drafts/"+id, "").want(t, http.StatusOK)
	for path, want := range map[string]string{
		"status": `"pending"`, "from": `{"email":"` + in.Address + `","name":"Robot"}`, "html": `"<p>20 chairs</p>"`,
		"category": `"marketing"`, "tags": `{"flow":"order"}`, "headers": `{"X-Order":"Stück 20"}`,
	} {
		d.wantAt(t, path, want)
	}
	if by := d.str(t, "created_by"); !strings.HasPrefix(by, "key_") {
		t.Errorf("created by %s", by)
	}
	if types := s.texts(t, `SELECT type FROM events ORDER BY seq`); strings.Join(types, " ") != "email.scheduled email.cancelled draft.created draft.pending" {
		t.Errorf("events: %v", types)
	}
	m := s.do(t, http.MethodPost, "/v1/drafts/"+id+"/send", `{"version":1}`).want(t, http.StatusCreated)
	if raw := string(s.sentRaw(t, m)); !strings.Contains(raw, "From: Robot <") || !strings.Contains(raw, "T3JkZXI=") {
		t.Errorf("sent is:\n%s", raw)
	}
	claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	if err != nil || len(claimed) != 2 || claimed[0].Category != store.CategoryMarketing {
		t.Errorf("claimed %+v, %v; want two recipients of a marketing message", claimed, err)
	}
	if labels := s.texts(t, `SELECT tags || metadata FROM emails e JOIN messages m ON m.seq = e.message_seq WHERE m.inbox_seq IS NOT NULL`); len(labels) != 1 || labels[0] != `{"flow":"order"}{"order":1042}` {
		t.Errorf("the message has the labels %q", labels)
	}
	if n := len(s.pages(t, "/v1/emails")); n != 1 {
		t.Errorf("%d emails, want the cancelled one", n)
	}
	s.do(t, http.MethodGet, "/v1/emails/"+m.str(t, "id"), "").want(t, http.StatusNotFound)
	s.clock.Add(time.Hour)
	s.release(t)
	if n := len(s.pages(t, "/v1/drafts")); n != 1 {
		t.Errorf("%d drafts", n)
	}
}

// An email with attachments only, which SMTP allows, becomes a draft as well.
func TestScheduledEmailWithoutTextBecomesADraft(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	header := "From: " + in.Address + "\nTo: bob@far.example\nSubject: Order\nX-Postroom-Scheduled-At: " + after(time.Hour) +
		"\nMIME-Version: 1.0\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n"
	id := s.submits(t, s.key, header).ID
	s.setPolicy(t, in, store.PolicyApproval)
	s.clock.Add(time.Hour)
	s.release(t)
	s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).wantAt(t, "status", `"cancelled"`)
	d := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/drafts", "").want(t, http.StatusOK)
	d.wantAt(t, "data.0.text", "null")
	d.wantAt(t, "data.0.attachments.0.filename", `"a.pdf"`)
	s.refuses(t, s.key, strings.Replace(header, "X-Postroom-Scheduled-At", "X-Other", 1), "give text, html or both")
}

// A scheduled email with more recipients than a limit ever allows fails when it is due:
// it does not wait for a time that never comes.
func TestScheduledEmailThatNeverFitsFails(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	at := s.clock.Now().Add(time.Minute).Format(time.RFC3339)
	body := `{"from":"` + in.Address + `","to":["a@out.example","b@out.example"],"subject":"s","text":"t","scheduledAt":"` + at + `"}`
	id := s.do(t, http.MethodPost, "/v1/emails", body).want(t, http.StatusCreated).str(t, "id")
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"limits":{"sends_per_day":1}}`).want(t, http.StatusOK)
	s.clock.Add(time.Minute)
	s.release(t)
	got := s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK)
	got.wantAt(t, "status", `"failed"`)
	if why := got.str(t, "recipients.0.last_response"); !strings.Contains(why, "sends_per_day=1") {
		t.Errorf("it failed because %q", why)
	}
}
