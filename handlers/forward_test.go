package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages with any header can be replied to and forwarded.
func TestReplyAndForwardAcceptAnyHeader(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for name, header := range map[string]string{
		"a line break in the subject":       "Subject: =?utf-8?q?a=0D=0ABcc:_x@y.example?=",
		"a control character":               "Subject: a\x01\x7fb",
		"a line separator":                  "Subject: =?utf-8?q?a=E2=80=A8b?=",
		"a subject of 10,000 characters":    "Subject: " + strings.Repeat("long ", 2000),
		"a name with a line break":          "From: =?utf-8?q?a=0Ab?= <ann@out.example>\nSubject: Hi",
		"a name of 1,000 characters":        "From: \"" + strings.Repeat("n", 1000) + "\" <ann@out.example>\nSubject: Hi",
		"a malformed id":                    "Message-ID: nothing <> < a@b > <c d@e>\nSubject: Hi",
		"an id of 2,000 characters":         "Message-ID: <" + strings.Repeat("i", 2000) + "@b>\nSubject: Hi",
		"malformed references":              "References: what you said\nIn-Reply-To: your message\nSubject: Hi",
		"a header that is not UTF-8":        "From: \xff\xfe <ann@out.example>\nSubject: \xff",
		"a part with a strange type":        "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Type: what/is;this\nContent-ID: a b\nContent-Disposition: attachment; filename=\"a\x01\u2028b\"\n\nx\n--b--",
		"a part with a name of 1,000 bytes": "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Disposition: attachment; filename=\"" + strings.Repeat("f", 1000) + "\"\n\nx\n--b--",
		"a part without a name":             "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Disposition: attachment\n\nx\n--b--",
		"a message in a message":            "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Type: message/rfc822\n\nSubject: Inner\n\nx\n--b--",
		"a text with a NUL":                 "Subject: Hi\n\na\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := s.receive(t, in, header)
			s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
			s.sent(t, s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t","reply_all":true}`))
			forwarded := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"bob@out.example"}`)
			if got := s.sent(t, forwarded); len(got.Attachments) != len(m.Content.Attachments.V) {
				t.Errorf("%d attachments became %d", len(m.Content.Attachments.V), len(got.Attachments))
			}
		})
	}
}

func TestForward(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, fmt.Sprintf(multipart, in.Address))
	path := "/v1/messages/" + m.ID + "/forward"
	res := s.do(t, http.MethodPost, path, `{"to":{"email":"ben@out.example","name":"Ben"},"cc":"carl@out.example","text":"For your files."}`).want(t, http.StatusCreated)
	res.wantAt(t, "subject", `"Fwd: Grüße"`)
	res.wantAt(t, "to", `[{"email":"ben@out.example","name":"Ben"}]`)
	res.wantAt(t, "in_reply_to", `[]`)
	res.wantAt(t, "references", `[]`)
	if res.str(t, "thread_id") == m.ThreadID {
		t.Error("it opens no new thread")
	}
	text := res.str(t, "text")
	note, original := strings.Index(text, "For your files."), strings.Index(text, "Your code is 482913")
	if note != 0 || original < note || !strings.Contains(text, "ann@out.example") || !strings.Contains(text, "Grüße") {
		t.Errorf("text %q", text)
	}
	if d := cmp.Diff([]string{"Grüße.pdf"}, res.strs(t, "attachments", "filename")); d != "" {
		t.Errorf("attachments: -want +got:\n%s", d)
	}
	if got := s.sent(t, res); len(got.Attachments) != 1 || got.Attachments[0].ContentType != "application/pdf" || got.Attachments[0].Size != 8 {
		t.Errorf("the mail carries %+v", got.Attachments)
	}

	without := s.do(t, http.MethodPost, path, `{"to":"ben@out.example","include_attachments":false}`).want(t, http.StatusCreated)
	without.wantAt(t, "attachments", `[]`)
	more := s.do(t, http.MethodPost, path, `{"to":"ben@out.example","attachments":[{"filename":"mine.txt","content":"eA=="}]}`).want(t, http.StatusCreated)
	if d := cmp.Diff([]string{"mine.txt", "Grüße.pdf"}, more.strs(t, "attachments", "filename")); d != "" {
		t.Errorf("further attachments: -want +got:\n%s", d)
	}
	twice := s.do(t, http.MethodPost, "/v1/messages/"+res.str(t, "id")+"/forward", `{"to":"ben@out.example"}`).want(t, http.StatusCreated)
	twice.wantAt(t, "subject", `"Fwd: Grüße"`)

	s.do(t, http.MethodPost, path, `{}`, broken).wantError(t, http.StatusBadRequest, "invalid_request to")
	s.do(t, http.MethodPost, path, `{"to":[]}`, broken).wantError(t, http.StatusBadRequest, "invalid_request to")
	s.do(t, http.MethodPost, path, `{"to":"a@b.example","subject":"s"}`, broken).wantError(t, http.StatusBadRequest, "invalid_request subject")
}

func TestForwardOfHTML(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: <Hi>\nMIME-Version: 1.0\nContent-Type: text/html\n\n<html><body><p>Hello <b>you</b></p></body></html>")
	path := "/v1/messages/" + m.ID + "/forward"
	plain := s.do(t, http.MethodPost, path, `{"to":"ben@out.example","text":"Look & see"}`).want(t, http.StatusCreated)
	for _, part := range []string{"Look &amp; see", "<b>you</b>", "&lt;Hi&gt;"} {
		if !strings.Contains(plain.str(t, "html"), part) {
			t.Errorf("%q is not in %q", part, plain.str(t, "html"))
		}
	}
	if text := plain.str(t, "text"); !strings.Contains(text, "Look & see") || !strings.Contains(text, "Hello you") {
		t.Errorf("text %q", text)
	}
	rich := s.do(t, http.MethodPost, path, `{"to":"ben@out.example","html":"<i>Look</i>"}`).want(t, http.StatusCreated)
	if !strings.Contains(rich.str(t, "html"), "<i>Look</i>") || !strings.Contains(rich.str(t, "text"), "Look") {
		t.Errorf("html %q, text %q", rich.str(t, "html"), rich.str(t, "text"))
	}
}

// A forward also works if the original is stored in a file.
func TestForwardOfLargeMail(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	big := strings.Repeat("0123456789abcdef\n", 40_000)
	m := s.add(t, s.received(t, in, []byte(mailOf(in, "Subject: Big\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi there\n--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=big.csv\n\n"+big+"\n--b--"))))
	if m.Content.BlobKey == nil {
		t.Fatal("the message is stored in its row")
	}
	res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"ben@out.example"}`).want(t, http.StatusCreated)
	if !strings.Contains(res.str(t, "text"), "Hi there") {
		t.Errorf("text %q", res.str(t, "text"))
	}
	if got := s.sent(t, res); len(got.Attachments) != 1 || got.Attachments[0].Size != m.Content.Attachments.V[0].Size {
		t.Errorf("the mail carries %+v", got.Attachments)
	}
}
