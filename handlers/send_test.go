package handlers_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	netmail "net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// sent parses the raw form of an accepted message.
func (s *server) sent(t *testing.T, res response) *mime.Message {
	t.Helper()
	m, err := mime.Parse(bytes.NewReader(s.sentRaw(t, res)), mail.DefaultLimits())
	must(t, err)
	return m
}

func (s *server) sentRaw(t *testing.T, res response) []byte {
	t.Helper()
	res.want(t, http.StatusCreated)
	link := s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id")+"/raw", "").want(t, http.StatusFound).header.Get("Location")
	return s.do(t, http.MethodGet, s.linked(t, link), "", as("")).want(t, http.StatusOK).body
}

func TestSendMessage(t *testing.T) {
	s := serve(t)
	name := "Signup Agent"
	in := s.newInbox(t, func(in *store.Inbox) { in.DisplayName = &name })
	res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{
			"to": ["ann@out.example", {"email": "Bob@Out.example", "name": "Bob, the other"}], "cc": {"email": "carl@out.example", "name": null},
			"bcc": "dora@out.example", "reply_to": [{"email": "replies@out.example", "name": "Replies"}],
			"subject": "Grüße 😀", "text": "Hello.\n.\nBye", "html": "<p>Hello</p>", "headers": {"X-Order": "1042", "Auto-Submitted": "auto-generated"},
			"attachments": [{"filename": "Größe.txt", "content": "AP8KDQo=", "content_type": "text/plain"}]}`).want(t, http.StatusCreated)
	for path, want := range map[string]string{
		"direction":      `"out"`,
		"status":         `"queued"`,
		"from":           `{"email":"` + in.Address + `","name":"Signup Agent"}`,
		"to":             `[{"email":"ann@out.example","name":null},{"email":"Bob@out.example","name":"Bob, the other"}]`,
		"cc":             `[{"email":"carl@out.example","name":null}]`,
		"bcc":            `[{"email":"dora@out.example","name":null}]`,
		"reply_to":       `[{"email":"replies@out.example","name":"Replies"}]`,
		"subject":        `"Grüße 😀"`,
		"html":           `"<p>Hello</p>"`,
		"extracted":      `null`,
		"extracted_text": `null`,
		"auth":           `null`,
		"automated":      `true`,
		"truncated":      `false`,
		"received_at":    `null`,
		"sent_at":        `null`,
		"test_mode":      `false`,
		"in_reply_to":    `[]`,
		"references":     `[]`,
		"created_at":     `"2026-09-23T10:00:00.000Z"`,

		"attachments.0.filename":     `"Größe.txt"`,
		"attachments.0.content_type": `"text/plain"`,
		"attachments.0.size":         `5`,
	} {
		res.wantAt(t, path, want)
	}
	if text := res.str(t, "text"); !strings.HasPrefix(text, "Hello.\n.\nBye") {
		t.Errorf("text %q", text)
	}
	if d := cmp.Diff([]string{"ann@out.example", "Bob@out.example", "carl@out.example", "dora@out.example"}, res.strs(t, "recipients", "email")); d != "" {
		t.Errorf("recipients: -want +got:\n%s", d)
	}
	if d := cmp.Diff([]string{"to", "to", "cc", "bcc"}, res.strs(t, "recipients", "kind")); d != "" {
		t.Errorf("kinds: -want +got:\n%s", d)
	}
	s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id"), "").want(t, http.StatusOK).wantSame(t, res)

	raw := s.sentRaw(t, res)
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	must(t, err)
	if bytes.Contains(raw, []byte("dora")) {
		t.Error("the message shows a Bcc")
	}
	for header, want := range map[string]string{
		"From": `"Signup Agent" <` + in.Address + `>`, "X-Order": "1042", "Auto-Submitted": "auto-generated",
		"Date": "Wed, 23 Sep 2026 10:00:00 +0000", "Message-Id": res.str(t, "rfc_message_id"), "In-Reply-To": "", "Bcc": "",
	} {
		if got := m.Header.Get(header); strings.ReplaceAll(got, `"`, "") != strings.ReplaceAll(want, `"`, "") {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	att := s.do(t, http.MethodGet, "/v1/messages/"+res.str(t, "id")+"/attachments/"+res.str(t, "attachments.0.id"), "").want(t, http.StatusOK)
	got := s.do(t, http.MethodGet, s.linked(t, att.str(t, "download_url")), "", as("")).want(t, http.StatusOK)
	if string(got.body) != "\x00\xff\n\r\n" {
		t.Errorf("the attachment became %q", got.body)
	}
}

func TestSendShapes(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	tests := []struct {
		name, fields string
		to, cc, bcc  string // in the response, joined by spaces
	}{
		{"one text", `"to":"a@b.example"`, "a@b.example", "", ""},
		{"one object", `"to":{"email":"a@b.example"}`, "a@b.example", "", ""},
		{"a list of both", `"to":["a@b.example",{"email":"c@d.example","name":"C"}]`, "a@b.example c@d.example", "", ""},
		{"empty lists of copies", `"to":"a@b.example","cc":[],"bcc":[]`, "a@b.example", "", ""},
		{"one copy", `"to":"a@b.example","cc":"c@d.example","bcc":"e@f.example"`, "a@b.example", "c@d.example", "e@f.example"},
		{"the same address twice", `"to":["a@b.example","A@B.example"]`, "a@b.example", "", ""},
		{"the same address in all fields", `"to":"a@b.example","cc":["a@b.example","c@d.example"],"bcc":["C@d.example","a@b.example","e@f.example"]`, "a@b.example", "c@d.example", "e@f.example"},
		{"50 addresses", `"to":` + manyAddresses(50), strings.Join(strings.Split(strings.Trim(manyAddresses(50), `[]"`), `","`), " "), "", ""},
		{"its own address", `"to":"` + in.Address + `"`, in.Address, "", ""},
		{"an address beyond ASCII", `"to":"jürgen@grüße.example"`, "jürgen@grüße.example", "", ""},
		{"a quoted local part", `"to":"\"a b\"@c.example"`, `"a b"@c.example`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{`+tt.fields+`,"subject":"s","text":"t"}`).want(t, http.StatusCreated)
			for field, want := range map[string]string{"to": tt.to, "cc": tt.cc, "bcc": tt.bcc} {
				if got := strings.Join(res.strs(t, field, "email"), " "); got != want {
					t.Errorf("%s is %q, want %q", field, got, want)
				}
			}
		})
	}
}

func manyAddresses(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"a%d@b.example"`, i)
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestSendRefuses(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	tests := []struct{ name, fields, want string }{
		{"no body", `"to":"a@b.example","subject":"s"`, "content_required text"},
		{"empty bodies", `"to":"a@b.example","subject":"s","text":"","html":""`, "content_required text"},
		{"an address that the contract accepts, but not RFC 5321", `"to":["a@b.example","a..b@c.example"],"subject":"s","text":"t"`, "invalid_request to[1]"},
		{"such an address in an object", `"bcc":{"email":".a@b.example"},"to":"a@b.example","subject":"s","text":"t"`, "invalid_request bcc.email"},
		{"a domain without letters", `"to":"a@-","subject":"s","text":"t"`, "invalid_request to"},
		{"an unclosed bracket", `"to":"Ann <a@b.example","subject":"s","text":"t"`, "invalid_request to"},
		{"an attachment with a name of 256 bytes", `"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"` + strings.Repeat("ä", 128) + `","content":""}]`, "invalid_request attachments[0].filename"},
		{"an invalid type", `"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"","content_type":"pdf"}]`, "invalid_request attachments[0].content_type"},
		{"a header that is ours", `"to":"a@b.example","subject":"s","text":"t","headers":{"X-A":"b","message-ID":"<a@b>"}`, "invalid_request headers.message-ID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{`+tt.fields+`}`, broken).wantError(t, http.StatusBadRequest, tt.want)
		})
	}
	for _, name := range []string{
		"From", "sender", "Return-Path", "BCC", "DKIM-Signature", "dkim-x", "Received", "Message-ID", "Date", "To", "Cc", "Subject",
		"Reply-To", "MIME-Version", "Content-Type", "Content-Transfer-Encoding", "ARC-Seal", "Resent-From", "Delivered-To",
	} {
		s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t","headers":{"`+name+`":"x"}}`).
			wantError(t, http.StatusBadRequest, "invalid_request headers."+name)
	}
	if got := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages", "").want(t, http.StatusOK); string(got.body) == "" || len(got.strs(t, "data", "id")) != 0 {
		t.Errorf("something was sent: %s", got.body)
	}
}

func TestTextIsMadeFromHTML(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","html":"<p>Hello <b>you</b></p>"}`).want(t, http.StatusCreated)
	if !strings.Contains(res.str(t, "text"), "Hello you") {
		t.Errorf("text %q", res.str(t, "text"))
	}
	if m := s.sent(t, res); !strings.Contains(m.Text, "Hello you") || m.HTML == "" {
		t.Errorf("read back as %+v", m)
	}
}

// maxAttached limits the attachments of a message together.
const maxAttached = 40 << 20

func TestAttachmentLimit(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	path := "/v1/inboxes/" + in.ID + "/messages"
	body := func(sizes ...int) string {
		list := make([]string, len(sizes))
		for i, n := range sizes {
			list[i] = `{"filename":"f` + fmt.Sprint(i) + `","content":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), n)) + `"}`
		}
		return `{"to":"a@b.example","subject":"s","text":"t","attachments":[` + strings.Join(list, ",") + `]}`
	}
	res := s.do(t, http.MethodPost, path, body(maxAttached-10, 10)).want(t, http.StatusCreated)
	res.wantAt(t, "attachments.0.size", fmt.Sprint(maxAttached-10))
	s.do(t, http.MethodPost, path, body(maxAttached-10, 11)).wantError(t, http.StatusBadRequest, "invalid_request attachments")
	email := func(sizes ...int) string { return strings.Replace(body(sizes...), "{", `{"from":"`+sender+`",`, 1) }
	s.do(t, http.MethodPost, "/v1/emails", email(maxAttached-10, 10)).want(t, http.StatusCreated)
	s.do(t, http.MethodPost, "/v1/emails", email(maxAttached-10, 11)).wantError(t, http.StatusBadRequest, "invalid_request attachments")
	s.do(t, http.MethodPost, path, body(0)).want(t, http.StatusCreated).wantAt(t, "attachments.0.size", `0`)
	s.do(t, http.MethodPost, "/v1/messages/"+res.str(t, "id")+"/forward", `{"to":"a@b.example","attachments":[{"filename":"f","content":"eA=="}]}`).
		wantError(t, http.StatusBadRequest, "invalid_request attachments")
}

// A text reads back unchanged, with and without a final line break, in any kind
// of message.
func TestTextReadsBackAsGiven(t *testing.T) {
	large := strings.Repeat("line\n", 8<<10)
	s := serve(t)
	path := "/v1/inboxes/" + s.newInbox(t).ID + "/messages"
	for _, text := range []string{"t", "t\n", "t\n\n", "\n", "ü", "ü\n", "验证码", "验证码\n", large, large + "end"} {
		given, err := json.Marshal(text)
		must(t, err)
		for _, more := range []string{``, `,"html":"<p>t</p>"`, `,"attachments":[{"filename":"f","content":"eA=="}]`} {
			sent := s.do(t, http.MethodPost, path, `{"to":"a@b.example","subject":"s","text":`+string(given)+more+`}`).want(t, http.StatusCreated)
			read := s.do(t, http.MethodGet, "/v1/messages/"+sent.str(t, "id"), "").want(t, http.StatusOK)
			for when, res := range map[string]response{"sent": sent, "read": read} {
				if got := res.str(t, "text"); got != text {
					t.Errorf("%s with %q: %.20q of %d bytes, given %.20q of %d", when, more, got, len(got), text, len(text))
				}
			}
		}
	}
}
