package handlers_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Derived fields of a message are computed once, when it is received, not when
// it is read. Lists are summaries unless include=text.
func TestReadsShowWhatWasStored(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	reply := "the stored reply"
	m := storetest.Received(t, s.store, in, func(m *store.NewMessage) {
		m.Truncated = true
		code := "482913"
		m.Content.Snippet = "Hello."
		m.Content.Extracted = &store.JSON[mail.Extraction]{V: mail.Extraction{OTP: &code, Codes: []string{code}}}
		m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "pass", DKIM: "none", DMARC: "none"}}
		m.Content.Attachments.V = []mail.Attachment{{ID: "att_1", Filename: "order.pdf", ContentType: "application/pdf"}}
		m.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: "the stored text", HTML: "<p>Other</p>", Reply: &reply}}
	})
	shown := func(prefix string, res response) {
		t.Helper()
		res.wantAt(t, prefix+"text", `"the stored text"`)
		res.wantAt(t, prefix+"extracted_text", `"the stored reply"`)
		res.wantAt(t, prefix+"truncated", `true`)
	}
	shown("", s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK))
	for _, path := range []string{"/v1/inboxes/" + in.ID + "/messages", "/v1/messages"} {
		shown("data.0.", s.do(t, http.MethodGet, path+"?include=text", "").want(t, http.StatusOK))
		listed := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
		for field, want := range map[string]string{
			"text": "null", "extracted_text": "null", "html": "null", "truncated": "true", "snippet": `"Hello."`,
			"extracted.otp": `"482913"`, "attachments.0.filename": `"order.pdf"`, "auth.spf": `"pass"`,
		} {
			listed.wantAt(t, "data.0."+field, want)
		}
		s.do(t, http.MethodGet, path+"?include=html", "", brokenIf(http.StatusBadRequest)).wantError(t, http.StatusBadRequest, "invalid_request include")
	}
	shown("message.", s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?since=2020-01-01T00:00:00Z", "").want(t, http.StatusOK))
	shown("messages.0.", s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads/"+m.ThreadID, "").want(t, http.StatusOK))
}
