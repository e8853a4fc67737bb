package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Row M9 for emails and batches: no kind of line break gets into a header, and
// the error names the field.
func TestHeaderInjectionOfEmails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		const one, many = "/v1/emails", "/v1/emails/batch"
		from := `{"from":"` + sender + `",`
		places := []struct{ path, body, param string }{
			{one, `{"from":%s,"to":"a@b.example","subject":"s","text":"t"}`, "from"},
			{one, from + `"to":%s,"subject":"s","text":"t"}`, "to"},
			{one, from + `"to":["a@b.example",%s],"subject":"s","text":"t"}`, "to[1]"},
			{one, from + `"to":"a@b.example","cc":%s,"subject":"s","text":"t"}`, "cc"},
			{one, from + `"to":"a@b.example","bcc":[%s],"subject":"s","text":"t"}`, "bcc[0]"},
			{one, from + `"to":"a@b.example","replyTo":%s,"subject":"s","text":"t"}`, "replyTo"},
			{one, from + `"to":"a@b.example","subject":%s,"text":"t"}`, "subject"},
			{one, from + `"to":"a@b.example","subject":"s","text":"t","tags":{"flow":%s}}`, "tags.flow"},
			{one, from + `"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
			{one, from + `"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"","contentType":%s}]}`, "attachments[0].contentType"},
			{many, from + `"subject":%s,"text":"t","recipients":[{"to":"a@b.example"}]}`, "subject"},
			{many, from + `"subject":"s","text":"t","recipients":[{"to":"a@b.example"},{"to":%s}]}`, "recipients[1].to"},
		}
		breaks := []string{`\r\n`, `\n`, `\r`, `\u0000`, `\u0085`, `\u2028`, `\ud800`}
		for _, place := range places {
			for _, lineBreak := range breaks {
				for _, value := range []string{`"x@y.example` + lineBreak + `Bcc: victim@z.example"`, `"a` + lineBreak + `b <x@` + mailDomain + `>"`} {
					s.do(t, http.MethodPost, place.path, fmt.Sprintf(place.body, value), broken).
						wantError(t, http.StatusBadRequest, "invalid_request "+place.param)
				}
			}
		}
		for _, lineBreak := range []string{`\r\n`, `\n`, `\r`, `\u0085`, `\u2028`} { // in variables, which texts may contain
			value := `"a` + lineBreak + `Bcc: victim@z.example"`
			s.do(t, http.MethodPost, one, from+`"to":"a@b.example","subject":"{{x}}","text":"t","data":{"x":`+value+`}}`).
				wantError(t, http.StatusBadRequest, "invalid_request data.x")
			s.do(t, http.MethodPost, many, from+`"subject":"{{x}}","text":"t","recipients":[{"to":"a@b.example","variables":{"x":`+value+`}}]}`).
				wantError(t, http.StatusBadRequest, "invalid_request recipients[0].variables.x")
		}
		if list := s.do(t, http.MethodGet, one, "").want(t, http.StatusOK); !strings.Contains(string(list.body), `"data":[]`) {
			t.Errorf("something was sent: %s", list.body)
		}
	})
}
