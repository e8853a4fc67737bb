package handlers_test

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
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
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
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
	})
}

// A downloaded attachment equals the original file.
func TestAttachments(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
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
	})
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
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
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
	})
}

func TestRanges(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		m := s.receive(t, in, fmt.Sprintf(multipart, in.Address)) // its attachment has 8 bytes: %PDF-1.7
		att := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/attachments/"+m.Content.Attachments.V[0].ID, "").want(t, http.StatusOK)
		link := s.linked(t, att.str(t, "download_url"))
		tests := []struct {
			name, ranges       string
			status             int
			contentRange, body string
		}{
			{"the beginning", "bytes=0-3", 206, "bytes 0-3/8", "%PDF"},
			{"the middle", "bytes=4-6", 206, "bytes 4-6/8", "-1."},
			{"to the end", "bytes=5-", 206, "bytes 5-7/8", "1.7"},
			{"the end", "bytes=-2", 206, "bytes 6-7/8", ".7"},
			{"more than there is", "bytes=6-100", 206, "bytes 6-7/8", ".7"},
			{"all of it", "bytes=0-", 206, "bytes 0-7/8", "%PDF-1.7"},
			{"several", "bytes=0-1,3-4", 200, "", "%PDF-1.7"},
			{"another unit", "lines=1-2", 200, "", "%PDF-1.7"},
			{"past the end", "bytes=8-", 416, "bytes */8", ""},
			{"backwards", "bytes=5-2", 416, "", ""},
			{"no numbers", "bytes=a-b", 416, "", ""},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				res := s.do(t, http.MethodGet, link, "", as(""), with("Range", tt.ranges)).want(t, tt.status)
				if got := res.header.Get("Content-Range"); tt.contentRange != "" && got != tt.contentRange {
					t.Errorf("Content-Range %q, want %q", got, tt.contentRange)
				}
				if tt.status == http.StatusRequestedRangeNotSatisfiable {
					res.wantError(t, tt.status, "invalid_request Range")
				} else if string(res.body) != tt.body {
					t.Errorf("body %q, want %q", res.body, tt.body)
				}
			})
		}
	})
}

func TestLinksExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		link := s.rawLink(t, s.receive(t, s.newInbox(t), "Subject: Hi"))
		s.clock.Add(15*time.Minute - time.Millisecond)
		s.do(t, http.MethodGet, link, "", as("")).want(t, http.StatusOK)
		s.clock.Add(time.Millisecond)
		s.do(t, http.MethodGet, link, "", as("")).wantError(t, http.StatusForbidden, "link_invalid")
	})
}

func TestForgedLinks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		link := s.rawLink(t, s.receive(t, in, "Subject: Hi"))
		token := strings.TrimPrefix(link, "/v1/files/")
		for i := 0; i < len(token); i++ {
			c := byte('A')
			if token[i] == c {
				c = 'B'
			}
			s.do(t, http.MethodGet, "/v1/files/"+token[:i]+string(c)+token[i+1:], "", as("")).wantError(t, http.StatusForbidden, "link_invalid")
		}
		for _, forged := range []string{"x", "%ff", url.PathEscape(strings.Repeat("a", 2000)), token + "A", token[:len(token)-1], token + "=", "..%2F..%2Fetc"} {
			if res := s.do(t, http.MethodGet, "/v1/files/"+forged, "", as("")); res.status != http.StatusForbidden && res.status != http.StatusNotFound {
				t.Errorf("%s: status %d", forged, res.status)
			}
		}
		s.do(t, http.MethodGet, "/v1/files/"+strings.Repeat("a", 2001), "", as(""), broken).want(t, http.StatusNotFound)
		s.do(t, http.MethodGet, link, "", as("sk_live_bad")).want(t, http.StatusOK) // only the token counts
	})
}

// The raw form of a sent message is available too, without its signature until
// it is signed.
func TestRawOfSentMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		id := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"bob@out.example","subject":"Grüße","text":"Hello."}`).
			want(t, http.StatusCreated).str(t, "id")
		link := s.linked(t, s.do(t, http.MethodGet, "/v1/messages/"+id+"/raw", "").want(t, http.StatusFound).header.Get("Location"))
		raw := string(s.do(t, http.MethodGet, link, "", as("")).want(t, http.StatusOK).body)
		for _, part := range []string{"From: ", in.Address, "To: bob@out.example\r\n", "Subject: =?utf-8?", "Message-ID: <", "Date: ", "\r\n\r\nHello."} {
			if !strings.Contains(raw, part) {
				t.Errorf("%q is not in %q", part, raw)
			}
		}
	})
}
