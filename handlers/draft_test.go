package handlers_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

// policy sets the send policy of a new inbox.
func policy(p store.SendPolicy) func(*store.Inbox) {
	return func(in *store.Inbox) { in.SendPolicy = p }
}

const plainSend = `{"to":"ann@out.example","subject":"Order","text":"Please."}`

// newDraft creates a draft with a send from the inbox.
func (s *server) newDraft(t *testing.T, in store.Inbox, body string, opts ...option) response {
	t.Helper()
	return s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", body, opts...).want(t, http.StatusAccepted)
}

// draftPath returns the path of a draft or of an action on it.
func draftPath(t *testing.T, d response, what ...string) string {
	t.Helper()
	return "/v1/drafts/" + d.str(t, "id") + strings.Join(what, "")
}

// setPolicy changes the send policy of an inbox.
func (s *server) setPolicy(t *testing.T, in store.Inbox, p store.SendPolicy) {
	t.Helper()
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"send_policy":"`+string(p)+`"}`).want(t, http.StatusOK)
}

// outbound counts the messages that were accepted for sending.
func (s *server) outbound(t *testing.T) int {
	t.Helper()
	return len(s.pages(t, "/v1/messages?direction=out&limit=100"))
}

func TestApprovalMakesDrafts(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	m := s.receive(t, in, "From: Ann <ann@out.example>\nReply-To: desk@out.example\nMessage-ID: <a@out.example>\nSubject: Order")
	d := s.newDraft(t, in, `{"to":{"email":"bob@out.example","name":"Bob"},"cc":"carl@out.example","bcc":["dora@out.example"],
			"reply_to":"desk@mail.example","subject":"Order","html":"<p>Please.</p>","headers":{"X-Order":"1042"},
			"attachments":[{"filename":"order.txt","content":"T3JkZXI=","content_type":"text/plain; charset=utf-8"}]}`)
	for path, want := range map[string]string{
		"object":            `"draft"`,
		"inbox_id":          `"` + in.ID + `"`,
		"thread_id":         `null`,
		"status":            `"pending"`,
		"kind":              `"new"`,
		"expired":           `false`,
		"test_mode":         `false`,
		"source_message_id": `null`,
		"message_id":        `null`,
		"to":                `[{"email":"bob@out.example","name":"Bob"}]`,
		"cc":                `[{"email":"carl@out.example","name":null}]`,
		"bcc":               `[{"email":"dora@out.example","name":null}]`,
		"reply_to":          `[{"email":"desk@mail.example","name":null}]`,
		"text":              `null`,
		"html":              `"<p>Please.</p>"`,
		"headers":           `{"X-Order":"1042"}`,
		"version":           `1`,
		"decided_by":        `null`,
		"created_at":        `"` + after(0) + `"`,

		"attachments.0.filename":     `"order.txt"`,
		"attachments.0.content_type": `"text/plain; charset=utf-8"`,
		"attachments.0.size":         `5`,
	} {
		d.wantAt(t, path, want)
	}
	s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).wantSame(t, d)

	reply := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"t"}`).want(t, http.StatusAccepted)
	for path, want := range map[string]string{
		"kind":              `"reply"`,
		"thread_id":         `"` + m.ThreadID + `"`,
		"source_message_id": `"` + m.ID + `"`,
		"subject":           `"Re: Order"`,
		"to":                `[{"email":"desk@out.example","name":null}]`,
	} {
		reply.wantAt(t, path, want)
	}
	forward := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"bob@out.example","text":"See:"}`).want(t, http.StatusAccepted)
	forward.wantAt(t, "kind", `"forward"`)
	forward.wantAt(t, "thread_id", `null`)
	if text := forward.str(t, "text"); !strings.HasPrefix(text, "See:\n") || !strings.Contains(text, "Hello.") {
		t.Errorf("a forward without its original: %q", text)
	}
	if n := s.outbound(t); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestListDrafts(t *testing.T) {
	s := serve(t)
	one, two := s.newInbox(t, policy(store.PolicyApproval)), s.newInbox(t, policy(store.PolicyApproval))
	var ids []string // newest first
	for i, in := range []store.Inbox{one, two, one, one} {
		d := s.newDraft(t, in, fmt.Sprintf(`{"to":"ann@out.example","subject":"%d","html":"<p>x</p>"}`, i))
		ids = append([]string{d.str(t, "id")}, ids...)
	}
	s.do(t, http.MethodPost, "/v1/drafts/"+ids[0]+"/reject", "").want(t, http.StatusOK)
	s.do(t, http.MethodPost, "/v1/drafts/"+ids[1]+"/send", "").want(t, http.StatusCreated)
	s.account = s.otherInbox(t).AccountID // from here on, newInbox creates inboxes of another account
	theirs := as(s.newKey(t))
	s.newDraft(t, s.newInbox(t, policy(store.PolicyApproval)), plainSend, theirs)
	s.account = one.AccountID

	onlyTwo := as(s.newKey(t, onlyInboxes(two.ID)))
	for path, want := range map[string][]string{
		"/v1/drafts?limit=1":                                ids,
		"/v1/drafts?limit=2&status=pending":                 ids[2:],
		"/v1/drafts?status=sent":                            ids[1:2],
		"/v1/drafts?status=rejected":                        ids[:1],
		"/v1/inboxes/" + one.ID + "/drafts?limit=2":         {ids[0], ids[1], ids[3]},
		"/v1/inboxes/" + two.ID + "/drafts":                 ids[2:3],
		"/v1/inboxes/" + two.ID + "/drafts?status=rejected": nil,
	} {
		if d := cmp.Diff(want, s.pages(t, path)); d != "" {
			t.Errorf("%s: -want +got:\n%s", path, d)
		}
	}
	if d := cmp.Diff(ids[2:3], s.pages(t, "/v1/drafts", onlyTwo)); d != "" {
		t.Errorf("a key of one inbox: -want +got:\n%s", d)
	}
	s.do(t, http.MethodGet, "/v1/usage", "").wantAt(t, "pending_drafts", `2`)
	s.do(t, http.MethodGet, "/v1/usage", "", onlyTwo).wantAt(t, "pending_drafts", `1`)
	s.do(t, http.MethodGet, "/v1/inboxes/"+one.ID+"/drafts", "", onlyTwo).want(t, http.StatusNotFound)
	s.do(t, http.MethodGet, "/v1/drafts", "").wantAt(t, "data.0.html", `null`)

	cursor := s.do(t, http.MethodGet, "/v1/drafts?limit=1", "").str(t, "cursor")
	for _, path := range []string{"/v1/drafts?status=pending&cursor=", "/v1/inboxes/" + one.ID + "/drafts?cursor=", "/v1/inboxes?cursor="} {
		s.do(t, http.MethodGet, path+cursor, "").wantError(t, http.StatusBadRequest, "invalid_request cursor")
	}
	s.do(t, http.MethodGet, "/v1/drafts?cursor="+cursor, "", theirs).wantError(t, http.StatusBadRequest, "invalid_request cursor")
}

func TestEditDraft(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	d := s.newDraft(t, in, plainSend)
	s.clock.Add(time.Minute)
	for _, body := range []string{`{}`, `{"subject":"Order","text":"Please.","html":null}`, `{"html":""}`} { // these change nothing
		s.do(t, http.MethodPatch, draftPath(t, d), body).want(t, http.StatusOK).wantSame(t, s.do(t, http.MethodGet, draftPath(t, d), ""))
	}
	s.do(t, http.MethodGet, draftPath(t, d), "").wantAt(t, "version", `1`)
	for i, tt := range []struct{ body, subject, text, html string }{
		{`{"subject":"Grüße"}`, `"Grüße"`, `"Please."`, `null`},
		{`{"html":"<p>x</p>"}`, `"Grüße"`, `"Please."`, `"<p>x</p>"`},
		{`{"text":null}`, `"Grüße"`, `null`, `"<p>x</p>"`},
		{`{"text":"y","html":null}`, `"Grüße"`, `"y"`, `null`},
		{`{"text":"z","html":""}`, `"Grüße"`, `"z"`, `null`},
	} {
		got := s.do(t, http.MethodPatch, draftPath(t, d), tt.body).want(t, http.StatusOK)
		for path, want := range map[string]string{
			"subject": tt.subject, "text": tt.text, "html": tt.html, "version": fmt.Sprint(i + 2), "status": `"pending"`,
			"created_at": `"` + after(0) + `"`, "updated_at": `"` + after(time.Minute) + `"`,
		} {
			got.wantAt(t, path, want)
		}
		s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).wantSame(t, got)
	}
	for body, want := range map[string]string{
		`{"text":null}`:             "content_required text",
		`{"text":"","html":null}`:   "content_required text",
		`{"subject":"a\r\nBcc: b"}`: "invalid_request subject",
	} {
		s.do(t, http.MethodPatch, draftPath(t, d), body, broken).wantError(t, http.StatusBadRequest, want)
	}
	for _, version := range []string{"5", "7"} { // of a reviewer who read another version
		s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Mine.","version":`+version+`}`).wantError(t, http.StatusConflict, "draft_changed")
	}
	s.do(t, http.MethodGet, draftPath(t, d), "").wantAt(t, "version", `6`)
	s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Mine.","version":6}`).want(t, http.StatusOK).wantAt(t, "version", `7`)
}

// Exactly what was approved is sent, even if the sources have changed.
func TestSentIsWhatWasApproved(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	original := strings.Repeat("original ", 40_000) // its attachments go into a blob
	pdf := base64.StdEncoding.EncodeToString([]byte(original))
	tests := map[string]func(m store.Message) (path, body string){
		"a send": func(store.Message) (string, string) {
			return "/v1/inboxes/" + in.ID + "/messages", `{"to":"ann@out.example","bcc":"dora@out.example","subject":"Order","text":"Please."` + extras + `}`
		},
		"a reply": func(m store.Message) (string, string) {
			return "/v1/messages/" + m.ID + "/reply", `{"html":"<p>Yes.</p>","reply_all":true` + extras + `}`
		},
		"a forward": func(m store.Message) (string, string) {
			return "/v1/messages/" + m.ID + "/forward", `{"to":"bob@out.example","html":"<b>Look</b>"` + extras + `}`
		},
	}
	for name, test := range tests {
		open := s.newInbox(t)
		head := "From: Ann <ann@out.example>\nTo: OWN, carl@out.example\nMessage-ID: <a-" + strings.ReplaceAll(name, " ", "-") +
			"@out.example>\nReferences: <0@out.example>\nSubject: Original\nContent-Type: multipart/mixed; boundary=b"
		body := "\n\n--b\nContent-Type: text/html\n\n<p>The original <img src=\"cid:i\"></p>\n" +
			"--b\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n" +
			"Content-Transfer-Encoding: base64\n\n" + pdf + "\n--b--"
		m := s.receive(t, in, head+body)
		path, request := test(m)
		d := s.do(t, http.MethodPost, path, request).want(t, http.StatusAccepted)

		// The same call in an open inbox shows the expected message.
		twin := s.receive(t, open, head+body)
		wantPath := strings.NewReplacer(m.ID, twin.ID, in.ID, open.ID).Replace(path)
		want := s.do(t, http.MethodPost, wantPath, request).want(t, http.StatusCreated)

		s.do(t, http.MethodDelete, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
		s.setPolicy(t, in, store.PolicyOpen)
		got := s.do(t, http.MethodPost, draftPath(t, d, "/send"), "").want(t, http.StatusCreated)
		s.setPolicy(t, in, store.PolicyApproval)

		if d := cmp.Diff(anonymous(s.sentRaw(t, want), open), anonymous(s.sentRaw(t, got), in)); d != "" {
			t.Errorf("%s: -sent at once +sent by draft:\n%s", name, d)
		}
		for _, field := range []string{"to", "cc", "bcc", "reply_to", "subject", "text", "html", "in_reply_to", "references"} {
			if d := cmp.Diff(want.at(t, field), got.at(t, field)); d != "" && !strings.Contains(fmt.Sprint(want.at(t, field)), open.Address) {
				t.Errorf("%s: %s: -sent at once +sent by draft:\n%s", name, field, d)
			}
		}
	}
}

const extras = `,"reply_to":"desk@mail.example","headers":{"X-B":"2","X-A":"1"},"attachments":[{"filename":"Größe.txt","content":"AP8KDQo=","content_type":"text/plain; charset=iso-8859-1"}]`

// anonymous returns a message without the parts that differ in every message:
// its identifier, its boundaries, and the address of its inbox.
func anonymous(raw []byte, in store.Inbox) string {
	out := strings.ReplaceAll(string(raw), in.Address, "OWN")
	boundaries := 0
	for line := range strings.Lines(out) {
		if b, ok := strings.CutPrefix(strings.TrimSpace(line), `boundary="`); ok {
			boundaries++
			out = strings.ReplaceAll(out, strings.TrimSuffix(b, `"`), fmt.Sprintf("boundary %d", boundaries))
		}
		if strings.HasPrefix(line, "Message-ID:") {
			out = strings.Replace(out, line, "Message-ID: <ours>\r\n", 1)
		}
	}
	return out
}
