package web_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// withFiles returns a message with a text, a page with a script, and a PDF.
func withFiles() string {
	raw := "From: Shop <shop@out.example>\r\nTo: OWN\r\nSubject: Files\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n" +
		"--m\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n"
	for _, file := range []struct{ name, kind, content string }{
		{"notes.txt", "text/plain; charset=utf-8", "Größe <b>42</b>\n" + strings.Repeat("long ", 30_000)},
		{"page.html", "text/html", "<script>evil()</script>"}, {"invoice.pdf", "application/pdf", "%PDF-1.7"},
	} {
		raw += "--m\r\nContent-Type: " + file.kind + "\r\nContent-Disposition: attachment; filename=" + file.name + "\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			base64.StdEncoding.EncodeToString([]byte(file.content)) + "\r\n"
	}
	return raw + "--m--\r\n"
}

// The text of text files is shown as text, on a page of its own.
func TestAttachmentsAreShownAsText(t *testing.T) {
	s := openSite(t)
	m := s.put(t, s.newInbox(t, "files", gen.SendPolicyOpen), withFiles())
	v := s.visitAsUser(t)
	page := v.get("/messages/"+m.ID).want(t, http.StatusOK)
	for i, tt := range []struct {
		linked bool
		want   []string
	}{
		{true, []string{"Größe &lt;b&gt;42&lt;/b&gt;", "Only the beginning is shown"}},
		{true, []string{"&lt;script&gt;evil()"}},
		{false, []string{"have no preview"}},
	} {
		at := "/messages/" + m.ID + "/attachments/" + m.Attachments[i].ID
		if linked := strings.Contains(page.body, `href="`+at+`/text"`); linked != tt.linked {
			t.Errorf("%s has a link to its text: %t", m.Attachments[i].Filename, linked)
		}
		got := v.get(at+"/text").want(t, http.StatusOK).has(t, append(tt.want, `href="`+at+`" download`)...)
		if strings.Contains(got.body, "<script>evil") || len(got.body) > 150<<10 {
			t.Errorf("the page of %s has %d bytes, or active content", m.Attachments[i].Filename, len(got.body))
		}
	}
	at := "/messages/" + m.ID + "/attachments/"
	v.get(at+"att_none/text").want(t, http.StatusNotFound)
	s.visit(t).get(at+m.Attachments[0].ID+"/text").want(t, http.StatusSeeOther) // to sign in
	s.otherAccount(t)
	s.visitAsUser(t).get(at+m.Attachments[0].ID+"/text").want(t, http.StatusNotFound)
}
