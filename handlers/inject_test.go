package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// lineBreaks are what a reader of a header may take for the end of a line, and what no header
// may contain.
var lineBreaks = []string{`\r`, `\n`, `\r\n`, `\u0000`, `\u0085`, `\u2028`, `\u2029`, `\ud800`, `\u000b`, `\u000c`, `\u007f`}

// No field of a request can add a header or a recipient, and the error names the field (row M9).
func TestHeaderInjection(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := "/v1/messages/" + s.receive(t, in, "Subject: Question\nMessage-ID: <q@out.example>").ID
	inbox, email, batch := "/v1/inboxes/"+in.ID, "/v1/emails", "/v1/emails/batch"
	from := `{"from":"` + sender + `",`
	mail := from + `"to":"a@b.example","subject":"s","text":"t",`
	for _, place := range []struct{ path, body, param string }{
		{inbox + "/messages", `{"to":"a@b.example","subject":%s,"text":"t"}`, "subject"},
		{inbox + "/messages", `{"to":%s,"subject":"s","text":"t"}`, "to"},
		{inbox + "/messages", `{"to":["a@b.example",%s],"subject":"s","text":"t"}`, "to[1]"},
		{inbox + "/messages", `{"to":{"email":%s},"subject":"s","text":"t"}`, "to.email"},
		{inbox + "/messages", `{"to":{"email":"a@b.example","name":%s},"subject":"s","text":"t"}`, "to.name"},
		{inbox + "/messages", `{"to":"a@b.example","cc":[{"email":"a@b.example","name":%s}],"subject":"s","text":"t"}`, "cc[0].name"},
		{inbox + "/messages", `{"to":"a@b.example","bcc":{"email":"a@b.example","name":%s},"subject":"s","text":"t"}`, "bcc.name"},
		{inbox + "/messages", `{"to":"a@b.example","reply_to":%s,"subject":"s","text":"t"}`, "reply_to"},
		{inbox + "/messages", `{"to":"a@b.example","subject":"s","text":"t","headers":{"X-A":%s}}`, "headers.X-A"},
		{inbox + "/messages", `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
		{inbox + "/messages", `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"","content_type":%s}]}`, "attachments[0].content_type"},
		{m + "/reply", `{"text":"t","cc":%s}`, "cc"},
		{m + "/reply", `{"text":"t","bcc":["a@b.example",%s]}`, "bcc[1]"},
		{m + "/reply", `{"text":"t","reply_to":%s}`, "reply_to"},
		{m + "/reply", `{"text":"t","headers":{"X-A":%s}}`, "headers.X-A"},
		{m + "/reply", `{"text":"t","attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
		{m + "/forward", `{"to":%s}`, "to"},
		{m + "/forward", `{"to":{"email":"a@b.example","name":%s}}`, "to.name"},
		{m + "/forward", `{"to":"a@b.example","bcc":{"email":%s}}`, "bcc.email"},
		{m + "/forward", `{"to":"a@b.example","headers":{"X-A":%s}}`, "headers.X-A"},
		{email, `{"from":%s,"to":"a@b.example","subject":"s","text":"t"}`, "from"},
		{email, from + `"to":%s,"subject":"s","text":"t"}`, "to"},
		{email, from + `"to":"a@b.example","subject":%s,"text":"t"}`, "subject"},
		{email, mail + `"cc":%s}`, "cc"},
		{email, mail + `"bcc":[%s]}`, "bcc[0]"},
		{email, mail + `"replyTo":%s}`, "replyTo"},
		{email, mail + `"tags":{"flow":%s}}`, "tags.flow"},
		{email, mail + `"attachments":[{"filename":%s,"content":""}]}`, "attachments[0].filename"},
		{email, mail + `"attachments":[{"filename":"f","content":"","contentType":%s}]}`, "attachments[0].contentType"},
		{batch, from + `"subject":%s,"text":"t","recipients":[{"to":"a@b.example"}]}`, "subject"},
		{batch, from + `"subject":"s","text":"t","recipients":[{"to":"a@b.example"},{"to":%s}]}`, "recipients[1].to"},
		{"/v1/inboxes", `{"display_name":%s}`, "display_name"},
		{"/v1/inboxes", `{"name":%s}`, "name"},
		{"/v1/domains", `{"domain":%s}`, "domain"},
	} {
		for _, lineBreak := range lineBreaks {
			values := []string{`"x@y.example` + lineBreak + `Bcc: victim@z.example"`, `"a` + lineBreak + `b <x@` + mailDomain + `>"`}
			if strings.HasSuffix(strings.ToLower(place.param), "type") {
				values = []string{`"text/plain` + lineBreak + `Bcc: victim@z.example"`}
			}
			for _, value := range values {
				s.do(t, http.MethodPost, place.path, fmt.Sprintf(place.body, value), broken).
					wantError(t, http.StatusBadRequest, "invalid_request "+place.param)
			}
		}
	}
	for _, lineBreak := range []string{`\r\n`, `\n`, `\r`, `\u0085`, `\u2028`} {
		value := `"a` + lineBreak + `Bcc: victim@z.example"`
		s.do(t, http.MethodPatch, inbox, `{"display_name":`+value+`}`, broken).wantError(t, http.StatusBadRequest, "invalid_request display_name")
		// Texts may contain a variable with a line break, and a subject may not.
		s.do(t, http.MethodPost, email, from+`"to":"a@b.example","subject":"{{x}}","text":"t","data":{"x":`+value+`}}`).
			wantError(t, http.StatusBadRequest, "invalid_request data.x")
		s.do(t, http.MethodPost, batch, from+`"subject":"{{x}}","text":"t","recipients":[{"to":"a@b.example","variables":{"x":`+value+`}}]}`).
			wantError(t, http.StatusBadRequest, "invalid_request recipients[0].variables.x")
	}
	for _, name := range []string{`X-A\r\nBcc`, `X-A:`, `X A`, `X-Ä`, ``, `X-\u0000`} {
		res := s.do(t, http.MethodPost, inbox+"/messages", `{"to":"a@b.example","subject":"s","text":"t","headers":{"`+name+`":"x"}}`, broken)
		if res.want(t, http.StatusBadRequest); !strings.HasPrefix(res.str(t, "error.param"), "headers") {
			t.Errorf("%q: %s", name, res.body)
		}
	}
	for _, list := range []string{"/v1/messages?direction=out", email} {
		if got := s.do(t, http.MethodGet, list, "").want(t, http.StatusOK); len(got.strs(t, "data", "id")) != 0 {
			t.Errorf("something was sent: %s", got.body)
		}
	}
}

// A body may contain anything and stays in the body.
func TestBodiesAreFree(t *testing.T) {
	s := serve(t)
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
}

func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String() + `"`
}
