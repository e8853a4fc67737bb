package handlers_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// toldTo makes an endpoint that is told of everything.
func (s *server) toldTo(t *testing.T) store.Webhook {
	t.Helper()
	id := s.newWebhook(t, ``).str(t, "id")
	w, err := s.store.Webhook(t.Context(), s.account, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// bodies are what the endpoint is told with, by type; each is held against the
// contract.
func (s *server) bodies(t *testing.T, w store.Webhook) map[store.EventType][]string {
	t.Helper()
	_, claimed, err := s.store.ClaimDeliveries(t.Context(), w.Seq, 100, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	all := map[store.EventType][]string{}
	for _, c := range claimed {
		body, err := handlers.EventBody(s.store)(t.Context(), *c.Event)
		if err != nil {
			t.Errorf("%s: %v", c.EventType, err)
			continue
		}
		if err := s.check.Value("Event", body); err != nil {
			t.Errorf("%s: %v\n%s", c.EventType, err, body)
		}
		all[c.EventType] = append(all[c.EventType], string(body))
	}
	return all
}

func TestEventsAreToldAsTheContractSays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		w := s.toldTo(t)
		in := s.newInbox(t)
		storetest.Received(t, s.store, in)
		guarded := s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval })
		for _, decision := range []string{"send", "reject"} {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+guarded.ID+"/messages", `{"to":"ann@out.example","subject":"s","text":"t"}`).
				want(t, http.StatusAccepted)
			s.do(t, http.MethodPost, "/v1/drafts/"+res.str(t, "id")+"/"+decision, "")
		}
		storetest.Sent(t, s.store, in, []string{"a@out.example", "b@out.example", "c@out.example", "d@out.example", "e@out.example", "f@out.example"})
		outcomes := []store.Attempt{
			{Status: store.RecipientDelivered, Response: "250 2.0.0 ok"},
			{Status: store.RecipientBounced, Response: "550 5.1.1 no such user"},
			{Status: store.RecipientBounced, Response: "452 4.2.2 mailbox full"},
			{Status: store.RecipientBounced, Response: "no server of out.example answered", Soft: true},
			{Status: store.RecipientFailed, Response: "554 5.3.0 failed"},
			{Status: store.RecipientComplained, Response: "250 2.0.0 spam"},
		}
		claimed, err := s.store.ClaimRecipients(t.Context(), 100, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range claimed {
			a := outcomes[i%len(outcomes)]
			a.RecipientSeq, a.MessageSeq, a.Fence = c.Seq, c.MessageSeq, c.Fence
			if err := s.store.RecordAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		got := s.bodies(t, w)
		for _, typ := range []store.EventType{
			store.EventMessageReceived, store.EventMessageQueued, store.EventMessageSent, store.EventMessageDelivered, store.EventMessageBounced,
			store.EventMessageComplained, store.EventMessageFailed, store.EventDraftCreated, store.EventDraftSent, store.EventDraftRejected,
		} {
			if len(got[typ]) == 0 {
				t.Errorf("nothing was told of %s", typ)
			}
		}
		bounced := strings.Join(got[store.EventMessageBounced], "\n")
		for _, want := range []string{
			`"bounce_type":"hard","bounce":{"sub_type":"no_mailbox","smtp_code":550,"enhanced_code":"5.1.1","diagnostic":"550 5.1.1 no such user"}`,
			`"bounce_type":"soft","bounce":{"sub_type":"mailbox_full","smtp_code":452,"enhanced_code":"4.2.2","diagnostic":"452 4.2.2 mailbox full"}`,
			`"bounce_type":"soft","bounce":{"sub_type":null,"smtp_code":null,"enhanced_code":null,"diagnostic":"no server of out.example answered"}`,
		} {
			if !strings.Contains(bounced, want) {
				t.Errorf("no bounce is told as %s:\n%s", want, bounced)
			}
		}
	})
}

// The events of emails are told with the whole email, once an email or once a
// recipient.
func TestEventsOfEmails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		w := s.toldTo(t)
		s.suppress(t, "gone@out.example")
		to := []string{"a@out.example", "b@out.example", "c@out.example", "d@out.example", "e@out.example", "gone@out.example"}
		s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":["`+strings.Join(to, `","`)+`"],"subject":"s","html":"<p>h</p>","tags":{"a":"b"}}`).
			want(t, http.StatusCreated)
		claimed, err := s.store.ClaimRecipients(t.Context(), 100, time.Minute, nil)
		if err != nil || len(claimed) != 5 {
			t.Fatal(len(claimed), err)
		}
		statuses := []store.RecipientStatus{
			store.RecipientDelivered, store.RecipientClicked, store.RecipientBounced, store.RecipientFailed, store.RecipientComplained,
		}
		for i, c := range claimed {
			a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: statuses[i], Response: "550 5.1.1 said"}
			if err := s.store.RecordAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		for _, method := range []string{http.MethodDelete, http.MethodPatch} {
			id := s.sendEmail(t, `"scheduledAt":"`+after(time.Hour)+`"`).want(t, http.StatusCreated).str(t, "id")
			body := map[string]string{http.MethodPatch: `{"scheduledAt":"` + after(-time.Hour) + `"}`}[method]
			s.do(t, method, "/v1/emails/"+id, body).want(t, http.StatusOK)
		}
		got := s.bodies(t, w)
		for typ, n := range map[store.EventType]int{
			store.EventEmailQueued: 2, store.EventEmailScheduled: 2, store.EventEmailCancelled: 1, store.EventEmailSent: 3, store.EventEmailDelivered: 3,
			store.EventEmailOpened: 1, store.EventEmailClicked: 1, store.EventEmailBounced: 1, store.EventEmailFailed: 2, store.EventEmailComplained: 1,
		} {
			if len(got[typ]) != n {
				t.Errorf("%s was told %d times, want %d", typ, len(got[typ]), n)
			}
		}
		for _, want := range []string{`"bounce_type":"hard"`, `"recipient":"c@out.example"`, `"html":null`, `"tags":{"a":"b"}`, `"inbox_id":null`} {
			if body := strings.Join(got[store.EventEmailBounced], ""); !strings.Contains(body, want) {
				t.Errorf("without %s: %s", want, body)
			}
		}
	})
}

// An event keeps the status that it reports, whatever has come since.
func TestEventsHaveTheStatusOfTheirMoment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		w := s.toldTo(t)
		storetest.Sent(t, s.store, s.newInbox(t), []string{"a@out.example"})
		claimed, err := s.store.ClaimRecipients(t.Context(), 1, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := claimed[0]
		a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientFailed, Response: "554 no"}
		if err := s.store.RecordAttempt(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		got := s.bodies(t, w)
		for typ, want := range map[store.EventType]string{store.EventMessageQueued: "queued", store.EventMessageFailed: "failed"} {
			var body struct {
				Data struct{ Status, Recipient string }
			}
			if err := json.Unmarshal([]byte(got[typ][0]), &body); err != nil || body.Data.Status != want {
				t.Errorf("%s has the status %q: %v", typ, body.Data.Status, err)
			}
			if named := body.Data.Recipient == "a@out.example"; named != (typ == store.EventMessageFailed) {
				t.Errorf("%s names the recipient %q", typ, body.Data.Recipient)
			}
		}
	})
}

func TestLargeEventsAreCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		w := s.toldTo(t)
		in := s.newInbox(t)
		text := strings.Repeat("ä line of <some> length\\n", 12000)
		s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"from":"ann@out.example","subject":"s","text":"`+text+`"}`).
			want(t, http.StatusCreated)
		body := s.bodies(t, w)[store.EventMessageReceived][0]
		if len(body) > 256<<10 || !strings.Contains(body, `"truncated":true`) {
			t.Errorf("%d bytes, ends in %s", len(body), body[len(body)-100:])
		}
	})
}
