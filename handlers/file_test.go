package handlers_test

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// rawLink returns the path of a link to the raw message.
func (s *server) rawLink(t *testing.T, m store.Message) string {
	t.Helper()
	return s.linked(t, s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").want(t, http.StatusFound).header.Get("Location"))
}

// linked removes the server's address from a link.
func (s *server) linked(t *testing.T, link string) string {
	t.Helper()
	path, ours := strings.CutPrefix(link, s.url)
	if !ours || !strings.HasPrefix(path, "/v1/files/") {
		t.Fatalf("link %q", link)
	}
	return path
}

func TestRawMessage(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for name, raw := range map[string]string{
		"a small mail":      mailOf(in, "Subject: Hi\n\nHello."),
		"odd bytes":         "From: a@b.example\nSubject: \xff\n\n\x00\x01\xfe\r\r\n",
		"a spooled message": mailOf(in, "Subject: Large\n\n"+strings.Repeat("0123456789 \n", 50_000)),
		"just within a row": "From: a@b.example\r\n\r\n" + strings.Repeat("x", store.RawInRow-len("From: a@b.example\r\n\r\n")),
	} {
		m := s.add(t, s.received(t, in, []byte(raw)))
		res := s.do(t, http.MethodGet, s.rawLink(t, m), "", as("")).want(t, http.StatusOK)
		if string(res.body) != raw {
			t.Errorf("%s: %d bytes differ from the %d that came", name, len(res.body), len(raw))
		}
		for header, want := range map[string]string{
			"Content-Type":            "application/octet-stream",
			"Content-Length":          fmt.Sprint(len(raw)),
			"Content-Disposition":     "attachment; filename=" + m.ID + ".eml",
			"X-Content-Type-Options":  "nosniff",
			"Content-Security-Policy": "sandbox",
			"Cache-Control":           "private, no-store",
			"Accept-Ranges":           "bytes",
		} {
			if got := res.header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

// A downloaded attachment equals the original file.
func TestAttachments(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	content := strings.Repeat("\x00\xff binary \r\n", 30_000)
	tests := []struct{ name, header, filename string }{
		{"a plain name", `filename="order.pdf"`, "order.pdf"},
		{"a name with spaces and quotes", `filename="my \"order\".pdf"`, `my "order".pdf`},
		{"a name beyond ASCII", `filename="=?utf-8?q?Gr=C3=BC=C3=9Fe_=E2=82=AC.pdf?="`, "Grüße €.pdf"},
		{"a name as RFC 2231 has it", `filename*=utf-8''%E2%82%AC%20rates.pdf`, "€ rates.pdf"},
		{"a name with a path", `filename="../../etc/passwd"`, "passwd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := s.receive(t, in, "Subject: Files\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHi\n--b\n"+
				"Content-Type: application/pdf\nContent-ID: <one@out.example>\nContent-Transfer-Encoding: base64\n"+
				"Content-Disposition: attachment; "+tt.header+"\n\n"+lines(base64.StdEncoding.EncodeToString([]byte(content)))+"--b--")
			att := m.Content.Attachments.V[0]
			res := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/attachments/"+att.ID, "").want(t, http.StatusOK)
			for path, want := range map[string]string{
				"object": "attachment", "id": att.ID, "message_id": m.ID, "filename": tt.filename, "content_type": "application/pdf",
				"content_id": "one@out.example", "expires_at": after(15 * time.Minute),
			} {
				if got := res.str(t, path); got != want {
					t.Errorf("%s is %q, want %q", path, got, want)
				}
			}
			res.wantAt(t, "size", fmt.Sprint(len(content)))
			got := s.do(t, http.MethodGet, s.linked(t, res.str(t, "download_url")), "", as("")).want(t, http.StatusOK)
			if string(got.body) != content {
				t.Errorf("%d bytes differ from the %d that were attached", len(got.body), len(content))
			}
			kind, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
			if err != nil || kind != "attachment" || params["filename"] != tt.filename {
				t.Errorf("Content-Disposition %q", got.header.Get("Content-Disposition"))
			}
		})
	}
}

// lines breaks a text into lines of 76 characters.
func lines(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\n")
		s = s[76:]
	}
	return b.String() + s + "\n"
}

func TestUnknownAttachments(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	one := s.receive(t, in, fmt.Sprintf(multipart, in.Address))
	two := s.receive(t, in, "Subject: Nothing attached")
	for _, path := range []string{
		"/v1/messages/" + two.ID + "/attachments/" + one.Content.Attachments.V[0].ID,
		"/v1/messages/" + one.ID + "/attachments/att_0",
		"/v1/messages/msg_0/attachments/" + one.Content.Attachments.V[0].ID,
	} {
		s.do(t, http.MethodGet, path, "").wantError(t, http.StatusNotFound, "not_found")
	}
}

func TestRanges(t *testing.T) {
	s := serve(t)
	m := s.receive(t, s.newInbox(t), fmt.Sprintf(multipart, "a@b.example")) // its attachment has 8 bytes: %PDF-1.7
	att := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/attachments/"+m.Content.Attachments.V[0].ID, "").want(t, http.StatusOK)
	link := s.linked(t, att.str(t, "download_url"))
	for ranges, want := range map[string]string{ // Content-Range and body; all for none
		"bytes=0-3": "bytes 0-3/8 %PDF", "bytes=5-": "bytes 5-7/8 1.7", "bytes=-2": "bytes 6-7/8 .7", "bytes=6-100": "bytes 6-7/8 .7",
		"bytes=0-1,3-4": "all", "lines=1-2": "all", "bytes=8-": "", "bytes=5-2": "", "bytes=a-b": "",
	} {
		res := s.do(t, http.MethodGet, link, "", as(""), with("Range", ranges))
		switch got := res.header.Get("Content-Range") + " " + string(res.body); {
		case want == "":
			res.wantError(t, http.StatusRequestedRangeNotSatisfiable, "invalid_request Range")
		case want == "all":
			res.want(t, http.StatusOK)
		case res.status != http.StatusPartialContent || got != want:
			t.Errorf("%s: %d %q, want %q", ranges, res.status, got, want)
		}
	}
}
