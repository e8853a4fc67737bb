package handlers_test

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// fileNames are file names in messages (M7) and their safe forms, which name a
// file in any folder and nothing else. An empty result gets a default name.
var fileNames = []struct{ header, want string }{
	{`filename="order.pdf"`, "order.pdf"},
	{`filename=order.pdf`, "order.pdf"},
	{`filename="two words.pdf"`, "two words.pdf"},
	{`filename=two words.pdf`, "two words.pdf"},
	{`filename="../../etc/passwd"`, "passwd"},
	{`filename="/etc/passwd"`, "passwd"},
	{`filename="..\..\windows\system32\cmd.exe"`, "cmd.exe"},
	{`filename="C:\temp\evil.exe"`, "evil.exe"},
	{`filename="\\server\share\x.txt"`, "x.txt"},
	{`filename="a/../b.txt"`, "b.txt"},
	{`filename=".."`, ""},
	{`filename="."`, ""},
	{`filename="folder/"`, ""},
	{`filename=""`, ""},
	{`filename=" "`, ""},
	{`filename=".htaccess"`, ".htaccess"},
	{`filename="..."`, "..."},
	{"filename=\"a\x01b\x1fc.txt\"", "abc.txt"},
	{"filename=\"bell\x07.txt\"", "bell.txt"},
	{"filename=\"del\x7f.txt\"", "del.txt"},
	{"filename=\"tab\there.txt\"", "tabhere.txt"},
	{`filename*=utf-8''nul%00.txt`, "nul.txt"},
	{`filename*=utf-8''crlf%0D%0ASet-Cookie:%20a=b.txt`, "crlfSet-Cookie: a=b.txt"},
	{`filename*=utf-8''next%C2%85line.txt`, "nextline.txt"},
	{`filename*=utf-8''sep%E2%80%A8line.txt`, "sepline.txt"},
	{`filename*=utf-8''invoice%E2%80%AEfdp.exe`, "invoicefdp.exe"},
	{`filename*=utf-8''zero%E2%80%8Bwidth.txt`, "zerowidth.txt"},
	{`filename*=utf-8''slash%2F..%2Fx.txt`, "x.txt"},
	{`filename*=utf-8''%E2%82%AC%20rates.pdf`, "€ rates.pdf"},
	{`filename*=iso-8859-1''%FCber.pdf`, "über.pdf"},
	{`filename*0="one-"; filename*1="two.pdf"`, "one-two.pdf"},
	{`filename*0*=utf-8''%C3%BC-; filename*1="100%25.pdf"`, "ü-100%25.pdf"},
	{`filename="=?utf-8?q?Gr=C3=BC=C3=9Fe.pdf?="`, "Grüße.pdf"},
	{`filename="=?utf-8?b?Li4vLi4veC50eHQ=?="`, "x.txt"},
	{`filename="=?iso-2022-jp?b?GyRCO3FOQRsoQi5wZGY=?="`, "資料.pdf"},
	{`filename="my \"order\".pdf"`, `my "order".pdf`},
	{`filename="semi;colon,comma.txt"`, "semi;colon,comma.txt"},
	{`filename="100%.txt"`, "100%.txt"},
	{`filename="%2e%2e%2fx.txt"`, "%2e%2e%2fx.txt"},
	{`filename="` + strings.Repeat("x", 10_000) + `.pdf"`, strings.Repeat("x", 251) + ".pdf"},
}

// TestDownloadNames downloads files with hostile names: the header is a single
// field with a harmless name (M7).
func TestDownloadNames(t *testing.T) {
	if len(fileNames) != 40 {
		t.Fatalf("%d names, the row has 40", len(fileNames))
	}
	s := serve(t)
	in := s.newInbox(t)
	var raw strings.Builder
	raw.WriteString("Subject: Files\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n")
	for _, n := range fileNames {
		fmt.Fprintf(&raw, "--b\nContent-Type: application/x-test\nContent-Disposition: attachment; %s\n\nx\n", n.header)
	}
	m := s.receive(t, in, raw.String()+"--b--\n")
	list := m.Content.Attachments.V
	if len(list) != len(fileNames) {
		t.Fatalf("%d attachments, want %d", len(list), len(fileNames))
	}
	for i, n := range fileNames {
		if list[i].Filename != n.want {
			t.Errorf("%.60q is named %q, want %q", n.header, list[i].Filename, n.want)
		}
		s.checkDownloadName(t, m.ID, list[i].ID, cmp.Or(n.want, "attachment"))
	}
}

// checkDownloadName downloads an attachment and parses its name like a client.
func (s *server) checkDownloadName(t *testing.T, messageID, id, want string) {
	t.Helper()
	at := s.do(t, http.MethodGet, "/v1/messages/"+messageID+"/attachments/"+id, "").want(t, http.StatusOK)
	header := s.do(t, http.MethodGet, s.linked(t, at.str(t, "download_url")), "", as("")).want(t, http.StatusOK).header.Get("Content-Disposition")
	for _, c := range []byte(header) {
		if c < ' ' || c >= 0x7f {
			t.Errorf("%q has more than printable ASCII", header)
		}
	}
	kind, params, err := mime.ParseMediaType(header)
	if err != nil || kind != "attachment" || params["filename"] != want {
		t.Errorf("%q reads as %q of %q, %v, want %q", header, params["filename"], kind, err, want)
	}
	if len(want) > 255 || !utf8.ValidString(want) {
		t.Errorf("%q is not a file name", want)
	}
}

// TestAttachmentsWithoutAName: attachments without a name get one, in
// the message and in the download.
func TestAttachmentsWithoutAName(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for contentType, want := range map[string]string{
		"text/calendar": "attachment.ics", "image/png": "attachment.png", "application/x-unknown": "attachment",
	} {
		m := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate",
			`{"raw":"From: a@b.example\nSubject: s\nMIME-Version: 1.0\nContent-Type: `+contentType+`\n\nx\n"}`).want(t, http.StatusCreated)
		m.wantAt(t, "attachments.0.filename", `"`+want+`"`)
		at := s.do(t, http.MethodGet, "/v1/messages/"+m.str(t, "id")+"/attachments/"+m.str(t, "attachments.0.id"), "").want(t, http.StatusOK)
		at.wantAt(t, "filename", `"`+want+`"`)
	}
}
