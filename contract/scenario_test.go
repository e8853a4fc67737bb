package contract_test

import (
	"errors"
	"net/http"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// inboxes plays what becomes of an address: it is taken, and stays so.
func inboxes(t *testing.T, w *world) {
	create := w.call("createInbox")
	in := read[inbox](t, w.send(t, create.saying(`{"name":"Taken"}`)).want(t, http.StatusCreated))
	if in.Address != "taken@"+mailDomain {
		t.Errorf("address %q", in.Address)
	}
	w.send(t, create.saying(`{"name":"taken"}`)).wantCode(t, http.StatusConflict, "address_taken")
	w.send(t, create.saying(`{"domain":"example.net"}`)).wantCode(t, http.StatusForbidden, "domain_not_verified")
	narrow := w.newKey(t, `"inbox_ids":["`+w.inbox.ID+`"]`)
	w.send(t, create.as(narrow.Key).saying(`{}`)).wantCode(t, http.StatusForbidden, "insufficient_scope")
	w.send(t, w.call("getInbox").as(narrow.Key).at("/v1/inboxes/"+in.ID)).wantCode(t, http.StatusNotFound, "not_found")

	m := w.receive(t, in)
	w.send(t, w.call("deleteInbox").at("/v1/inboxes/"+in.ID)).want(t, http.StatusOK)
	for id, path := range map[string]string{
		"getInbox":          "/v1/inboxes/" + in.ID,
		"deleteInbox":       "/v1/inboxes/" + in.ID,
		"listInboxMessages": "/v1/inboxes/" + in.ID + "/messages",
		"waitForMessage":    "/v1/inboxes/" + in.ID + "/messages/wait",
		"getMessage":        "/v1/messages/" + m.ID,
		"getMessageRaw":     "/v1/messages/" + m.ID + "/raw",
		"getAttachment":     "/v1/messages/" + m.ID + "/attachments/" + m.Attachments[0].ID,
	} {
		w.send(t, w.call(id).at(path)).wantCode(t, http.StatusNotFound, "not_found")
	}
	w.send(t, create.saying(`{"name":"taken"}`)).wantCode(t, http.StatusConflict, "address_taken")

	err := smtp.SendMail(w.smtp, nil, "ana@example.org", []string{in.Address}, []byte("Subject: Late\r\n\r\nHello\r\n"))
	var refused *textproto.Error
	if !errors.As(err, &refused) || refused.Code != 550 {
		t.Errorf("mail to a deleted inbox: got %v, want 550", err)
	}
}

// page is what the tests read of a list.
type page struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	HasMore bool    `json:"has_more"`
	Cursor  *string `json:"cursor"`
}

// lists walks through lists page by page, and takes their cursors elsewhere.
func lists(t *testing.T, w *world) {
	for range 3 {
		w.newInbox(t)
	}
	for _, id := range []string{"listInboxes", "listKeys", "listApiKeys", "listMessages"} {
		seen := map[string]bool{}
		c := w.call(id).asking("limit", "2")
		for {
			p := read[page](t, w.send(t, c).want(t, http.StatusOK))
			for _, item := range p.Data {
				if seen[item.ID] {
					t.Fatalf("%s: %s comes twice", id, item.ID)
				}
				seen[item.ID] = true
			}
			if p.HasMore != (p.Cursor != nil) || p.HasMore && len(p.Data) != 2 {
				t.Errorf("%s: a page of %d, has_more %v, cursor %v", id, len(p.Data), p.HasMore, p.Cursor)
			}
			if p.Cursor == nil {
				break
			}
			c = c.asking("cursor", *p.Cursor)
		}
		if len(seen) < 3 {
			t.Errorf("%s: %d items", id, len(seen))
		}
		elsewhere := w.call("listInboxes")
		if id == "listInboxes" {
			elsewhere = w.call("listKeys")
		}
		w.send(t, elsewhere.asking("cursor", c.query.Get("cursor"))).wantCode(t, http.StatusBadRequest, "invalid_request")
		w.send(t, w.call(id).asking("limit", "101").breaking()).wantCode(t, http.StatusBadRequest, "invalid_request")
	}
	w.send(t, w.call("listMessages").asking("inbox_id", "ibx_none")).wantCode(t, http.StatusNotFound, "not_found")
}

// files follows signed links, whole, in part, and when they are good no more.
func files(t *testing.T, w *world) {
	in := w.newInbox(t)
	m := w.receive(t, in)
	get := w.call("downloadFile").as("")

	raw := w.send(t, get.at(w.linkOf(t, m))).want(t, http.StatusOK)
	if !strings.Contains(string(raw.body), "Subject: Your sign-in code") {
		t.Errorf("the raw mail: %s", raw.body)
	}
	a := w.send(t, w.call("getAttachment").at("/v1/messages/"+m.ID+"/attachments/"+m.Attachments[0].ID)).want(t, http.StatusOK)
	download := read[struct {
		URL string `json:"download_url"`
	}](t, a)
	link, err := url.Parse(download.URL)
	if err != nil {
		t.Fatal(err)
	}
	get = get.at(link.EscapedPath())
	const whole = "%PDF-1.7\nOrder 1042\n"
	if a := w.send(t, get).want(t, http.StatusOK); string(a.body) != whole || !strings.Contains(a.header.Get("Content-Disposition"), "order.pdf") {
		t.Errorf("the attachment: %q, %v", a.body, a.header)
	}
	a = w.send(t, get.with("Range", "bytes=1-3")).want(t, http.StatusPartialContent)
	if string(a.body) != "PDF" || a.header.Get("Content-Range") != "bytes 1-3/20" {
		t.Errorf("a range: %q, Content-Range %q", a.body, a.header.Get("Content-Range"))
	}
	w.send(t, get.with("Range", "bytes=100-")).wantCode(t, http.StatusRequestedRangeNotSatisfiable, "invalid_request")

	for _, wrong := range []string{link.EscapedPath() + "A", "/v1/files/x", "/v1/files/%00", "/v1/files/" + strings.Repeat("x", 2000)} {
		if a := w.send(t, get.at(wrong)); a.code() != "link_invalid" && wrong != "/v1/files/%00" {
			t.Errorf("%s: %d %s", a.call, a.status, a.body)
		}
	}
	w.send(t, w.call("deleteInbox").at("/v1/inboxes/"+in.ID)).want(t, http.StatusOK)
	w.send(t, get).wantCode(t, http.StatusNotFound, "not_found")
}

// expiredMessages are those whose content is deleted, and which can still be
// answered.
func expiredMessages(t *testing.T, w *world) {
	m := w.receive(t, w.newInbox(t))
	link := w.linkOf(t, m)
	w.deleteContent(t.Context(), t, m.ID)
	path := "/v1/messages/" + m.ID
	a := w.send(t, w.call("getMessage").at(path)).want(t, http.StatusOK)
	got := read[struct {
		Expired     bool    `json:"expired"`
		Text        *string `json:"text"`
		Attachments []any   `json:"attachments"`
	}](t, a)
	if !got.Expired || got.Text != nil || len(got.Attachments) != 0 {
		t.Errorf("an expired message: %s", a.body)
	}
	w.send(t, w.call("getMessageRaw").at(path+"/raw")).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("getAttachment").at(path+"/attachments/"+m.Attachments[0].ID)).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("forwardMessage").at(path+"/forward").saying(`{"to":"ben@example.org"}`)).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("replyToMessage").at(path+"/reply").saying(`{"text":"Late, but here."}`)).want(t, http.StatusCreated)
	w.send(t, w.call("downloadFile").as("").at(link)).wantCode(t, http.StatusNotFound, "not_found")
}

// whatIsNotBuiltYet are the parts of built operations that are missing.
func whatIsNotBuiltYet(t *testing.T, w *world) {
	for _, policy := range []string{"approval", "reply_only"} {
		in := read[inbox](t, w.send(t, w.call("createInbox").saying(`{"send_policy":"`+policy+`"}`)).want(t, http.StatusCreated))
		m := w.receive(t, in)
		for _, c := range []call{
			w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages").saying(`{"to":"a@example.org","subject":"s","text":"t"}`),
			w.call("replyToMessage").at("/v1/messages/" + m.ID + "/reply").saying(`{"text":"t"}`),
			w.call("forwardMessage").at("/v1/messages/" + m.ID + "/forward").saying(`{"to":"a@example.org"}`),
		} {
			w.send(t, c).wantCode(t, http.StatusNotImplemented, "not_implemented")
		}
	}
	w.send(t, w.call("listMessages").asking("q", "code")).wantCode(t, http.StatusNotImplemented, "not_implemented")
	w.send(t, w.call("listInboxMessages").at("/v1/inboxes/"+w.inbox.ID+"/messages").asking("q", "code")).
		wantCode(t, http.StatusNotImplemented, "not_implemented")
}

// whatIsNotInTheContract are paths that are unknown and methods that a path
// does not have: both are told in the one error body.
func whatIsNotInTheContract(t *testing.T, w *world) {
	for _, path := range []string{"/", "/v1", "/v1/inboxes/", "/v2/inboxes", "//v1/inboxes", "/v1/inboxes/x/y/z", "/metrics"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := w.request(t.Context(), t, w.call("listInboxes").at(path))
			req.Method = method
			if a := w.sendRequest(t, req); a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d %s", a.call, a.status, a.body)
			}
		}
	}
	for _, op := range w.check.Operations() {
		req := w.request(t.Context(), t, call{op: op, path: w.pathWith(op, func(string) string { return "x" }), key: firstKey})
		req.Method = http.MethodTrace
		a := w.sendRequest(t, req).wantCode(t, http.StatusMethodNotAllowed, "method_not_allowed")
		if allow := a.header.Get("Allow"); !strings.Contains(allow, op.Method) {
			t.Errorf("%s: Allow %q lacks %s", a.call, allow, op.Method)
		}
	}
}

// theContractItself is served, and is the one that is tested here.
func theContractItself(t *testing.T, w *world) {
	a := w.send(t, w.call("getOpenapi").as("")).want(t, http.StatusOK)
	if strings.Contains(string(a.body), "x-ogen") {
		t.Error("the served contract has x-ogen-...")
	}
	doc, err := openapi3.NewLoader().LoadFromData(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, op := range w.check.Operations() {
		if item := doc.Paths.Value(op.Path); item == nil || item.GetOperation(op.Method) == nil ||
			item.GetOperation(op.Method).OperationID != op.OperationID {
			t.Errorf("the served contract lacks %s", op.OperationID)
		}
	}
}
