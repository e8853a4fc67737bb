package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// webhookForAll creates an endpoint for all events.
func (s *server) webhookForAll(t *testing.T) store.Webhook {
	t.Helper()
	id := s.newWebhook(t, ``).str(t, "id")
	w, err := s.store.Webhook(t.Context(), s.account, id)
	must(t, err)
	return w
}

// bodies returns the events for the endpoint by type, in order. It validates
// each against the contract.
func (s *server) bodies(t *testing.T, w store.Webhook) map[store.EventType][]string {
	t.Helper()
	others := &work.Busy{} // the numbers of other endpoints
	for seq := range int64(100) {
		if seq != w.Seq {
			others.Keys = append(others.Keys, seq)
		}
	}
	all := map[store.EventType][]string{}
	for {
		claimed, err := s.store.ClaimDeliveries(t.Context(), 100, time.Minute, others)
		must(t, err)
		for _, c := range claimed {
			r := store.DeliveryResult{Seq: c.Seq, EndpointSeq: c.EndpointSeq, Fence: c.Fence, Status: store.DeliverySucceeded}
			must(t, s.store.RecordDelivery(t.Context(), r))
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
		if len(claimed) == 0 {
			return all
		}
	}
}

func TestEventsMatchTheContract(t *testing.T) {
	s := serve(t)
	w := s.webhookForAll(t)
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
		{Status: store.RecipientBounced, Response: "no server of out.example responded", Soft: true},
		{Status: store.RecipientFailed, Response: "554 5.3.0 failed"},
		{Status: store.RecipientComplained, Response: "250 2.0.0 spam"},
	}
	claimed, err := s.store.ClaimRecipients(t.Context(), 100, time.Minute, nil)
	must(t, err)
	for i, c := range claimed {
		a := outcomes[i%len(outcomes)]
		a.RecipientSeq, a.MessageSeq, a.Fence = c.Seq, c.MessageSeq, c.Fence
		must(t, s.store.RecordAttempt(t.Context(), a))
	}
	got := s.bodies(t, w)
	for _, typ := range []store.EventType{
		store.EventMessageReceived, store.EventMessageQueued, store.EventMessageSent, store.EventMessageDelivered, store.EventMessageBounced,
		store.EventMessageComplained, store.EventMessageFailed, store.EventDraftCreated, store.EventDraftPending, store.EventDraftSent, store.EventDraftRejected,
	} {
		if len(got[typ]) == 0 {
			t.Errorf("no event %s", typ)
		}
	}
	bounced := strings.Join(got[store.EventMessageBounced], "\n")
	for _, want := range []string{
		`"bounce_type":"hard","bounce":{"sub_type":"no_mailbox","smtp_code":550,"enhanced_code":"5.1.1","diagnostic":"550 5.1.1 no such user"}`,
		`"bounce_type":"soft","bounce":{"sub_type":"mailbox_full","smtp_code":452,"enhanced_code":"4.2.2","diagnostic":"452 4.2.2 mailbox full"}`,
		`"bounce_type":"soft","bounce":{"sub_type":null,"smtp_code":null,"enhanced_code":null,"diagnostic":"no server of out.example responded"}`,
	} {
		if !strings.Contains(bounced, want) {
			t.Errorf("no bounce event contains %s:\n%s", want, bounced)
		}
	}
}

// The data of an event is the email at that time, even if the whole delivery is
// recorded at once: the status, the recipients, and the times.
func TestEventsShowTheEmailAsItWas(t *testing.T) {
	s := serve(t)
	w := s.webhookForAll(t)
	s.suppress(t, "gone@out.example")
	s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":["a@out.example","b@out.example","gone@out.example"],"subject":"s","text":"t"}`).
		want(t, http.StatusCreated)
	claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	if err != nil || len(claimed) != 2 {
		t.Fatal(len(claimed), err)
	}
	for i, status := range []store.RecipientStatus{store.RecipientClicked, store.RecipientBounced} {
		c := claimed[i]
		a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: status, Response: "550 5.1.1 said " + c.Email}
		must(t, s.store.RecordAttempt(t.Context(), a))
	}
	id := s.sendEmail(t, `"scheduledAt":"`+after(time.Hour)+`"`).want(t, http.StatusCreated).str(t, "id")
	s.do(t, http.MethodPatch, "/v1/emails/"+id, `{"scheduledAt":"`+after(2*time.Hour)+`"}`).want(t, http.StatusOK)
	got := s.bodies(t, w)
	for typ, want := range map[store.EventType]string{
		store.EventEmailScheduled:  "scheduled, to be sent at " + after(time.Hour) + ": scheduled",
		store.EventEmailQueued:     "queued: queued, queued, suppressed",
		store.EventEmailSuppressed: "queued: queued, queued, suppressed",
		store.EventEmailSent:       "sent, sent: sent 1 sent said, sending 1, suppressed",
		store.EventEmailDelivered:  "delivered, sent, delivered: delivered 1 sent delivered said, sending 1, suppressed",
		store.EventEmailOpened:     "opened, sent, delivered, opened: opened 1 sent delivered said, sending 1, suppressed",
		store.EventEmailClicked:    "clicked, sent, delivered, opened: clicked 1 sent delivered said, sending 1, suppressed",
		store.EventEmailBounced:    "clicked, sent, delivered, opened: clicked 1 sent delivered said, bounced 1 bounced said, suppressed",
	} {
		if len(got[typ]) != 1 {
			t.Errorf("%s came %d times", typ, len(got[typ]))
			continue
		}
		if was := summaryOf(t, got[typ][0]); was != want {
			t.Errorf("%s shows %q, want %q", typ, was, want)
		}
	}
}

// summaryOf returns the fields of the email in an event that change during
// delivery.
func summaryOf(t *testing.T, body string) string {
	t.Helper()
	type times struct {
		Sent      *string `json:"sent_at"`
		Delivered *string `json:"delivered_at"`
		Opened    *string `json:"opened_at"`
		Bounced   *string `json:"bounced_at"`
		Said      *string `json:"last_response"`
	}
	var e struct {
		Data struct {
			times
			Status     string
			Scheduled  *string `json:"scheduled_at"`
			Recipients []struct {
				times
				Status   string
				Attempts int
			}
		}
	}
	must(t, json.Unmarshal([]byte(body), &e))
	all := e.Data.Status
	had := func(v times, before string) {
		for _, f := range []struct {
			name string
			at   *string
		}{{"sent", v.Sent}, {"delivered", v.Delivered}, {"opened", v.Opened}, {"bounced", v.Bounced}, {"said", v.Said}} {
			if f.at != nil {
				all += before + f.name
			}
		}
	}
	had(e.Data.times, ", ")
	if e.Data.Scheduled != nil {
		all += ", to be sent at " + *e.Data.Scheduled
	}
	for i, r := range e.Data.Recipients {
		all += map[bool]string{true: ": ", false: ", "}[i == 0] + r.Status
		if r.Attempts > 0 {
			all += fmt.Sprintf(" %d", r.Attempts)
		}
		had(r.times, " ")
	}
	return all
}

// The texts of a large event are cut, but never to nothing: both texts of a
// message, and those with characters that JSON escapes.
func TestLargeEventsAreCut(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for name, text := range map[string]string{
		"plain": strings.Repeat("ä line of <some> length\n", 12000), "escaped": strings.Repeat(strings.Repeat(`"`, 70)+"\n", 4000),
	} {
		w := s.webhookForAll(t)
		m := s.receive(t, in, "Subject: large\n\n"+text)
		body := s.bodies(t, w)[store.EventMessageReceived][0]
		var e struct {
			Data struct {
				ID, Text  string
				Extracted string `json:"extracted_text"`
				Truncated bool
			}
		}
		must(t, json.Unmarshal([]byte(body), &e))
		d := e.Data
		if len(body) > 256<<10 || len(body) < 255<<10 || !d.Truncated || d.ID != m.ID {
			t.Errorf("%s: %d bytes, ends in %s", name, len(body), body[len(body)-100:])
		}
		if min(len(d.Text), len(d.Extracted)) < 20<<10 || !strings.HasPrefix(text, d.Text) || !strings.HasPrefix(text, d.Extracted) {
			t.Errorf("%s: cut to %d and %d bytes", name, len(d.Text), len(d.Extracted))
		}
	}
}

// A large event with nothing to cut has its text whole and does not say that it was cut.
func TestLargeEventWithAShortTextIsNotTruncated(t *testing.T) {
	s := serve(t)
	w := s.webhookForAll(t)
	s.receive(t, s.newInbox(t), "Subject: large\n\nShort.", func(m *store.NewMessage) {
		for i := range 10_000 {
			m.Refs.V.References = append(m.Refs.V.References, fmt.Sprintf("%020d@out.example", i))
		}
	})
	body := s.bodies(t, w)[store.EventMessageReceived][0]
	if len(body) <= 256<<10 || !strings.Contains(body, `"truncated":false`) || !strings.Contains(body, `"text":"Short.`) {
		t.Errorf("%d bytes, begins with %s", len(body), body[:1500])
	}
}
