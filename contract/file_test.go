package contract_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// files downloads signed links, completely and in part, and tries expired ones.
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
	must(t, err)
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

// expiredMessages tests messages whose content is deleted. Replies to them
// still work.
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
	w.send(t, w.call("replyToInvitation").at(path+"/calendar/reply").saying(`{"response":"accept"}`)).wantCode(t, http.StatusGone, "message_expired")
	w.send(t, w.call("replyToMessage").at(path+"/reply").saying(`{"text":"Late, but here."}`)).want(t, http.StatusCreated)
	w.send(t, w.call("downloadFile").as("").at(link)).wantCode(t, http.StatusNotFound, "not_found")
}
