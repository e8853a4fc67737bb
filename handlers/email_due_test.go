package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// release queues the scheduled emails that are due.
func (s *server) release(t *testing.T) {
	t.Helper()
	if _, err := s.store.ReleaseScheduled(t.Context(), handlers.DueRules(s.store, mailDomain)); err != nil {
		t.Fatal(err)
	}
}

// A scheduled email is checked again when it is due. If it would no longer be
// accepted, it fails with a reason and an event.
func TestScheduledEmailIsCheckedWhenDue(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		domain := s.newDomain(t, "shop.example")
		zone.publish(domain, "OWNERSHIP", "DKIM")
		s.verify(t, domain.ID)
		person, err := s.store.CreateUser(t.Context(), s.account, "ann@example.com", store.RoleAdmin, store.UserLink{Hash: []byte("x"), ExpiresAt: s.clock.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		api, err := httpapi.NewLocalClient(s.web.Config.Handler)
		if err != nil {
			t.Fatal(err)
		}
		asPerson := httpapi.AsPerson(t.Context(), httpapi.Person{Seq: person.Seq, AccountID: s.account, ID: person.ID, Role: person.Role})
		for _, tt := range []struct {
			name, from, reason string
			person             bool
			keyUntil           time.Duration
			change             func(t *testing.T, in store.Inbox, key string)
		}{
			{name: "nothing changed", change: func(*testing.T, store.Inbox, string) {}},
			{name: "the key is revoked", reason: "the key that scheduled it was revoked", change: func(t *testing.T, _ store.Inbox, key string) {
				s.do(t, http.MethodDelete, "/v1/api-keys/"+key, "").want(t, http.StatusOK)
			}},
			{
				name: "the key has expired", reason: "the key that scheduled it has expired", keyUntil: time.Hour,
				change: func(*testing.T, store.Inbox, string) {},
			},
			{name: "the key expires a second later", keyUntil: time.Hour + time.Second, change: func(*testing.T, store.Inbox, string) {}},
			{name: "the inbox is deleted", reason: "the inbox was deleted", change: func(t *testing.T, in store.Inbox, _ string) {
				s.do(t, http.MethodDelete, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK)
			}},
			{name: "the inbox has expired", reason: "this inbox has expired", change: func(t *testing.T, in store.Inbox, _ string) {
				s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"expires_at":"`+s.clock.Now().Add(time.Minute).Format(time.RFC3339)+`"}`).want(t, http.StatusOK)
			}},
			{name: "the inbox only replies", reason: "to[0] has not written to this inbox", change: func(t *testing.T, in store.Inbox, _ string) {
				s.setPolicy(t, in, store.PolicyReplyOnly)
			}},
			{name: "the domain is gone", from: "robot@shop.example", reason: "from robot@shop.example must be on the mail domain of the installation or on a verified domain of this account", change: func(t *testing.T, _ store.Inbox, _ string) {
				s.do(t, http.MethodDelete, "/v1/domains/"+domain.ID, "").want(t, http.StatusOK)
			}},
			{name: "the person is removed", person: true, reason: "the person who scheduled it was removed", change: func(t *testing.T, _ store.Inbox, _ string) {
				if _, err := s.store.RemoveUser(t.Context(), "ann@example.com"); err != nil {
					t.Fatal(err)
				}
			}},
			{name: "the account is paused", reason: "sending is paused: unpaid", change: func(t *testing.T, _ store.Inbox, _ string) {
				u, err := s.store.Usage(t.Context(), s.account)
				if err == nil {
					err = s.store.PauseAccount(t.Context(), u.Account.ID, "unpaid")
				}
				if err != nil {
					t.Fatal(err)
				}
			}},
		} {
			s.clock.Add(time.Minute) // resets the rate limit
			in := s.newInbox(t)
			until := "null"
			if tt.keyUntil > 0 {
				until = `"` + s.clock.Now().Add(tt.keyUntil).Format(time.RFC3339) + `"`
			}
			key := s.do(t, http.MethodPost, "/v1/api-keys", `{"name":"robot","expires_at":`+until+`}`).want(t, http.StatusCreated)
			from := in.Address
			if tt.from != "" {
				from = tt.from
			}
			due := s.clock.Now().Add(time.Hour)
			body := `{"from":"` + from + `","to":"ann@out.example","subject":"s","text":"t","scheduledAt":"` + due.Format(time.RFC3339) + `"}`
			var id string
			if tt.person {
				created, err := api.SendEmail(asPerson, &gen.EmailSend{
					From: gen.NewMailboxAddress(gen.Mailbox(from)), To: gen.NewMailboxRecipients("ann@out.example"), Subject: gen.NewOptString("s"), Text: gen.NewOptNilString("t"), ScheduledAt: gen.NewOptNilDateTime(due),
				}, gen.SendEmailParams{})
				if err != nil {
					t.Fatal(err)
				}
				id = created.(*gen.EmailCreated).ID
			} else {
				id = s.do(t, http.MethodPost, "/v1/emails", body, as(key.str(t, "key"))).want(t, http.StatusCreated).str(t, "id")
			}
			path := "/v1/emails/" + id
			tt.change(t, in, key.str(t, "id"))
			s.clock.Add(time.Hour)
			s.release(t)
			got := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
			if tt.reason == "" {
				got.wantAt(t, "status", `"queued"`)
				continue
			}
			if status, to := got.str(t, "status"), got.str(t, "recipients.0.status"); status != "failed" || to != "failed" {
				t.Errorf("%s: the email is %s, its recipient %s", tt.name, status, to)
				continue
			}
			got.wantAt(t, "recipients.0.last_response", `"Not sent: `+tt.reason+`"`)
			if n := s.texts(t, `SELECT data FROM events WHERE type = 'email.failed' AND data LIKE '%`+tt.reason+`%'`); len(n) != 1 {
				t.Errorf("%s: events %v", tt.name, n)
			}
		}
	})
}

// A scheduled email becomes a complete draft if its inbox requires approval
// when it is due.
func TestScheduledEmailBecomesADraft(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t, func(in *store.Inbox) { in.DisplayName = new("Desk") })
		e := s.do(t, http.MethodPost, "/v1/emails", `{"from":"Robot <`+in.Address+`>","to":"ann@out.example","cc":"bob@out.example","subject":"Order",
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
			"category": `"marketing"`, "tags": `{"flow":"order"}`,
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
	})
}
