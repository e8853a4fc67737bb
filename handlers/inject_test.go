package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// No field of a request can add a header or a recipient (row M9).
func TestHeaderInjection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		places := []struct{ body, param string }{
			{`{"to":"a@b.example","subject":%s,"text":"t"}`, "subject"},
			{`{"to":%s,"subject":"s","text":"t"}`, "to"},
			{`{"to":["a@b.example",%s],"subject":"s","text":"t"}`, "to[1]"},
			{`{"to":{"email":%s},"subject":"s","text":"t"}`, "to.email"},
			{`{"to":{"email":"a@b.example","name":%s},"subject":"s","text":"t"}`, "to.name"},
			{`{"to":"a@b.example","cc":[{"email":"a@b.example","name":%s}],"subject":"s","text":"t"}`, "cc[0].name"},
			{`{"to":"a@b.example","bcc":{"email":"a@b.example","name":%s},"subject":"s","text":"t"}`, "bcc.name"},
			{`{"to":"a@b.example","reply_to":%s,"subject":"s","text":"t"}`, "reply_to"},
			{`{"to":"a@b.example","subject":"s","text":"t","headers":{"X-A":%s}}`, "headers.X-A"},
			{`{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
			{`{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"","content_type":%s}]}`, "attachments[0].content_type"},
		}
		for _, place := range places {
			for _, breaks := range []string{`\r`, `\n`, `\r\n`, `\u0000`, `\u0085`, `\u2028`, `\u2029`, `\ud800`, `\u000b`, `\u000c`, `\u007f`} {
				value := `"x@y.example` + breaks + `Bcc: victim@z.example"`
				if strings.HasSuffix(place.param, "type") {
					value = `"text/plain` + breaks + `Bcc: victim@z.example"`
				}
				s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", fmt.Sprintf(place.body, value), broken).
					wantError(t, http.StatusBadRequest, "invalid_request "+place.param)
			}
		}
		for _, name := range []string{`X-A\r\nBcc`, `X-A:`, `X A`, `X-Ä`, ``, `X-\u0000`} {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t","headers":{"`+name+`":"x"}}`, broken)
			if res.want(t, http.StatusBadRequest); !strings.HasPrefix(res.str(t, "error.param"), "headers") {
				t.Errorf("%q: %s", name, res.body)
			}
		}
		for _, body := range []string{`{"display_name":%s}`, `{"name":%s}`, `{"domain":%s}`} {
			for _, breaks := range []string{`\r\n`, `\n`, `\u0000`, `\u2028`} {
				s.do(t, http.MethodPost, "/v1/inboxes", fmt.Sprintf(body, `"a`+breaks+`Bcc: x"`), broken).want(t, http.StatusBadRequest)
			}
		}
		for _, breaks := range []string{`\r`, `\n`, `\r\n`, `\u0000`, `\u0085`, `\u2028`, `\u2029`, `\ud800`, `\u000b`, `\u000c`, `\u007f`, ` `, `;`, `\"`} {
			s.do(t, http.MethodPost, "/v1/domains", `{"domain":"ann`+breaks+`x.example"}`, broken).wantError(t, http.StatusBadRequest, "invalid_request domain")
		}
		if got := s.do(t, http.MethodGet, "/v1/messages", "").want(t, http.StatusOK); len(got.strs(t, "data", "id")) != 0 {
			t.Errorf("something was sent: %s", got.body)
		}
	})
}

// A body may contain anything and stays in the body.
func TestBodiesAreFree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		text := "a\r\n.\r\nb\rc\nd\u2028e\u0085f\vBcc: victim@z.example\r\n\r\nFrom: x\r\n.\r\n"
		res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":`+jsonText(text)+`}`).want(t, http.StatusCreated)
		m := s.sent(t, res)
		if len(m.Bcc) != 0 || len(m.To) != 1 || !strings.Contains(m.Text, "Bcc: victim@z.example") || m.From.Email != in.Address {
			t.Errorf("read back as %+v", m)
		}
		for i, c := range s.sentRaw(t, res) {
			if c == '\n' && (i == 0 || s.sentRaw(t, res)[i-1] != '\r') {
				t.Fatalf("a bare line feed at %d", i)
			}
		}
	})
}

func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String() + `"`
}
