package contract_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// scriptSteps are the steps of the script in order: what the databases do differently,
// which is to order, compare, search and delete, and each way to send. Each creates
// what it needs, so a new one may go anywhere.
var scriptSteps = []struct {
	name string
	play func(s *script)
}{
	{"lists and their filters", scriptLists},
	{"threads", scriptThreads},
	{"search", scriptSearch},
	{"sending, replying, forwarding", scriptSending},
	{"a test key", scriptTestKey},
	{"drafts", scriptDrafts},
	{"templates", scriptTemplates},
	{"emails", scriptEmails},
	{"contacts", scriptContacts},
	{"suppressions", scriptSuppressions},
	{"retention", scriptRetention},
}

// inbox creates an inbox with that name and further fields.
func (s *script) inbox(name, fields string) inbox {
	s.t.Helper()
	return read[inbox](s.t, s.ask("createInbox", "", `{"name":"`+name+`"`+fields+`}`))
}

// codeMail is a message with a code, a link, an attachment and an HTML part.
const codeMail = `From: Ana <Ana@Example.org>
To: OWN, =?utf-8?q?J=C3=BCrgen?= <j@example.org>
Subject: Your sign-in code is 482913
Message-ID: <code@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

<p>Your sign-in code is <b>482913</b>, J=FCrgen. <a href=3D"https://app.example.org/confirm?token=3Dabc">Confirm</a></p>
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="Auftr=?= .pdf"
Content-Transfer-Encoding: base64

JVBERi0xLjcKT3JkZXIgMTA0Mgo=
--b--
`

func scriptLists(s *script) {
	in := s.inbox("lists", ``)
	var last message
	for _, text := range []string{
		"From: a%b_c@example.org\nSubject: 100% of _it_\n\nx\n", "From: Ünal <unal@exämple.org>\nSubject: ÄÖÜ ß\n\nx\n",
		"From: a@sub.example.org\nSubject: back\\slash\n\nx\n", "Subject: test\n\nx\n",
	} {
		last = s.mail(in, text)
	}
	list := "/v1/inboxes/" + in.ID + "/messages"
	s.pages("listInboxMessages", list, asking("limit", "2"))
	s.ask("listInboxMessages", list, "", asking("include", "text"))
	s.ask("listInboxMessages", list, "", asking("include", "html"))
	s.pages("listMessages", "", asking("limit", "3"), asking("inbox_id", in.ID))
	for _, pair := range [][2]string{
		{"from", "*@example.org"},
		{"from", "*@*.example.org"},
		{"from", "a%b_c@example.org"},
		{"from", "%"},
		{"from", "_@_"},
		{"from", "UNAL@EXÄMPLE.ORG"},
		{"subject", "100%"},
		{"subject", "_"},
		{"subject", `\`},
		{"subject", "äöü"},
		{"subject", "SS"},
		{"direction", "in"},
		{"direction", "out"},
		{"direction", "up"},
		{"thread_id", last.ThreadID},
		{"thread_id", "thr_none"},
		{"since", "2026-01-01T00:00:00Z"},
		{"since", "2099-01-01T00:00:00Z"},
		{"since", "now"},
		{"limit", "0"},
		{"cursor", "x"},
	} {
		s.ask("listInboxMessages", list, "", asking(pair[0], pair[1]))
	}
	for _, status := range []string{"received", "queued", "opened"} {
		s.ask("listMessages", "", "", asking("status", status), asking("inbox_id", in.ID))
	}
	s.ask("listMessages", "", "", asking("inbox_id", "ibx_none"))
}

func scriptThreads(s *script) {
	in := s.inbox("threads", ``)
	first := s.mail(in, "From: a@example.org\nMessage-ID: <t1@example.org>\nSubject: Plan\n\none\n")
	s.mail(in, "From: b@example.org\nMessage-ID: <t2@example.org>\nIn-Reply-To: <t1@example.org>\nSubject: Other\n\ntwo\n")
	s.mail(in, "From: a@example.org\nSubject: AW: Plan\n\nthree\n")
	s.mail(in, "From: c@example.org\nSubject: Plan\n\nfour\n")
	s.mail(in, "From: a@example.org\nPrecedence: bulk\nSubject: Plan\n\nfive\n")
	s.pages("listThreads", "/v1/inboxes/"+in.ID+"/threads", asking("limit", "2"))
	s.ask("getThread", "/v1/inboxes/"+in.ID+"/threads/"+first.ThreadID, "")
	s.ask("getThread", "/v1/inboxes/"+in.ID+"/threads/thr_none", "")
}

func scriptSearch(s *script) {
	in := s.inbox("search", ``)
	s.mail(in, "From: a@example.org\nSubject: Invoice 42 from Łódź\n\nThe quick brown fox. 日本語の本文 naïve café e-mail@example.org\n")
	s.mail(in, "From: b@example.org\nSubject: Minutes\n\nbrown the quick invoice\n")
	for _, q := range []string{
		"invoice", "INVOICE 42", `"quick brown"`, `"brown the quick"`, "fox -fox", "NOT fox", "fox OR cat", "łódź", "lodz", "cafe", "日本語", "inv*",
		`"`, `""`, "(", "a:b", "'; DROP TABLE messages; --", "e-mail@example.org", "%", "naïve AND", " ", "absent",
	} {
		s.ask("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", "", asking("q", q))
	}
	s.ask("listMessages", "", "", asking("q", "invoice"), asking("from", "b@*"), asking("inbox_id", in.ID))
	s.ask("listMessages", "", "", asking("q", strings.Repeat("x", 201)))
}

func scriptSending(s *script) {
	in, other := s.inbox("sender", `,"display_name":"Söndern, Inc."`), s.inbox("other", ``)
	send := "/v1/inboxes/" + in.ID + "/messages"
	for _, body := range []string{
		`{"to":"` + other.Address + `","subject":"Hi","text":"Hello.\n.\n"}`,
		`{"to":[{"email":"ana@example.org","name":"Ana"}],"cc":"ben@example.org","bcc":["carl@example.org"],"subject":"Grüße","html":"<p>x</p>",
			"attachments":[{"filename":"a.txt","content":"eA=="}],"headers":{"X-A":"1"},"reply_to":"desk@example.com"}`,
		`{"to":[],"subject":"s","text":"t"}`, `{"to":"x","subject":"s","text":"t"}`, `{"to":"a@b.example","subject":"s"}`,
		`{"to":"a@b.example","subject":"s","text":""}`, `{"to":"a@b.example","subject":"a\nb","text":"t"}`,
		`{"to":"a@b.example","subject":"s","text":"t","headers":{"Bcc":"x"}}`, `{"to":"a@b.example","subject":"s","text":"a\u0000b"}`,
	} {
		s.ask("sendMessage", send, body)
	}
	s.settle()
	s.ask("listMessages", "", "", asking("inbox_id", in.ID))
	got := read[page](s.t, s.ask("listInboxMessages", "/v1/inboxes/"+other.ID+"/messages", "", asking("direction", "in")))
	var path string
	if len(got.Data) > 0 {
		path = "/v1/messages/" + got.Data[0].ID
	} else { // a test key delivers nothing
		path = "/v1/messages/" + s.mail(other, codeMail).ID
	}
	for _, body := range []string{`{"text":"Yes."}`, `{"reply_all":true,"html":"<p>All</p>","cc":"` + other.Address + `"}`, `{}`, `{"text":"t","to":"x@y.example"}`} {
		s.ask("replyToMessage", path+"/reply", body)
		s.settle() // keeps the order of later messages stable
	}
	for _, body := range []string{`{"text":"Once."}`, `{"text":"Once."}`, `{"text":"Twice."}`} {
		s.ask("replyToMessage", path+"/reply", body, withHeader(idempotencyKey, "k"))
		s.settle()
	}
	for _, body := range []string{`{"response":"accept"}`, `{"response":"maybe"}`, `{}`} { // the message has no invitation
		s.ask("replyToInvitation", path+"/calendar/reply", body)
	}
	for _, body := range []string{`{"to":"ana@example.org"}`, `{"to":"ana@example.org","text":"See","include_attachments":false}`, `{}`} {
		s.ask("forwardMessage", path+"/forward", body)
	}
	s.settle()
	s.pages("listInboxMessages", "/v1/inboxes/"+other.ID+"/messages", asking("limit", "100"))
	s.pages("listThreads", "/v1/inboxes/"+in.ID+"/threads", asking("limit", "100"))
	for range 25 {
		s.ask("replyToMessage", path+"/reply", `{"text":"Again."}`)
	}
	s.settle()
}

func scriptTestKey(s *script) {
	in := s.inbox("tester", ``)
	made := read[key](s.t, s.send(s.t, s.call("createKey").saying(`{"name":"test","mode":"test"}`)).want(s.t, http.StatusCreated))
	for _, to := range []string{"ana", "bounced", "ana+failed", "complained", "hardbounce"} {
		s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":"`+to+`@example.org","subject":"`+to+`","text":"t"}`, asKey(made.Key))
		s.settle()
	}
	s.ask("listMessages", "", "", asking("inbox_id", in.ID), asKey(made.Key))
	s.ask("listMessages", "", "", asking("inbox_id", in.ID), asking("status", "bounced"))
}

func scriptDrafts(s *script) {
	in := s.inbox("drafts", `,"send_policy":"approval"`)
	m := s.mail(in, codeMail)
	var ids []string
	for range 2 {
		a := s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":{"email":"ana@example.org","name":"Ana"},"bcc":"ben@example.org","subject":"Order",
			"text":"Please.","headers":{"X-B":"2","X-A":"1"},"attachments":[{"filename":"a.txt","content":"eA==","content_type":"text/plain; charset=utf-8"}]}`,
			withHeader(idempotencyKey, "k"))
		d := read[draft](s.t, a)
		ids = append(ids[:0], d.ID)
		s.ask("getDraftAttachment", "/v1/drafts/"+d.ID+"/attachments/"+d.Attachments[0].ID, "")
	}
	s.ask("getDraftAttachment", "/v1/drafts/"+ids[0]+"/attachments/att_none", "")
	ids = append(ids, read[draft](s.t, s.ask("replyToMessage", "/v1/messages/"+m.ID+"/reply", `{"html":"<p>Yes</p>","reply_all":true}`)).ID)
	ids = append(ids, read[draft](s.t, s.ask("forwardMessage", "/v1/messages/"+m.ID+"/forward", `{"to":"ana@example.org","text":"See","approval":{"expires_at":"2099-01-01T00:00:00Z","on_expiry":"reject"}}`)).ID)
	s.pages("listDrafts", "", asking("limit", "2"))
	s.ask("listInboxDrafts", "/v1/inboxes/"+in.ID+"/drafts", "", asking("status", "pending"))
	s.ask("listDrafts", "", "", asking("status", "done"))
	for _, body := range []string{`{"subject":"Order 2","html":"<p>Please.</p>","text":null}`, `{"html":null}`, `{"to":"x@y.example"}`, `{}`} {
		s.ask("updateDraft", "/v1/drafts/"+ids[0], body)
	}
	for _, body := range []string{`{"version":1}`, `{"version":0}`, `{"version":3}`, ``} {
		s.ask("sendDraft", "/v1/drafts/"+ids[0]+"/send", body, withHeader(idempotencyKey, "k"+body))
	}
	s.ask("sendDraft", "/v1/drafts/"+ids[0]+"/send", `{"version":3}`, withHeader(idempotencyKey, `k{"version":3}`))
	s.ask("sendDraft", "/v1/drafts/"+ids[1]+"/send", ``)
	s.settle()
	s.ask("getDraft", "/v1/drafts/"+ids[1], "")
	for _, body := range []string{`{"expires_at":"2099-01-01T00:00:00Z","on_expiry":"send"}`, `{"expires_at":"2020-01-01T00:00:00Z"}`, `{"on_expiry":"wait"}`} {
		s.ask("updateDraft", "/v1/drafts/"+ids[2], body)
	}
	s.ask("rejectDraft", "/v1/drafts/"+ids[2]+"/reject", `{"reason":"No."}`)
	s.ask("rejectDraft", "/v1/drafts/"+ids[2]+"/reject", ``)
	s.ask("updateDraft", "/v1/drafts/"+ids[2], `{"text":"t"}`)
	s.ask("getDraft", "/v1/drafts/drf_none", "")
	s.pages("listInboxDrafts", "/v1/inboxes/"+in.ID+"/drafts", asking("limit", "1"))
	s.pages("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", asking("limit", "1"))
}

// scriptRetention passes the retention of the inbox and then the 35 days after
// which the rest is deleted.
func scriptRetention(s *script) {
	in := s.inbox("retention", `,"retention_days":2`)
	m := s.mail(in, codeMail)
	path, link := "/v1/messages/"+m.ID, s.linkOf(s.t, m)
	s.ask("replyToMessage", path+"/reply", `{"text":"Early."}`)
	s.settle()
	s.ask("updateInbox", "/v1/inboxes/"+in.ID, `{"send_policy":"approval"}`)
	d := read[draft](s.t, s.ask("forwardMessage", path+"/forward", `{"to":"ana@example.org"}`, withHeader(idempotencyKey, "k")))
	look := func() {
		s.ask("getMessage", path, "")
		s.ask("getMessageRaw", path+"/raw", "")
		s.ask("getAttachment", path+"/attachments/"+m.Attachments[0].ID, "")
		s.ask("downloadFile", link, "", asKey(""))
		s.ask("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", "")
		s.ask("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", "", asking("q", "sign-in"))
		s.ask("listMessages", "", "", asking("q", "Early"), asking("inbox_id", in.ID))
		s.ask("waitForMessage", "/v1/inboxes/"+in.ID+"/messages/wait", "", asking("has", "code"), asking("timeout", "1"))
		s.ask("listThreads", "/v1/inboxes/"+in.ID+"/threads", "")
		s.ask("getThread", "/v1/inboxes/"+in.ID+"/threads/"+m.ThreadID, "")
		s.ask("getDraft", "/v1/drafts/"+d.ID, "")
		s.ask("listInboxDrafts", "/v1/inboxes/"+in.ID+"/drafts", "")
	}
	look()
	s.retain(s.t.Context(), s.t, 3*24*time.Hour)
	look()
	s.ask("updateDraft", "/v1/drafts/"+d.ID, `{"text":"t"}`)
	s.ask("sendDraft", "/v1/drafts/"+d.ID+"/send", "")
	s.ask("forwardMessage", path+"/forward", `{"to":"ana@example.org"}`)
	s.ask("replyToMessage", path+"/reply", `{"text":"Late."}`)
	s.retain(s.t.Context(), s.t, 39*24*time.Hour)
	look()
	s.ask("replyToMessage", path+"/reply", `{"text":"Too late."}`)
	s.ask("getInbox", "/v1/inboxes/"+in.ID, "")
}

func scriptTemplates(s *script) {
	var id string
	for _, body := range []string{
		`{"name":"Wełna","subject":"Hello, {{name}}","html":"<p style=\"color:{{c}}\">{{ name }}</p>","text":"{{{name}}} {{n}}"}`,
		`{"name":"n","subject":"s","html":"<p>","text":null}`, `{"name":"","subject":"s","html":"h"}`, `{"name":"n","subject":"{{#x}}","html":"h"}`,
		`{"name":"n","subject":"s","html":"<a {{x}}>"}`, `{"name":"n","subject":"s"}`,
	} {
		if a := s.ask("createTemplate", "", body); id == "" {
			id = read[struct{ ID string }](s.t, a).ID
		}
	}
	path := "/v1/templates/" + id
	for _, body := range []string{
		`{"data":{"name":"Zoë & Ü","c":"red","n":1.50}}`, `{"data":{"c":"red;x"}}`, `{}`, `{"data":{"name":"a\nb"}}`, `{"data":{"name":{}}}`, `{"data":[]}`,
	} {
		s.ask("previewTemplate", path+"/preview", body)
	}
	for _, body := range []string{`{"text":null}`, `{"name":"ĄĆ","html":"{{x}}"}`, `{"html":null}`, `{}`, `{"subject":"{{"}`} {
		s.ask("updateTemplate", path, body)
	}
	s.ask("replaceTemplate", path, `{"name":"r","subject":"s","html":"h"}`)
	s.pages("listTemplates", "", asking("limit", "1"))
	s.ask("deleteTemplate", path, "")
	s.ask("getTemplate", path, "")
	s.ask("deleteTemplate", path, "")
}

func scriptContacts(s *script) {
	var id string
	for _, body := range []string{
		`{"email":"Łukasz@Example.org","first_name":"Łukasz","metadata":{"n":1.50,"z":[{"ü":"<&>"}]},"tags":{"b":"2","a":"1"}}`,
		`{"email":"łukasz@example.ORG"}`, `{"email":"ÄÖ@example.org"}`, `{"email":"bob"}`, `{"email":"b@example.org","tags":{"a:b":"c"}}`, `{}`,
	} {
		if a := s.ask("createContact", "", body); id == "" {
			id = read[struct{ ID string }](s.t, a).ID
		}
	}
	path := "/v1/contacts/" + id
	for _, body := range []string{
		`{"contacts":[{"email":"ŁUKASZ@example.org","tags":{}},{"email":"c@example.org"},{"email":"C@example.org","last_name":"C"}]}`,
		`{"contacts":[{"email":"d@example.org"},{"email":"d@"}]}`, `{"contacts":[]}`,
	} {
		s.ask("upsertContacts", "", body)
	}
	for _, body := range []string{`{"email":"c@EXAMPLE.org"}`, `{"first_name":null}`, `{"metadata":{}}`, `{}`, `{"email":null}`} {
		s.ask("updateContact", path, body)
	}
	s.ask("listContacts", "", "", asking("email", "łUKASZ@example.org"))
	s.ask("listContacts", "", "", asking("email", "%"))
	s.pages("listContacts", "", asking("limit", "2"))
	s.ask("deleteContact", path, "")
	s.ask("getContact", path, "")
}

func scriptSuppressions(s *script) {
	for _, body := range []string{
		`{"email":"Stop@Example.net","category":"marketing"}`, `{"email":"stop@example.net"}`, `{"email":"stop@example.net","category":"marketing"}`,
		`{"email":"néws@example.net","category":"marketing"}`, `{"email":"bob"}`, `{"email":"a@example.net","category":"some"}`, `{}`,
	} {
		s.ask("createSuppression", "", body)
	}
	in := s.inbox("careful", ``)
	list := "/v1/inboxes/" + in.ID + "/messages"
	for _, to := range []string{`"STOP@example.net"`, `["stop@example.net","néws@example.net"]`} {
		s.ask("sendMessage", list, `{"to":`+to+`,"subject":"s","text":"t"}`)
	}
	s.pages("listSuppressions", "", asking("limit", "1"))
	s.ask("deleteSuppression", "/v1/suppressions/"+url.PathEscape("sTOP@example.net"), "")
	s.ask("deleteSuppression", "/v1/suppressions/"+url.PathEscape("stop@example.net"), "")
	s.settle()
}
