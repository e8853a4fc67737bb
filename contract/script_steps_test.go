package contract_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// scriptSteps are the steps of the script in order. Each creates what it needs,
// so a new one may go anywhere.
var scriptSteps = []struct {
	name string
	play func(s *script)
}{
	{"inboxes", scriptInboxes},
	{"receiving and waiting", scriptReceiving},
	{"lists and their filters", scriptLists},
	{"threads", scriptThreads},
	{"search", scriptSearch},
	{"sending, replying, forwarding", scriptSending},
	{"files", scriptFiles},
	{"domains", scriptDomains},
	{"a test key", scriptTestKey},
	{"policies", scriptPolicies},
	{"drafts", scriptDrafts},
	{"webhooks", scriptWebhooks},
	{"simulating", scriptSimulating},
	{"templates", scriptTemplates},
	{"emails", scriptEmails},
	{"contacts", scriptContacts},
	{"suppressions", scriptSuppressions},
	{"deleting messages", scriptDeleting},
	{"retention", scriptRetention},
	{"a key of one inbox", scriptNarrowKey},
	{"a deleted inbox", scriptDeletedInbox},
	{"limits", scriptLimits},
	{"stops", scriptStops},
	{"list entries", scriptListEntries},
	{"usage", scriptUsage},
}

func scriptInboxes(s *script) {
	for _, body := range []string{
		`{"name":"Shop","display_name":"The Shop","metadata":{"n":1.5,"s":"x","b":true,"z":null},"retention_days":3,"send_policy":"reply_only"}`,
		`{"name":"shop"}`, `{"name":"postmaster"}`, `{"name":"a..b"}`, `{"domain":"example.net"}`, `{"retention_days":31}`, `{"nmae":"x"}`,
		`{"name":"temporary","expires_at":"2099-01-01T00:00:00Z"}`, `{"expires_at":"2001-01-01T00:00:00Z"}`, `{"name":`,
	} {
		s.ask("createInbox", "", body)
	}
	in := s.inbox("agent", ``)
	for _, body := range []string{
		`{"display_name":"Agent","metadata":{"k":"v"}}`, `{"display_name":null,"expires_at":null}`, `{"retention_days":0}`, `{"name":"other"}`, `{}`,
		`{"aliases":["Orders","info"]}`, `{"aliases":["orders","shop"]}`, `{"aliases":["admin"]}`, `{"catch_all":true}`,
	} {
		s.ask("updateInbox", "/v1/inboxes/"+in.ID, body)
	}
	s.ask("getInbox", "/v1/inboxes/"+in.ID, "")
	s.ask("getInbox", "/v1/inboxes/ibx_none", "")
	s.pages("listInboxes", "", asking("limit", "1"))
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

func scriptReceiving(s *script) {
	in := s.inbox("receiver", ``)
	wait := "/v1/inboxes/" + in.ID + "/messages/wait"
	s.ask("waitForMessage", wait, "", asking("timeout", "1"), asking("since", "2026-01-01T00:00:00.000Z"))
	m := s.mail(in, codeMail)
	s.mail(in, "From: \"Doe, Ben\" <ben@example.org>\nSubject: \n\nNo subject.\n")
	s.mail(in, "From: list@example.org\nList-Id: <l.example.org>\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\n\nGr\xc3\xbc\xc3\x9fe\n")
	for _, edit := range []func(call) call{
		asking("has", "code"), asking("has", "link"), asking("from", "*@EXAMPLE.org"), asking("subject", "CODE"), asking("after", m.ID),
		asking("after", "msg_none"), asking("from", "missing@*"), asking("timeout", "0"), asking("direction", "out"),
	} {
		s.ask("waitForMessage", wait, "", asking("timeout", "1"), asking("since", "2026-01-01T00:00:00.000Z"), edit)
	}
	s.ask("getMessage", "/v1/messages/"+m.ID, "")
	s.ask("getMessage", "/v1/messages/msg_none", "")
}

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

// scriptDomains uses an empty DNS.
func scriptDomains(s *script) {
	var ids []string
	for key, name := range []string{"one.example.com", "Two.Example.com.", "bücher.example.com"} {
		a := s.ask("createDomain", "", `{"domain":"`+name+`"}`, withHeader(idempotencyKey, strconv.Itoa(key)))
		ids = append(ids, read[domain](s.t, a).ID)
	}
	for _, name := range []string{"one.example.com", mailDomain, "localhost", "com", "192.0.2.1", ""} {
		s.ask("createDomain", "", `{"domain":"`+name+`"}`)
	}
	s.ask("createDomain", "", `{"domain":"one.example.com"}`, withHeader(idempotencyKey, "0"))
	s.ask("verifyDomain", "/v1/domains/"+ids[0]+"/verify", "")
	s.ask("getDomain", "/v1/domains/"+ids[0], "")
	s.ask("getDomain", "/v1/domains/dom_none", "")
	s.pages("listDomains", "", asking("limit", "2"))
	s.ask("createInbox", "", `{"domain":"one.example.com"}`)
	s.ask("deleteDomain", "/v1/domains/"+ids[1], "")
	s.ask("deleteDomain", "/v1/domains/"+ids[1], "")
	s.pages("listDomains", "", asking("limit", "2"))
}

func scriptFiles(s *script) {
	in := s.inbox("files", ``)
	m := s.mail(in, codeMail)
	path := "/v1/messages/" + m.ID
	s.ask("getMessageRaw", "/v1/messages/msg_none/raw", "")
	s.ask("getAttachment", path+"/attachments/att_none", "")
	a := s.ask("getAttachment", path+"/attachments/"+m.Attachments[0].ID, "")
	link, err := url.Parse(read[struct {
		URL string `json:"download_url"`
	}](s.t, a).URL)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ask("downloadFile", link.EscapedPath(), "", asKey(""))
	s.ask("downloadFile", link.EscapedPath(), "", asKey(""), withHeader("Range", "bytes=1-3"))
	s.ask("downloadFile", link.EscapedPath(), "", asKey(""), withHeader("Range", "bytes=99-"))
	s.ask("downloadFile", "/v1/files/x", "", asKey(""))
	s.ask("getMessageRaw", path+"/raw", "")
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

func scriptPolicies(s *script) {
	closed := s.inbox("closed", `,"send_policy":"reply_only"`)
	m := s.mail(closed, "From: Ana@example.org\nReply-To: eve@example.net\nCc: carl@example.org\nMessage-ID: <p@example.org>\nSubject: Hi\n\nx\n")
	for _, to := range []string{"ana@example.org", "ANA@example.org", "ana+x@example.org", "eve@example.net", "carl@example.org"} {
		s.ask("sendMessage", "/v1/inboxes/"+closed.ID+"/messages", `{"to":"`+to+`","subject":"s","text":"t"}`)
		s.ask("forwardMessage", "/v1/messages/"+m.ID+"/forward", `{"to":"ana@example.org","bcc":"`+to+`"}`)
	}
	s.ask("replyToMessage", "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`)
	s.ask("replyToMessage", "/v1/messages/"+m.ID+"/reply", `{"text":"t","reply_all":true}`)
	s.settle()
	bulk := s.mail(closed, "From: robot@example.org\nAuto-Submitted: auto-replied\nSubject: Away\n\nx\n")
	s.ask("replyToMessage", "/v1/messages/"+bulk.ID+"/reply", `{"text":"t","headers":{"Auto-Submitted":"auto-replied"}}`)
	s.settle()
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

func scriptWebhooks(s *script) {
	for _, body := range []string{
		`{"url":"http://10.0.0.1/"}`, `{"url":"https://[::1]/"}`, `{"url":"https://2130706433/"}`, `{"url":"ftp://127.0.0.1/"}`, `{}`,
		`{"url":"` + s.receiver + `","events":[]}`, `{"url":"` + s.receiver + `","events":["draft.made"]}`, `{"url":"` + s.receiver + `","secret":"x"}`,
	} {
		s.ask("createWebhook", "", body)
	}
	made := read[webhookEndpoint](s.t, s.ask("createWebhook", "", `{"url":"`+s.receiver+`","events":["draft.rejected"]}`))
	path := "/v1/webhooks/" + made.ID
	s.ask("createWebhook", "", `{"url":"`+s.receiver+`","active":false}`)
	s.ask("getWebhook", path, "")
	for _, body := range []string{`{"active":false}`, `{"active":true,"events":["draft.sent"]}`, `{"url":"http://192.168.0.1/"}`, `{}`} {
		s.ask("updateWebhook", path, body)
	}
	s.ask("testWebhook", path+"/test", "")
	list := s.ask("listWebhookDeliveries", path+"/deliveries", "", asking("event_type", "webhook.test"), asking("status", "succeeded"))
	s.ask("listWebhookDeliveries", path+"/deliveries", "", asking("event_type", "draft.sent"))
	id := read[struct{ Data []delivery }](s.t, list).Data[0].ID
	s.ask("retryWebhookDelivery", path+"/deliveries/"+id+"/retry", "")
	s.ask("retryWebhookDelivery", path+"/deliveries/dlv_none/retry", "")
	s.ask("rotateWebhookSecret", path+"/rotate-secret", "")
	s.ask("replayWebhook", path+"/replay", `{"since":"2026-01-01T00:00:00Z","types":["draft.created"]}`)
	s.ask("replayWebhook", "/v1/webhooks/wh_none/replay", `{"since":"2026-01-01T00:00:00Z"}`)
	s.pages("listWebhooks", "", asking("limit", "1"))
	s.ask("deleteWebhook", path, "")
	s.ask("deleteWebhook", path, "")
	s.ask("testWebhook", path+"/test", "")
}

func scriptSimulating(s *script) {
	in := s.inbox("simulating", ``)
	for _, body := range []string{
		`{"from":{"email":"ana@example.org","name":"Ana"},"subject":"Code 771204","text":"Use 771204."}`, `{"from":"ana@example.org"}`,
		`{"raw":"From: ben@example.org\nMessage-ID: <s@example.org>\nSubject: Raw\n\nHello\n"}`, `{"raw":"x","text":"t"}`, `{"subject":"s"}`,
	} {
		s.ask("simulateMessage", "/v1/inboxes/"+in.ID+"/simulate", body)
	}
	s.pages("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", asking("limit", "2"))
}

func scriptDeleting(s *script) {
	in := s.inbox("deleting", ``)
	first := s.mail(in, "From: a@example.org\nMessage-ID: <d1@example.org>\nSubject: Plan\n\none\n")
	second := s.mail(in, "From: b@example.org\nIn-Reply-To: <d1@example.org>\nSubject: Re: Plan\n\ntwo\n")
	thread := "/v1/inboxes/" + in.ID + "/threads/" + first.ThreadID
	s.ask("deleteMessage", "/v1/messages/"+second.ID, "")
	s.ask("deleteMessage", "/v1/messages/"+second.ID, "")
	s.ask("getThread", thread, "")
	s.ask("listInboxMessages", "/v1/inboxes/"+in.ID+"/messages", "", asking("q", "two"))
	s.ask("deleteMessage", "/v1/messages/"+first.ID, "")
	s.ask("getThread", thread, "")
	s.ask("getInbox", "/v1/inboxes/"+in.ID, "")
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

func scriptNarrowKey(s *script) {
	mine, other := s.inbox("mine", ``), s.inbox("notmine", `,"send_policy":"approval"`)
	m := s.mail(other, "From: a@example.org\nSubject: Hidden\n\nx\n")
	d := read[draft](s.t, s.ask("sendMessage", "/v1/inboxes/"+other.ID+"/messages", `{"to":"a@example.org","subject":"s","text":"t"}`))
	made := read[key](s.t, s.send(s.t, s.call("createKey").saying(`{"name":"narrow","inbox_ids":["`+mine.ID+`"]}`)).want(s.t, http.StatusCreated))
	defer func(was string) { s.key = was }(s.key)
	s.key = made.Key
	s.ask("listInboxes", "", "")
	s.ask("listMessages", "", "")
	s.ask("listDrafts", "", "")
	s.ask("createInbox", "", `{}`)
	s.ask("getInbox", "/v1/inboxes/"+other.ID, "")
	s.ask("getMessage", "/v1/messages/"+m.ID, "")
	s.ask("getThread", "/v1/inboxes/"+other.ID+"/threads/"+m.ThreadID, "")
	s.ask("getDraft", "/v1/drafts/"+d.ID, "")
	s.ask("sendDraft", "/v1/drafts/"+d.ID+"/send", "")
	s.ask("deleteMessage", "/v1/messages/"+m.ID, "")
}

func scriptDeletedInbox(s *script) {
	in := s.inbox("gone", `,"send_policy":"approval"`)
	m := s.mail(in, codeMail)
	d := read[draft](s.t, s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@example.org","subject":"s","text":"t"}`))
	s.ask("deleteInbox", "/v1/inboxes/"+in.ID, "")
	s.ask("getInbox", "/v1/inboxes/"+in.ID, "")
	s.ask("getMessage", "/v1/messages/"+m.ID, "")
	s.ask("sendDraft", "/v1/drafts/"+d.ID+"/send", "")
	s.ask("listDrafts", "", "", asking("status", "pending"), asking("limit", "3"))
	s.ask("createInbox", "", `{"name":"gone"}`)
}

// scriptLimits sends over the limits of an inbox, which refuses, and of another,
// which asks for approval.
func scriptLimits(s *script) {
	strict := s.inbox("strict", `,"limits":{"sends_per_day":1,"new_recipients_per_day":null}`)
	asks := s.inbox("asks", `,"limits":{"recipients_per_day":1,"similar_per_hour":5,"on_limit":"approval"}`)
	for _, in := range []inbox{strict, asks} {
		for range 2 {
			s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":["a@example.org","b@example.org"],"subject":"s","text":"t"}`)
			s.ask("sendEmail", "", `{"from":"`+in.Address+`","to":"a@example.org","subject":"s","text":"t","tags":{"a":"b"}}`)
		}
		s.ask("sendEmailBatch", "", `{"from":"`+in.Address+`","recipients":[{"to":"a@example.org"},{"to":"c@example.org"}],"subject":"s","text":"t"}`)
		s.ask("getInbox", "/v1/inboxes/"+in.ID, "")
		s.ask("updateInbox", "/v1/inboxes/"+in.ID, `{"limits":null}`)
	}
	k := read[key](s.t, s.send(s.t, s.call("createKey").saying(`{"name":"limited","limits":{"sends_per_minute":5}}`)).want(s.t, http.StatusCreated))
	s.ask("updateKey", "/v1/keys/"+k.ID, `{"limits":{"sends_per_minute":2,"on_limit":"approval"}}`)
	s.ask("updateApiKey", "/v1/api-keys/"+k.ID, `{"name":"other","limits":null}`)
	s.ask("updateKey", "/v1/keys/"+k.ID, `{"limits":{"on_limit":"ask"}}`)
	s.ask("updateKey", "/v1/keys/key_none", `{}`)
}

// scriptListEntries sends to recipients that lists allow, block and ask about.
func scriptListEntries(s *script) {
	in := s.inbox("listed", ``)
	for _, entry := range []string{`"block","pattern":"*@No.example"`, `"approve","pattern":"a@ask.example"`, `"allow","pattern":"*@*.ok.example"`, `"block","pattern":"no"`} {
		s.ask("createListEntry", "", `{"direction":"outbound","action":`+entry+`,"inbox_id":"`+in.ID+`"}`)
	}
	for _, to := range []string{"a@no.example", "a@ask.example", "a@x.ok.example", "a@other.example"} {
		s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":"`+to+`","subject":"s","text":"t"}`)
		s.ask("sendEmail", "", `{"from":"`+in.Address+`","to":"`+to+`","subject":"s","text":"t"}`)
	}
	s.ask("sendEmailBatch", "", `{"from":"`+in.Address+`","recipients":[{"to":"a@no.example"},{"to":"a@ask.example"},{"to":"a@x.ok.example"}],"subject":"s","text":"t"}`)
	s.ask("sendEmailBatch", "", `{"from":"`+in.Address+`","recipients":[{"to":"a@no.example"}],"subject":"s","text":"t"}`)
	s.ask("listListEntries", "", "", asking("limit", "2"))
	s.ask("deleteListEntry", "/v1/lists/lst_none", "")
}

// scriptStops stops an inbox and the account, and lets them send again.
func scriptStops(s *script) {
	in := s.inbox("halted", ``)
	for _, scope := range []string{`{"inbox_id":"` + in.ID + `"}`, `{}`, `{"inbox_id":"` + in.ID + `","key_id":"key_none"}`} {
		s.ask("stopSending", "", scope)
		s.ask("sendMessage", "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@example.org","subject":"s","text":"t"}`)
		s.ask("getUsage", "", "")
		s.ask("resumeSending", "", scope)
	}
}

func scriptUsage(s *script) {
	s.ask("getUsage", "", "")
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
