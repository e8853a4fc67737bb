package handlers_test

import (
	"fmt"
	"net/http"
	"testing"
)

// Row M9 for replies, forwards, drafts and inboxes: no kind of line break gets
// into a header, and the error names the field.
func TestHeaderInjectionOfReplies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		m := s.receive(t, in, "Subject: Question\nMessage-ID: <q@out.example>")
		reply, forward, inbox := "/v1/messages/"+m.ID+"/reply", "/v1/messages/"+m.ID+"/forward", "/v1/inboxes/"+in.ID
		places := []struct{ method, path, body, param string }{
			{"POST", reply, `{"text":"t","cc":%s}`, "cc"},
			{"POST", reply, `{"text":"t","bcc":["a@b.example",%s]}`, "bcc[1]"},
			{"POST", reply, `{"text":"t","cc":{"email":"a@b.example","name":%s}}`, "cc.name"},
			{"POST", reply, `{"text":"t","reply_to":%s}`, "reply_to"},
			{"POST", reply, `{"text":"t","headers":{"X-A":%s}}`, "headers.X-A"},
			{"POST", reply, `{"text":"t","attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
			{"POST", reply, `{"text":"t","attachments":[{"filename":"f","content":"","content_type":%s}]}`, "attachments[0].content_type"},
			{"POST", forward, `{"to":%s}`, "to"},
			{"POST", forward, `{"to":{"email":"a@b.example","name":%s}}`, "to.name"},
			{"POST", forward, `{"to":"a@b.example","cc":[%s]}`, "cc[0]"},
			{"POST", forward, `{"to":"a@b.example","bcc":{"email":%s}}`, "bcc.email"},
			{"POST", forward, `{"to":"a@b.example","headers":{"X-A":%s}}`, "headers.X-A"},
			{"PATCH", inbox, `{"display_name":%s}`, "display_name"},
		}
		breaks := []string{`\r\n`, `\n`, `\r`, `\u0000`, `\u0085`, `\u2028`, `\ud800`}
		if n := len(places) * len(breaks); n < 60 {
			t.Errorf("%d cases", n)
		}
		for _, place := range places {
			for _, lineBreak := range breaks {
				value := `"x@y.example` + lineBreak + `Bcc: victim@z.example"`
				s.do(t, place.method, place.path, fmt.Sprintf(place.body, value), broken).
					wantError(t, http.StatusBadRequest, "invalid_request "+place.param)
			}
		}
		if ids := s.pages(t, "/v1/messages?direction=out"); len(ids) != 0 {
			t.Errorf("%d messages were sent", len(ids))
		}
		s.do(t, http.MethodGet, inbox, "").want(t, http.StatusOK).wantAt(t, "display_name", "null")
	})
}
