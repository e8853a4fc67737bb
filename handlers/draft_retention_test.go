package handlers_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// Row C15 for drafts: their content expires with the retention of the inbox,
// that of a forward with its original, and the rest later. No trace remains.
func TestDraftsExpire(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		in := s.newInbox(t, policy(store.PolicyApproval), func(in *store.Inbox) { in.RetentionDays = 2 })
		source := s.receive(t, in, "Subject: Hi\n\n"+mark)
		s.clock.Add(24 * time.Hour)
		file := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(mark, store.RawInRow/len(mark)+1)))
		fresh := s.newDraft(t, in, `{"to":"ann@out.example","subject":"s","text":"`+mark+`","html":"`+mark+`","headers":{"X-A":"`+mark+`"},
			"attachments":[{"filename":"a.txt","content":"`+file+`"}]}`, with(idempotencyKey, "fresh"))
		forward := s.do(t, http.MethodPost, "/v1/messages/"+source.ID+"/forward", `{"to":"ann@out.example"}`, with(idempotencyKey, "forward")).
			want(t, http.StatusAccepted)
		rejected := s.newDraft(t, in, `{"to":"ann@out.example","subject":"s","text":"`+mark+`"}`)
		s.do(t, http.MethodPost, draftPath(t, rejected, "/reject"), "{}", with(idempotencyKey, "rejected")).want(t, http.StatusOK)

		s.clock.Add(24*time.Hour - time.Minute)
		s.maintain(t)
		s.wantDraft(t, forward, false)
		s.clock.Add(2 * time.Minute) // two days after the original arrived
		before := s.do(t, http.MethodGet, draftPath(t, forward), "").want(t, http.StatusOK)
		before.wantAt(t, "text", "null") // the work has not run
		s.maintain(t)
		s.wantDraft(t, forward, true)
		s.wantDraft(t, fresh, false)
		s.do(t, http.MethodPost, draftPath(t, forward, "/send"), "").wantError(t, http.StatusGone, "message_expired")
		s.do(t, http.MethodPatch, draftPath(t, forward), `{"text":"t"}`).wantError(t, http.StatusGone, "message_expired")

		s.clock.Add(24 * time.Hour)
		s.maintain(t)
		for _, d := range []response{fresh, rejected} {
			s.wantDraft(t, d, true)
		}
		if found := s.remnants(t, mark); len(found) != 0 {
			t.Errorf("it is still in %v", found)
		}
		got := s.do(t, http.MethodGet, draftPath(t, fresh), "").want(t, http.StatusOK)
		for path, want := range map[string]string{"status": `"pending"`, "subject": `"s"`, "attachments": `[]`, "headers": `{}`, "html": `null`} {
			got.wantAt(t, path, want)
		}
		s.do(t, http.MethodPost, draftPath(t, fresh, "/reject"), "").want(t, http.StatusOK)

		s.clock.Add(store.RecordTTL + 24*time.Hour)
		s.maintain(t)
		if left := s.pages(t, "/v1/drafts"); len(left) != 0 {
			t.Errorf("drafts are left: %v", left)
		}
	})
}
