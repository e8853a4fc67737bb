package handlers_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Derived fields of a message are computed once, when it is received, not when
// it is read.
func TestReadsShowWhatWasStored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		reply := "the stored reply"
		m := storetest.Received(t, s.store, in, func(m *store.NewMessage) {
			m.Truncated = true
			m.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: "the stored text", HTML: "<p>Other</p>", Reply: &reply, Derived: true}}
		})
		shown := func(prefix string, res response) {
			t.Helper()
			res.wantAt(t, prefix+"text", `"the stored text"`)
			res.wantAt(t, prefix+"extracted_text", `"the stored reply"`)
			res.wantAt(t, prefix+"truncated", `true`)
		}
		shown("", s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK))
		shown("data.0.", s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages", "").want(t, http.StatusOK))
		shown("data.0.", s.do(t, http.MethodGet, "/v1/messages", "").want(t, http.StatusOK))
		shown("message.", s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?since=2020-01-01T00:00:00Z", "").want(t, http.StatusOK))
		shown("messages.0.", s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads/"+m.ThreadID, "").want(t, http.StatusOK))
	})
}
