package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestStreamSendsEvents(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval })
	s.receive(t, in, "Subject: before")
	l := s.listen(t, "")
	if got := l.res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	m := s.receive(t, in, "Subject: one")
	d := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@out.example","subject":"two","text":"t"}`).want(t, http.StatusAccepted)
	s.do(t, http.MethodPost, "/v1/drafts/"+d.str(t, "id")+"/send", "").want(t, http.StatusCreated)

	all := l.want("message.received", "draft.created", "draft.pending", "message.queued", "draft.sent")
	if got := all[0]; got.Data.ID != m.ID || got.Data.Subject != "one" || *got.InboxID != in.ID {
		t.Errorf("got %+v, want %s of %s", got, m.ID, in.ID)
	}
	if got := all[1]; got.Data.ID != d.str(t, "id") || got.Data.Status != "pending" {
		t.Errorf("got %+v, want the draft as it was", got)
	}
	l.hangUp()
}

func TestStreamFilters(t *testing.T) {
	s := serve(t)
	a, b := s.newInbox(t), s.newInbox(t)
	other := s.otherInbox(t)
	narrow := s.newKey(t, onlyInboxes(b.ID))
	streams := map[string]*listener{
		"a1 sent b1 end": s.listen(t, ""),
		"a1 end":         s.listen(t, "?inbox_id="+a.ID+"&events=message.received"),
		"sent":           s.listen(t, "?events=message.queued&inbox_id="+a.ID, with("Last-Event-ID", "")),
		"b1 end":         s.listen(t, "", as(narrow)),
	}
	s.receive(t, other, "Subject: foreign")
	s.receive(t, a, "Subject: a1")
	s.do(t, http.MethodPost, "/v1/inboxes/"+a.ID+"/messages", `{"to":"a@out.example","subject":"sent","text":"t"}`).want(t, http.StatusCreated)
	s.receive(t, b, "Subject: b1")
	s.receive(t, a, "Subject: end")
	s.receive(t, b, "Subject: end")
	for want, l := range streams {
		var got []string
		for range strings.FieldsSeq(want) {
			got = append(got, l.next().Data.Subject)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.do(t, http.MethodGet, "/v1/events/stream?inbox_id="+a.ID, "", as(narrow)).wantError(t, http.StatusNotFound, "not_found inbox_id")
	s.do(t, http.MethodGet, "/v1/events/stream?events=message.lost", "", broken).wantError(t, http.StatusBadRequest, "invalid_request events[0]")
	s.do(t, http.MethodGet, "/v1/events/stream", "", as(s.newKey(t, scopes("send")))).wantError(t, http.StatusForbidden, "insufficient_scope")
}

// A webhook test event contains the URL of the endpoint, which may be secret.
// Only the endpoint gets it.
func TestStreamOmitsWebhookTests(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	w, _, err := s.store.CreateWebhook(t.Context(), store.Webhook{AccountID: s.account, URL: "https://hooks.example/", Active: true}, nil)
	must(t, err)
	l := s.listen(t, "")
	if _, err := s.store.StartTest(t.Context(), w, time.Minute); err != nil {
		t.Fatal(err)
	}
	s.receive(t, in, "Subject: after the test")
	l.want("message.received")
}

func TestStreamResumes(t *testing.T) {
	s := serve(t)
	in, other := s.newInbox(t), s.otherInbox(t)
	l := s.listen(t, "")
	s.receive(t, in, "Subject: 0")
	l.want("message.received")
	l.hangUp()
	const missed = 300 // more than one read returns
	for i := range missed {
		s.receive(t, in, fmt.Sprintf("Subject: %d", i+1))
		if i%10 == 0 {
			s.receive(t, other, "Subject: foreign")
		}
	}
	again := s.listen(t, "", with("Last-Event-ID", l.last))
	s.receive(t, in, fmt.Sprintf("Subject: %d", missed+1))
	for i := range missed + 1 {
		if got := again.next().Data.Subject; got != fmt.Sprint(i+1) {
			t.Fatalf("got %s, want %d", got, i+1)
		}
	}
}

// Events of deleted messages are not sent, but a client can resume from them.
func TestStreamResumesAfterWhatIsDeleted(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	l := s.listen(t, "?events=message.delivered,message.received")
	m := s.sentBy(t, in)
	l.want("message.delivered")
	l.hangUp()
	gone := s.receive(t, in, "Subject: gone")
	for _, id := range []string{m.ID, gone.ID} {
		s.do(t, http.MethodDelete, "/v1/messages/"+id, "").want(t, http.StatusOK)
	}
	s.receive(t, in, "Subject: next")
	again := s.listen(t, "", with("Last-Event-ID", l.last))
	if got := again.next().Data.Subject; got != "next" {
		t.Errorf("got %s, want the mail that is still there", got)
	}
}

// sentBy stores a message that was sent and delivered.
func (s *server) sentBy(t *testing.T, in store.Inbox) store.Message {
	t.Helper()
	m := storetest.Sent(t, s.store, in, []string{"a@out.example"})
	claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d recipients: %v", len(claimed), err)
	}
	err = s.store.RecordAttempt(t.Context(), store.Attempt{
		RecipientSeq: claimed[0].Seq, MessageSeq: m.Seq, Fence: claimed[0].Fence, Status: store.RecipientDelivered, Response: "250 OK",
	})
	must(t, err)
	return m
}

func TestStreamReportsGaps(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	l := s.listen(t, "")
	s.receive(t, in, "Subject: old")
	l.want("message.received")
	s.clock.Add(store.StreamTTL)
	atLimit := s.listen(t, "", with("Last-Event-ID", l.last))
	s.receive(t, in, "Subject: new")
	atLimit.want("message.received")
	s.clock.Add(time.Millisecond)
	for _, id := range []string{l.last, "evt_00000000000000000000000000", "x"} {
		late := s.listen(t, "", with("Last-Event-ID", id))
		e, err := late.read()
		if err != nil || e.typ != "stream.gap" || e.id != "" {
			t.Fatalf("%s: got %+v, %v, want a gap", id, e, err)
		}
		if err := s.check.Value("StreamGap", []byte(e.data)); err != nil {
			t.Error(err)
		}
		var gap struct {
			LastEventID  string `json:"last_event_id"`
			ReplayedFrom string `json:"replayed_from"`
		}
		if err := json.Unmarshal([]byte(e.data), &gap); err != nil || gap.LastEventID != id || gap.ReplayedFrom != after(time.Millisecond) {
			t.Errorf("gap %+v, %v", gap, err)
		}
		if got := late.next().Data.Subject; got != "new" {
			t.Errorf("%s: after the gap comes %s", id, got)
		}
	}
}

func TestStreamPings(t *testing.T) {
	s := serve(t, func(cfg *handlers.Config) { cfg.StreamPing = time.Millisecond })
	l := s.listen(t, "")
	for range 3 {
		if e, err := l.read(); err != nil || e.comment != "ping" {
			t.Fatalf("got %+v, %v", e, err)
		}
	}
}

func TestStreamsEndWhenTheServiceStops(t *testing.T) {
	s := serve(t)
	l := s.listen(t, "")
	s.endStreams()
	l.wantEnd()
	s.do(t, http.MethodGet, "/v1/events/stream", "").wantError(t, http.StatusServiceUnavailable, "unavailable")
}

// Only open streams count: clients that disconnect can reconnect at once.
func TestStreamsOfAKey(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	s.receive(t, in, "Subject: missed")
	var open []*listener
	for range 10 {
		open = append(open, s.listen(t, ""))
	}
	res := s.do(t, http.MethodGet, "/v1/events/stream", "").wantError(t, http.StatusTooManyRequests, "rate_limited")
	if res.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After %q", res.header.Get("Retry-After"))
	}
	for range 5 {
		for i, l := range open {
			l.hangUp()
			open[i] = s.listen(t, "", with("Last-Event-ID", "evt_0"))
		}
	}
}
