package web_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// withFiles has a PDF that a browser printed, one that is none, a text, a page with a
// script, and a program.
func withFiles(t *testing.T) string {
	t.Helper()
	pdf, err := os.ReadFile(filepath.Join("..", "pdftext", "testdata", "browser.pdf"))
	must(t, err)
	raw := "From: Shop <shop@out.example>\r\nTo: OWN\r\nSubject: Files\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n" +
		"--m\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n"
	for _, file := range []struct{ name, kind, content string }{
		{"invoice.pdf", "application/pdf", string(pdf)}, {"broken.pdf", "application/pdf", "Hello"}, {"notes.txt", "text/plain; charset=utf-8", "Größe <b>42</b>\n" + strings.Repeat("long ", 30_000)},
		{"page.html", "text/html", "<script>evil()</script>"}, {"run.exe", "application/octet-stream", "MZ"},
	} {
		raw += "--m\r\nContent-Type: " + file.kind + "\r\nContent-Disposition: attachment; filename=" + file.name + "\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
			base64.StdEncoding.EncodeToString([]byte(file.content)) + "\r\n"
	}
	return raw + "--m--\r\n"
}

// The text of PDF and text files is shown as text, on a page of its own.
func TestAttachmentsAreShownAsText(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		m := s.put(t, s.newInbox(t, "files", gen.SendPolicyOpen), withFiles(t))
		v := s.visitAsUser(t)
		page := v.get("/messages/"+m.ID).want(t, http.StatusOK)
		for i, tt := range []struct {
			linked bool
			want   []string
		}{
			{true, []string{"Invoice 2026-118", "Dear Ana Müller", "thank you, Привет."}},
			{true, []string{"No text was found in this PDF"}},
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
	})
}

func TestBrowserShowsTheTextOfAPDF(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		m := s.put(t, s.newInbox(t, "files", gen.SendPolicyOpen), withFiles(t))
		b := s.browse(t)
		b.open("/messages/" + m.ID)
		b.shoot("message-files")
		b.click(".files .preview")
		b.shows("invoice.pdf", "Dear Ana Müller", "Difficult fluffy office")
		b.shoot("file-text")
		b.click(".back a")
		b.shows("See the files.")
	})
}
