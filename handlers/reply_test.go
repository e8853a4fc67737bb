package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestReplyGoesTo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		tests := []struct {
			name, header, body string
			to, cc, bcc        string
		}{
			{"the sender", "From: ann@out.example", `"text":"t"`, "ann@out.example", "", ""},
			{"Reply-To when there is one", "From: ann@out.example\nReply-To: list@out.example", `"text":"t"`, "list@out.example", "", ""},
			{"all of Reply-To", "From: ann@out.example\nReply-To: a@out.example, b@out.example", `"text":"t"`, "a@out.example b@out.example", "", ""},
			{"an empty Reply-To is none", "From: ann@out.example\nReply-To:", `"text":"t"`, "ann@out.example", "", ""},
			{"not to the others", "From: ann@out.example\nTo: OWN, bob@out.example\nCc: carl@out.example", `"text":"t"`, "ann@out.example", "", ""},
			{
				"to the others when asked", "From: ann@out.example\nTo: OWN, bob@out.example\nCc: carl@out.example", `"text":"t","reply_all":true`,
				"ann@out.example", "bob@out.example carl@out.example", "",
			},
			{
				"nobody twice", "From: ann@out.example\nTo: bob@out.example, Ann@Out.example\nCc: BOB@out.example", `"text":"t","reply_all":true,"cc":["bob@out.example","dora@out.example"]`,
				"ann@out.example", "bob@out.example dora@out.example", "",
			},
			{
				"never to itself", "From: ann@out.example\nTo: OWN\nCc: TAGGED", `"text":"t","reply_all":true,"cc":"OWN","bcc":["TAGGED","emil@out.example"]`,
				"ann@out.example", "", "emil@out.example",
			},
			{"not to a Reply-To that is itself", "From: ann@out.example\nReply-To: OWN, bob@out.example", `"text":"t"`, "bob@out.example", "", ""},
			{"further copies", "From: ann@out.example", `"text":"t","cc":{"email":"a@out.example"},"bcc":"b@out.example"`, "ann@out.example", "a@out.example", "b@out.example"},
			{"not to what is no address", "From: ann@out.example\nTo: OWN, undisclosed-recipients:;\nCc: nobody, x@y@z", `"text":"t","reply_all":true`, "ann@out.example", "", ""},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				in := s.newInbox(t)
				own := strings.NewReplacer("OWN", in.Address, "TAGGED", strings.ToUpper(in.Name)+"+tag@"+in.Domain)
				m := s.receive(t, in, own.Replace(tt.header)+"\nSubject: Hi")
				res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", "{"+own.Replace(tt.body)+"}").want(t, http.StatusCreated)
				for field, want := range map[string]string{"to": tt.to, "cc": tt.cc, "bcc": tt.bcc} {
					if got := strings.Join(res.strs(t, field, "email"), " "); got != want {
						t.Errorf("%s is %q, want %q", field, got, want)
					}
				}
			})
		}
	})
}

func TestReplyToOwnMessageGoesToItsRecipients(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		first := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages",
			`{"to":["ann@out.example","`+in.Address+`"],"cc":"bob@out.example","bcc":"carl@out.example","reply_to":"desk@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
		path := "/v1/messages/" + first.str(t, "id") + "/reply"
		res := s.do(t, http.MethodPost, path, `{"text":"t"}`).want(t, http.StatusCreated)
		if to, cc := res.strs(t, "to", "email"), res.strs(t, "cc", "email"); cmp.Diff(to, []string{"ann@out.example"}) != "" || len(cc) != 0 {
			t.Errorf("to %v, cc %v", to, cc)
		}
		res = s.do(t, http.MethodPost, path, `{"text":"t","reply_all":true}`).want(t, http.StatusCreated)
		if to, cc := res.strs(t, "to", "email"), res.strs(t, "cc", "email"); cmp.Diff(to, []string{"ann@out.example"}) != "" || cmp.Diff(cc, []string{"bob@out.example"}) != "" {
			t.Errorf("to all: to %v, cc %v", to, cc)
		}
		if len(res.strs(t, "bcc", "email")) != 0 {
			t.Errorf("a blind copy was seen: %s", res.body)
		}
	})
}

func TestReplyToNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		for _, header := range []string{"From: " + in.Address, "From: ", "From: nobody in particular", "From: ann@out.example\nReply-To: " + in.Address} {
			m := s.receive(t, in, header+"\nSubject: Hi")
			s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).wantError(t, http.StatusBadRequest, "invalid_request message_id")
		}
	})
}

func TestReplyStaysInItsThread(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		tests := []struct {
			name, header          string
			inReplyTo, references string
			subject, rawInReplyTo string
		}{
			{"a first mail", "Message-ID: <a@out.example>\nSubject: Order", "<a@out.example>", "<a@out.example>", "Re: Order", "<a@out.example>"},
			{
				"a mail of a thread", "Message-ID: <c@out.example>\nReferences: <a@out.example> <b@out.example>\nIn-Reply-To: <b@out.example>\nSubject: RE: Order",
				"<c@out.example>", "<a@out.example> <b@out.example> <c@out.example>", "RE: Order", "<c@out.example>",
			},
			{"a mail that only names its parent", "Message-ID: <b@out.example>\nIn-Reply-To: <a@out.example>\nSubject: re: Order", "<b@out.example>", "<a@out.example> <b@out.example>", "re: Order", "<b@out.example>"},
			{"a mail without an id", "Subject: Order", "", "", "Re: Order", ""},
			{"a mail without a subject", "Message-ID: <a@out.example>", "<a@out.example>", "<a@out.example>", "Re:", "<a@out.example>"},
			{"a mail that is an answer in German", "Message-ID: <a@out.example>\nSubject: AW: Order", "<a@out.example>", "<a@out.example>", "Re: AW: Order", "<a@out.example>"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				in := s.newInbox(t)
				m := s.receive(t, in, tt.header, func(m *store.NewMessage) { m.HeaderID = strings.TrimSpace(m.HeaderID) })
				for range 2 { // a second answer is one too
					res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
					if got := res.str(t, "thread_id"); got != m.ThreadID {
						t.Errorf("thread %s, want %s", got, m.ThreadID)
					}
					for field, want := range map[string]string{"in_reply_to": tt.inReplyTo, "references": tt.references} {
						if got := strings.Trim(fmt.Sprint(res.at(t, field)), "[]"); got != want {
							t.Errorf("%s: %q, want %q", field, got, want)
						}
					}
					if got := res.str(t, "subject"); got != tt.subject {
						t.Errorf("subject %q, want %q", got, tt.subject)
					}
					sent := s.sent(t, res)
					if got := strings.Join(sent.InReplyTo, " "); got != tt.rawInReplyTo {
						t.Errorf("In-Reply-To of the mail: %q", got)
					}
					if got := strings.Join(sent.References, " "); got != tt.references {
						t.Errorf("References of the mail: %q", got)
					}
				}
			})
		}
	})
}

// Two mails without an id and with nothing in common: an answer to the first
// must not land in the thread of the second.
func TestReplyWithoutIdsFindsItsThread(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		one := s.receive(t, in, "From: ann@out.example\nSubject: Order")
		two := s.receive(t, in, "From: bob@out.example\nSubject: Order")
		if one.ThreadID == two.ThreadID {
			t.Fatal("two strangers share a thread")
		}
		for _, m := range []store.Message{one, two, one} {
			res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t","cc":["ann@out.example","bob@out.example"]}`).want(t, http.StatusCreated)
			if got := res.str(t, "thread_id"); got != m.ThreadID {
				t.Errorf("thread %s, want %s", got, m.ThreadID)
			}
		}
	})
}

// A long chain keeps its first reference and the newest ones.
func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		var refs strings.Builder
		for i := range 60 {
			fmt.Fprintf(&refs, "\n <%d@out.example>", i)
		}
		m := s.receive(t, s.newInbox(t), "Subject: Hi\nMessage-ID: <last@out.example>\nReferences:"+refs.String())
		res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusCreated)
		got, ok := res.at(t, "references").([]any)
		if !ok || len(got) != 30 || got[0] != "<0@out.example>" || got[29] != "<last@out.example>" {
			t.Errorf("%d references: %v", len(got), got)
		}
	})
}

// Whatever a mail says in its header, it can be answered and forwarded.
func TestOddMailCanBeAnswered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		for name, header := range map[string]string{
			"a line break in the subject":       "Subject: =?utf-8?q?a=0D=0ABcc:_x@y.example?=",
			"a control character":               "Subject: a\x01\x7fb",
			"a line separator":                  "Subject: =?utf-8?q?a=E2=80=A8b?=",
			"a subject of 10,000 characters":    "Subject: " + strings.Repeat("long ", 2000),
			"a name with a line break":          "From: =?utf-8?q?a=0Ab?= <ann@out.example>\nSubject: Hi",
			"a name of 1,000 characters":        "From: \"" + strings.Repeat("n", 1000) + "\" <ann@out.example>\nSubject: Hi",
			"an id that is none":                "Message-ID: nothing <> < a@b > <c d@e>\nSubject: Hi",
			"an id of 2,000 characters":         "Message-ID: <" + strings.Repeat("i", 2000) + "@b>\nSubject: Hi",
			"references that are none":          "References: what you said\nIn-Reply-To: your letter\nSubject: Hi",
			"a header that is not UTF-8":        "From: \xff\xfe <ann@out.example>\nSubject: \xff",
			"a part with a strange type":        "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Type: what/is;this\nContent-ID: a b\nContent-Disposition: attachment; filename=\"a\x01\u2028b\"\n\nx\n--b--",
			"a part with a name of 1,000 bytes": "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Disposition: attachment; filename=\"" + strings.Repeat("f", 1000) + "\"\n\nx\n--b--",
			"a part without a name":             "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Disposition: attachment\n\nx\n--b--",
			"a mail in a mail":                  "Subject: Hi\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\nContent-Type: message/rfc822\n\nSubject: Inner\n\nx\n--b--",
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
	})
}

func TestReplyRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		m := s.receive(t, s.newInbox(t), "Subject: Hi")
		for body, want := range map[string]string{
			`{}`:                                "content_required text",
			`{"text":""}`:                       "content_required text",
			`{"text":"t","to":"a@b.example"}`:   "invalid_request to",
			`{"text":"t","subject":"s"}`:        "invalid_request subject",
			`{"text":"t","reply_all":"yes"}`:    "invalid_request reply_all",
			`{"text":"t","cc":"nobody"}`:        "invalid_request cc",
			`{"text":"t","headers":{"To":"a"}}`: "invalid_request headers.To",
		} {
			s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", body, broken).wantError(t, http.StatusBadRequest, want)
		}
		s.do(t, http.MethodPost, "/v1/messages/msg_0/reply", `{"text":"t"}`).wantError(t, http.StatusNotFound, "not_found")
	})
}

func TestForward(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
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
	})
}

func TestForwardOfHTML(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
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
	})
}

// A forward takes the original as it lies in a file too.
func TestForwardOfLargeMail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		big := strings.Repeat("0123456789abcdef\n", 40_000)
		m := s.add(t, s.received(t, in, []byte(mail(in, "Subject: Big\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi there\n--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=big.csv\n\n"+big+"\n--b--"))))
		if m.Content.BlobKey == nil {
			t.Fatal("it lies in its row")
		}
		res := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"ben@out.example"}`).want(t, http.StatusCreated)
		if !strings.Contains(res.str(t, "text"), "Hi there") {
			t.Errorf("text %q", res.str(t, "text"))
		}
		if got := s.sent(t, res); len(got.Attachments) != 1 || got.Attachments[0].Size != m.Content.Attachments.V[0].Size {
			t.Errorf("the mail carries %+v", got.Attachments)
		}
	})
}

func TestForeignMessagesCannotBeAnswered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		m := storetest.Received(t, s.store, s.otherInbox(t))
		for _, action := range []string{"/reply", "/forward"} {
			body := map[string]string{"/reply": `{"text":"t"}`, "/forward": `{"to":"a@b.example"}`}[action]
			s.do(t, http.MethodPost, "/v1/messages/"+m.ID+action, body).wantError(t, http.StatusNotFound, "not_found")
		}
	})
}
