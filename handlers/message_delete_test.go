package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

// A deleted message is gone from lists, links, threads, cached responses, blobs
// and its former draft.
func TestDeleteMessage(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	first := s.receive(t, in, "From: ann@out.example\nMessage-ID: <1@out.example>\nSubject: Order")
	s.clock.Add(time.Minute)
	large := s.receive(t, in, "From: eve@out.example\nIn-Reply-To: <1@out.example>\nSubject: Re: Order\n\n"+strings.Repeat("secret ", 60_000))
	s.clock.Add(time.Minute)
	mail := s.do(t, http.MethodPost, "/v1/messages/"+first.ID+"/reply", `{"text":"secret"}`, with(idempotencyKey, "k")).want(t, http.StatusCreated)
	link := s.rawLink(t, large)
	thread := func() []string {
		t.Helper()
		return s.texts(t, `SELECT id || ' ' || subject || ' ' || message_count || ' ' || last_message_at || ' ' || participants FROM threads`)
	}
	wantThread := func(subject string, count int, last time.Duration, people string) {
		t.Helper()
		want := fmt.Sprintf(`%s %s %d %d %s`, first.ThreadID, subject, count, begin.Add(last).UnixMicro(), strings.ReplaceAll(people, "OWN", in.Address))
		if d := cmp.Diff([]string{want}, thread()); d != "" {
			t.Errorf("the thread: -want +got:\n%s", d)
		}
	}
	wantThread("Order", 3, 2*time.Minute, `["ann@out.example","OWN","eve@out.example"]`)

	remove := func(id string, opts ...option) response {
		return s.do(t, http.MethodDelete, "/v1/messages/"+id, "", opts...)
	}
	remove(large.ID, as(s.newKey(t, scopes("send", "read")))).wantError(t, http.StatusForbidden, "insufficient_scope")
	remove(large.ID, as(s.newKey(t, onlyInboxes()))).wantError(t, http.StatusNotFound, "not_found")
	remove(large.ID).want(t, http.StatusOK).wantAt(t, "deleted", `true`)
	remove(large.ID).wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodGet, "/v1/messages/"+large.ID, "").want(t, http.StatusNotFound)
	s.do(t, http.MethodGet, link, "", as("")).want(t, http.StatusNotFound)
	wantThread("Order", 2, 2*time.Minute, `["ann@out.example","OWN"]`)

	remove(mail.str(t, "id")).want(t, http.StatusOK)
	wantThread("Order", 1, 0, `["ann@out.example","OWN"]`)
	remove(first.ID).want(t, http.StatusOK)
	if left := thread(); len(left) != 0 {
		t.Errorf("a thread without messages: %v", left)
	}
	for _, table := range []string{"messages", "contents", "recipients"} {
		if left := s.texts(t, `SELECT 'x' FROM `+table); len(left) != 0 {
			t.Errorf("%d rows are left in %s", len(left), table)
		}
	}
	if left := s.texts(t, `SELECT body FROM idempotency`); len(left) != 1 || left[0] != "" {
		t.Errorf("the cached responses are %q", left)
	}
	if n, err := s.store.SweepBlobs(t.Context()); n != 0 || err != nil {
		t.Errorf("%d blobs were left: %v", n, err)
	}
	if got := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID, "").at(t, "last_message_at"); got != nil {
		t.Errorf("last_message_at is %v", got)
	}
}

// The content of a sent draft is deleted with its message. A pending draft
// based on a deleted message stays.
func TestDeletedMessageAndItsDrafts(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	source := s.receive(t, in, "Subject: Hi\n\nsecret")
	forward := func() response {
		return s.do(t, http.MethodPost, "/v1/messages/"+source.ID+"/forward", `{"to":"ann@out.example"}`, with(idempotencyKey, fmt.Sprint(count.Add(1)))).
			want(t, http.StatusAccepted)
	}
	sent, rejected, pending := forward(), forward(), forward()
	m := s.do(t, http.MethodPost, draftPath(t, sent, "/send"), "").want(t, http.StatusCreated)
	s.do(t, http.MethodPost, draftPath(t, rejected, "/reject"), "").want(t, http.StatusOK)

	s.do(t, http.MethodDelete, "/v1/messages/"+m.str(t, "id"), "").want(t, http.StatusOK)
	s.wantDraft(t, sent, true)
	s.wantDraft(t, rejected, false)
	s.do(t, http.MethodDelete, "/v1/messages/"+source.ID, "").want(t, http.StatusOK)
	s.wantDraft(t, rejected, true)
	s.wantDraft(t, pending, false)
	s.do(t, http.MethodPost, draftPath(t, pending, "/send"), "").want(t, http.StatusCreated)
}

// wantDraft fails the test unless the content of a draft is gone or present, as
// wanted.
func (s *server) wantDraft(t *testing.T, d response, gone bool) {
	t.Helper()
	got := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
	if got.at(t, "expired") != gone || (got.at(t, "text") == nil) != gone {
		t.Errorf("expired should be %t: %s", gone, got.body)
	}
	id := d.str(t, "id")
	if cached := s.texts(t, `SELECT body FROM idempotency WHERE resource_id = $1 AND body <> ''`, id); gone && len(cached) != 0 {
		t.Errorf("a cached response still has the draft: %v", cached)
	}
}
