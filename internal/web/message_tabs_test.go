package web_test

import (
	"encoding/base64"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// manyParts has text, HTML, an attached image, and a file that says it is one.
var manyParts = "From: Shop <shop@out.example>\r\nTo: OWN\r\nSubject: Parts\r\nX-Test: <b>header</b>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=m\r\n\r\n" +
	"--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain\r\n\r\nThe <i>text</i>\r\n" +
	"--a\r\nContent-Type: text/html\r\n\r\n<p>The HTML</p><script>evil()</script>\r\n--a--\r\n" +
	"--m\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=photo.png\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
	base64.StdEncoding.EncodeToString(picture(40, 20)) +
	"\r\n--m\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=not.png\r\n\r\n<svg onload=evil()></svg>" +
	"\r\n--m\r\nContent-Type: image/svg+xml\r\nContent-Disposition: attachment; filename=active.svg\r\n\r\n<svg onload=evil()></svg>\r\n--m--\r\n"

// Each tab of a message shows its part as text, and images are shown only when
// they are raster images.
func TestMessageTabs(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "tabs", gen.SendPolicyOpen)
	m := s.put(t, in, manyParts)
	v := s.visitAsUser(t)
	for tab, want := range map[string][]string{
		"":              {`<iframe class="document`, `alt="photo.png"`, `href="/messages/` + m.ID + `?tab=raw"`},
		"?tab=text":     {"The &lt;i&gt;text&lt;/i&gt;", `dir="auto"`},
		"?tab=html":     {"&lt;p&gt;The HTML&lt;/p&gt;&lt;script&gt;evil()", `data-copy="content"`},
		"?tab=headers":  {"X-Test", "&lt;b&gt;header&lt;/b&gt;"},
		"?tab=raw":      {"X-Test: &lt;b&gt;header", "boundary=m", `href="/messages/` + m.ID + `/raw"`},
		"?tab=nonsense": {`<iframe class="document`},
	} {
		page := v.get("/messages/"+m.ID+tab).want(t, http.StatusOK).has(t, want...)
		if strings.Contains(page.body, "<script>") || strings.Contains(page.body, "<svg onload") {
			t.Errorf("tab %q has active content:\n%s", tab, page.body)
		}
	}
	page := v.get("/messages/"+m.ID).want(t, http.StatusOK).body
	shown := map[string]int{}
	for _, tag := range strings.Split(page, "<img src=\"")[1:] {
		src, rest, _ := strings.Cut(tag, `"`)
		_, rest, _ = strings.Cut(rest, `alt="`)
		name, _, _ := strings.Cut(rest, `"`)
		if strings.HasPrefix(src, "/mail-images/") {
			a := v.get(html.UnescapeString(src))
			shown[name] = a.status
			if a.status == http.StatusOK && a.header.Get("Content-Type") != "image/png" {
				t.Errorf("%s is served as %s", name, a.header.Get("Content-Type"))
			}
		}
	}
	if shown["photo.png"] != http.StatusOK || shown["not.png"] != http.StatusNotFound || shown["active.svg"] != 0 {
		t.Errorf("the images return %v", shown)
	}
}

// A raw message that is too long for a page is cut, and stays valid text.
func TestLongRawMessageIsCut(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "long", gen.SendPolicyOpen)
	m := s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Long\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"+strings.Repeat("Größe und mehr\r\n", 20_000))
	page := s.visitAsUser(t).get("/messages/"+m.ID+"?tab=raw").want(t, http.StatusOK).has(t, "Only the beginning is shown")
	if len(page.body) > 150<<10 || strings.Contains(page.body, "\ufffd") {
		t.Errorf("the page has %d bytes", len(page.body))
	}
}
