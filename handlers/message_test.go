package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const multipart = `From: "Ann, of Out" <ann@out.example>
To: %s, Bob <bob@out.example>
Cc: carl@out.example
Reply-To: replies@out.example
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
Message-ID: <one@out.example>
References: <zero@out.example>
In-Reply-To: <zero@out.example>
List-Id: <list.out.example>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=utf-8

Your code is 482913. See https://out.example/login?t=1
--b
Content-Type: application/pdf; name="=?utf-8?q?Gr=C3=BC=C3=9Fe.pdf?="
Content-Disposition: attachment
Content-Transfer-Encoding: base64

JVBERi0xLjc=
--b--`

func TestGetMessage(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, fmt.Sprintf(multipart, in.Address))
	res := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
	for path, want := range map[string]string{
		"object":          `"message"`,
		"inbox_id":        `"` + in.ID + `"`,
		"direction":       `"in"`,
		"status":          `"received"`,
		"expired":         `false`,
		"test_mode":       `false`,
		"from":            `{"email":"ann@out.example","name":"Ann, of Out"}`,
		"to":              `[{"email":"` + in.Address + `","name":null},{"email":"bob@out.example","name":"Bob"}]`,
		"cc":              `[{"email":"carl@out.example","name":null}]`,
		"bcc":             `[]`,
		"reply_to":        `[{"email":"replies@out.example","name":null}]`,
		"subject":         `"Grüße"`,
		"html":            `null`,
		"auth":            `null`,
		"automated":       `true`,
		"truncated":       `false`,
		"tag":             `null`,
		"recipients":      `[]`,
		"rfc_message_id":  `"<one@out.example>"`,
		"in_reply_to":     `["<zero@out.example>"]`,
		"references":      `["<zero@out.example>"]`,
		"size":            fmt.Sprint(m.Size),
		"received_at":     `"2026-09-23T10:00:00.000Z"`,
		"created_at":      `"2026-09-23T10:00:00.000Z"`,
		"sent_at":         `null`,
		"delivered_at":    `null`,
		"extracted.otp":   `"482913"`,
		"extracted.codes": `["482913"]`,

		"attachments.0.filename":     `"Grüße.pdf"`,
		"attachments.0.content_type": `"application/pdf"`,
		"attachments.0.size":         `8`,
		"attachments.0.inline":       `false`,
		"attachments.0.content_id":   `null`,
	} {
		res.wantAt(t, path, want)
	}
	for _, path := range []string{"text", "snippet", "extracted_text"} {
		if !strings.Contains(res.str(t, path), "Your code is 482913") {
			t.Errorf("%s: %s", path, res.body)
		}
	}
}

func TestOddMessages(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for name, raw := range map[string]string{
		"no header at all":        "\r\nHello\r\n",
		"no body":                 "From: a@b.example\r\n",
		"nothing":                 "\r\n",
		"a From that is not one":  "From: no address\r\n\r\nHello\r\n",
		"bytes that are not text": "From: a@b.example\r\nSubject: \xff\xfe\x00\r\n\r\n\xff\x00\r\n",
		"a body that ends early":  "From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nHel",
	} {
		m := s.add(t, s.received(t, in, []byte(raw)))
		res := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
		if name == "no header at all" {
			res.wantAt(t, "from", `null`)
			res.wantAt(t, "subject", `""`)
			res.wantAt(t, "rfc_message_id", `null`)
		}
		link := s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").want(t, http.StatusFound).header.Get("Location")
		if got := s.do(t, http.MethodGet, strings.TrimPrefix(link, s.url), "", as("")).want(t, http.StatusOK); string(got.body) != raw {
			t.Errorf("%s: the raw message is %q, want %q", name, got.body, raw)
		}
	}
	if got := s.do(t, http.MethodGet, "/v1/messages", "").want(t, http.StatusOK).strs(t, "data", "id"); len(got) != 6 {
		t.Errorf("%d messages are listed", len(got))
	}
}
